"""The leader's step between JoinGroup and SyncGroup: subscriptions in, assignments out, both in bytes."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from groupwright.assignors._algorithms.check import assign, unassigned
from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group, JoinedMember, Member, Topic
from groupwright.assignors._wire.group_codec import encode_assignments, read_subscriptions

_log = logging.getLogger(__name__)


def perform_assignment(
    assignor: Assignor, joined: Sequence[JoinedMember], topics: Mapping[str, int | Topic]
) -> dict[str, bytes]:
    """Assign a group's partitions, as its leader does between JoinGroup and SyncGroup.

    The same as Java's `ConsumerCoordinator.onLeaderElected`. A leader that has to look the topics up first
    calls `decode_members`, `subscribed_topics`, `assign_members` and `encode_assignments` one by one.

    Args:
        assignor: The assignor that the coordinator chose.
        joined: The members in JoinGroup's response.
        topics: The existing topics, at least those in `subscribed_topics`, or their numbers of partitions.

    Returns:
        The assignment of every member by member id, in ConsumerProtocol version 3.

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of this group.
        InvalidInputError: Two members have the same id, or a number of partitions is out of range.
        MalformedBytesError: A subscription cannot be decoded; the message names the member.
    """
    _, assignment = assign_members(assignor, decode_members(joined), topics)
    return encode_assignments(assignment)


def decode_members(joined: Sequence[JoinedMember]) -> list[Member]:
    """Decode the subscriptions in JoinGroup's response.

    Args:
        joined: The members in JoinGroup's response.

    Raises:
        MalformedBytesError: A subscription cannot be decoded; the message names the member.
    """
    ids = [member.id for member in joined]
    subscriptions = read_subscriptions(ids, [member.metadata for member in joined])
    members = map(
        Member.from_fields,
        ids,
        subscriptions.topics,
        subscriptions.owned,
        subscriptions.generations,
        [member.instance_id for member in joined],
        subscriptions.racks,
        subscriptions.user_data,
    )
    return list(members)


def assign_members(
    assignor: Assignor,
    members: Iterable[Member],
    topics: Mapping[str, int | Topic],
    *,
    cooperative: bool = False,
) -> tuple[Group, Assignment]:
    """Run the assignor on a group of these members, and check its result.

    A partition of a subscribed topic that no member is assigned and no member owns is not consumed. An
    assignor may leave one out on purpose, so that is a warning in the log and not an error.

    Args:
        assignor: The assignor.
        members: The members.
        topics: The existing topics, or their numbers of partitions.
        cooperative: Whether the members rebalance cooperatively: see `assign`.

    Returns:
        The group, and its assignment.

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of this group.
        InvalidInputError: Two members have the same id, or a number of partitions is out of range.
    """
    group = Group(members, topics)
    assignment = assign(assignor, group, cooperative=cooperative)
    unconsumed = unassigned(group, assignment, unclaimed=True)
    if unconsumed:
        _log.warning(
            "Assignor %r leaves %d partitions of subscribed topics unassigned, so they are not consumed: %r",
            assignor.name,
            unconsumed.count,
            unconsumed,
        )
    return group, assignment
