"""Runs an assignor, and checks its result against the group."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.assignor import Assignor, check_assignor
from groupwright.assignors._model.columns import (
    NOT_FOUND,
    UNASSIGNED,
    Assignment,
    IndexedSubscriptions,
    PairTable,
    difference,
)
from groupwright.assignors._model.group import NO_GENERATION, Group, Member, Topic, subscribed_topics
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic, sorted_names
from groupwright.assignors._wire.owned import OwnedColumns
from groupwright.assignors.errors import AssignorError, InvalidInputError

_log = logging.getLogger(__name__)


def assign(assignor: Assignor, group: Group, *, cooperative: bool = False) -> Assignment:
    """Run an assignor, check its result, and return it with an entry for every member.

    Args:
        assignor: The assignor.
        group: The group.
        cooperative: Whether members keep their partitions while they rebalance (KIP-429). No partition may
            then be assigned to a member while another one owns it.

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of this group.
    """
    check_assignor(assignor)
    return _assign(assignor, group, cooperative=cooperative)


def assign_members(
    assignor: Assignor,
    members: Iterable[Member],
    topics: Mapping[str, int | Topic],
    *,
    cooperative: bool = False,
) -> tuple[Group, Assignment]:
    """Run the assignor on a group of these members, and check its result, as the group's leader does.

    A partition of a subscribed topic that no member is assigned and no member owns is not consumed. An
    assignor may leave one out on purpose, so that is a warning in the log and not an error.

    Args:
        assignor: An assignor that `check_assignor` accepts.
        members: The members.
        topics: The existing topics, or their numbers of partitions.
        cooperative: Whether the members rebalance cooperatively: see `assign`.

    Returns:
        The group, and its assignment.

    Raises:
        AssignorError: The assignor's result is not an assignment of this group.
        InvalidInputError: Two members have the same id, or a number of partitions is out of range.
    """
    group = Group(members, topics)
    assignment = _assign(assignor, group, cooperative=cooperative)
    unconsumed = unassigned(group, assignment, unclaimed=True)
    if unconsumed:
        _log.warning(
            "Assignor %r leaves %d partitions of subscribed topics unassigned, so they are not consumed: %r",
            assignor.name,
            unconsumed.count,
            unconsumed,
        )
    return group, assignment


def _assign(assignor: Assignor, group: Group, *, cooperative: bool) -> Assignment:
    ids = {member.id for member in group.members}
    try:
        result = assignor.assign(group)
        if not isinstance(result, Assignment) or not ids.issubset(result):
            result = Assignment(result, members=ids)
        check_assignment(group, result)
        if cooperative:
            _check_withheld(group, result)
    except (AssignorError, InvalidInputError) as error:
        raise AssignorError(f"assignor {assignor.name!r}: {error}") from error
    return result


def check_assignment(group: Group, assignment: Assignment) -> None:
    """Check that members are assigned only existing partitions of topics that they subscribe to.

    That no partition is assigned twice holds for every `Assignment`. Unassigned partitions are not an error;
    see `unassigned`.

    Raises:
        AssignorError: A member is not in the group, a topic or partition does not exist, or a member does not
            subscribe to a topic. The message names it.
    """
    _check_names(assignment.members, {member.id for member in group.members}, "member")
    _check_names(assignment.topics, group.topics, "topic")
    _check_partitions(group, assignment)
    _check_subscriptions(group, assignment)


def unassigned(group: Group, assignment: Assignment, *, unclaimed: bool = False) -> PartitionsByTopic:
    """Return the partitions of subscribed topics that no member is assigned.

    An eager assignor leaves out a partition only if it should not be consumed. A cooperative assignor also
    withholds partitions that another member has yet to revoke (KIP-429).

    Args:
        group: The group.
        assignment: An assignment that `check_assignment` accepts.
        unclaimed: Whether to return only the partitions that no member claims, so that none is withheld.
    """
    free = _free(group, assignment)
    return difference(free, [member.owned for member in group.members]) if free and unclaimed else free


def _free(group: Group, assignment: Assignment) -> PartitionsByTopic:
    if assignment.count == sum(topic.partitions for topic in group.topics.values()):
        return NO_PARTITIONS
    subscribed = subscribed_topics(group.members)
    topics = sorted_names(name for name in group.topics if name in subscribed)
    starts = np.cumsum([0, *(group.topics[name].partitions for name in topics)])
    if assignment.count == starts[-1]:
        return NO_PARTITIONS
    start_of = dict(zip(topics, starts.tolist(), strict=False))
    run_starts = np.array([start_of[name] for name in assignment.topics], np.int64)[assignment.run_topics]
    free = np.ones(starts[-1], np.bool_)
    free[np.repeat(run_starts, np.diff(assignment.run_starts)) + assignment.partitions] = False
    by_topic = zip(topics, np.split(free, starts[1:-1]), strict=True)
    return PartitionsByTopic({name: np.flatnonzero(is_free) for name, is_free in by_topic})


def _check_withheld(group: Group, assignment: Assignment) -> None:
    if not assignment.count:
        return
    indexed = IndexedGroup.of(group)
    owners = indexed.owners_of(assignment)
    claims = resolve_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    not_revoked = np.flatnonzero((owners != UNASSIGNED) & claims.claimed & (owners != claims.owner)).tolist()
    unranked = _unranked(group, not_revoked, indexed, owners) if not_revoked else ()
    partition = next((each for each in not_revoked if each not in unranked), None)
    if partition is not None:
        owner = claims.owner[partition]
        rival = "more than one member claims" if owner == UNASSIGNED else f"{indexed.members[owner]!r} owns"
        raise AssignorError(
            f"it rebalances cooperatively, but assigns {indexed.topics[indexed.topic[partition]]!r} "
            f"[{indexed.partition[partition]}] to {indexed.members[owners[partition]]!r} "
            f"while {rival} it: return withhold_claimed(group, plan) instead of the plan"
        )


def _unranked(
    group: Group, partitions: Collection[int], indexed: IndexedGroup, owners: Int32Array
) -> frozenset[int]:
    """Return those of the partitions whose claims only the assignor can rank, which go to a claimant.

    Members with subscriptions before version 2 may send the generations of their claims in the user data.
    """
    wanted = {
        (indexed.topics[indexed.topic[each]], int(indexed.partition[each])): each for each in partitions
    }
    claimants: dict[int, list[Member]] = {}
    for member in group.members:
        for topic, numbers in member.owned.items():
            for number in numbers:
                if (each := wanted.get((topic, int(number)))) is not None:
                    claimants.setdefault(each, []).append(member)
    return frozenset(
        each
        for each, members in claimants.items()
        if any(member.id == indexed.members[owners[each]] for member in members)
        and any(member.generation == NO_GENERATION for member in members)
    )


def _check_names(given: tuple[str, ...], known: Collection[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise AssignorError(f"{what} {name!r} is in the assignment, but not in the group")


def _check_partitions(group: Group, assignment: Assignment) -> None:
    sizes = np.array([group.topics[name].partitions for name in assignment.topics], np.int64)
    last = assignment.partitions[assignment.run_starts[1:] - 1]
    beyond = np.flatnonzero(last >= sizes[assignment.run_topics])
    if beyond.size:
        run = beyond[0]
        topic = assignment.run_topics[run]
        member = assignment.members[np.searchsorted(assignment.member_starts, run, side="right") - 1]
        raise AssignorError(
            f"member {member!r} is assigned partition {last[run]} of {assignment.topics[topic]!r}, which has "
            f"{sizes[topic]} partitions, numbered from 0"
        )


def _check_subscriptions(group: Group, assignment: Assignment) -> None:
    members = {member.id: member for member in group.members}
    subscriptions = IndexedSubscriptions.of(map(members.__getitem__, assignment.members), assignment.topics)
    subscribed = PairTable(subscriptions.subscription, subscriptions.topic, len(assignment.topics) + 1)
    member = np.repeat(np.arange(len(assignment.members)), np.diff(assignment.member_starts))
    found = subscribed.find(subscriptions.of_member[member], assignment.run_topics)
    unsubscribed = np.flatnonzero(found == NOT_FOUND)
    if unsubscribed.size:
        run = unsubscribed[0]
        raise AssignorError(
            f"member {assignment.members[member[run]]!r} is assigned partitions of "
            f"{assignment.topics[assignment.run_topics[run]]!r}, which it does not subscribe to"
        )
