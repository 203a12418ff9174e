"""A group of a cluster, read for a study."""

import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from groupwright.assignors import (
    CoPartitionedStickyAssignor,
    Group,
    InvalidInputError,
    Lag,
    LoadAwareAssignor,
    Member,
    ProcessingTime,
    StickyAssignor,
    Throughput,
    Topic,
    WeightSource,
    decode_previous_assignment,
    evaluate_load,
    with_weights,
)
from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.lookup import find_group
from groupwright.cli._cluster.model import DescribedGroup, GroupMember, GroupType, Partitions
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.output import few
from groupwright.cli._study.measurements import Measurements
from groupwright.cli._study.model import OpenedGroup, StudiedGroup, does
from groupwright.cli._study.weights_option import WeightsOption

_PAUSE = 0.3  # seconds between two snapshots of a group that rebalances
_BY_LOAD = frozenset({LoadAwareAssignor.name, CoPartitionedStickyAssignor.name})
"""Assignors whose user data may have the member's capacity and its previous assignment."""

_SOURCES: Mapping[WeightsOption, type[WeightSource]] = {
    WeightsOption.THROUGHPUT: Throughput,
    WeightsOption.LAG: Lag,
    WeightsOption.PROCESSING_TIME: ProcessingTime,
}


def read_live(cluster: Cluster, group: str, weights: WeightsOption, *, patience: float) -> OpenedGroup:
    """Return a group of a cluster. A group that rebalances is waited for, as its members are not known.

    Args:
        cluster: The cluster.
        group: The group's name.
        weights: Where the weights of partitions come from.
        patience: Seconds to wait for the end of a rebalance.

    Raises:
        CommandError: The group does not exist, may not be described, is not of consumers, or still
            rebalances.
    """
    described = _at_rest(cluster, group, patience)
    every_topic = cluster.topics() if any(member.topic_regex for member in described.members) else {}
    visible = [name for name, topic in every_topic.items() if not topic.is_internal]
    members = tuple(with_owned(described, with_matches(member, visible)) for member in described.members)
    wanted = {topic for member in members for topic in (*member.topics, *member.assigned)}
    if not members:
        wanted = {topic for topic, _ in cluster.committed([group])[group]}
    found = cluster.topics(wanted)
    topics = {
        name: Topic(topic.partitions, topic.racks if any(topic.racks) else None)
        for name, topic in found.items()
    }
    missing = tuple(sorted(wanted - set(topics)))
    as_group = Group([Member(each.id, each.topics, user_data=each.user_data) for each in members], topics)
    weighted, unweighted = _weighed(cluster, group, as_group, weights)
    study = StudiedGroup(
        id=group,
        type=described.type,
        state=described.state,
        assignor=described.assignor or None,
        members=members,
        topics=weighted,
        capacities=_capacities(described, as_group),
        epoch=described.epoch,
        missing=missing,
    )
    forbidden = cluster.forbidden_topics(missing)
    absent = [name for name in missing if name not in forbidden]
    warnings = (
        *subscribed_in_vain(absent, forbidden),
        *((each, ExitStatus.INCOMPLETE) for each in unweighted),
    )
    return OpenedGroup(study, warnings)


def _at_rest(cluster: Cluster, group: str, patience: float) -> DescribedGroup:
    deadline = time.monotonic() + patience
    described = find_group(cluster, group)
    check_is_of_consumers(described)
    while not described.is_assignment_known:
        if time.monotonic() > deadline:
            raise CommandError(
                f"the group {group!r} is {described.state}, and brokers do not return the assignment of a "
                f"group that rebalances: it did not end within {patience:g} s; try again, or pass a longer "
                "--timeout",
                ExitStatus.REFUSED,
            )
        time.sleep(_PAUSE)
        described = find_group(cluster, group)
    return described


def check_is_of_consumers(group: DescribedGroup) -> None:
    """Check that a client's assignor could assign the partitions of a group.

    Raises:
        CommandError: It is a share or streams group, or its members are not consumers.
    """
    kinds = {
        GroupType.SHARE: "a share group, whose members have no partitions of their own to assign",
        GroupType.STREAMS: "a streams group, whose partitions the broker assigns as tasks (KIP-1071)",
    }
    if group.type in kinds:
        raise CommandError(
            f"{group.id!r} is {kinds[group.type]}; use groupwright describe", ExitStatus.REFUSED
        )
    if group.members and group.protocol_type != "consumer":
        raise CommandError(
            f"the members of {group.id!r} are not consumers but of the kind {group.protocol_type!r}, which "
            "assign in a way of their own; use groupwright describe",
            ExitStatus.REFUSED,
        )


def with_matches(member: GroupMember, visible: Collection[str]) -> GroupMember:
    """Return a member whose pattern is resolved to the topics that match."""
    if not member.topic_regex:
        return member
    try:
        matches = [name for name in visible if re.fullmatch(member.topic_regex, name)]
    except re.error:  # the broker's syntax is RE2's, which has more
        matches = []
    return replace(member, topics=tuple(sorted({*member.topics, *matches, *member.assigned})))


def with_owned(group: DescribedGroup, member: GroupMember) -> GroupMember:
    """Return an eager member with the partitions that it had before it joined, which its user data has."""
    has_previous = group.assignor in {StickyAssignor.name, *_BY_LOAD}
    if group.type is not GroupType.CLASSIC or not has_previous or member.owned:
        return member
    owned: Partitions = decode_previous_assignment(member.user_data, group.assignor).as_tuples()
    return replace(member, owned=owned)


def _weighed(
    cluster: Cluster, group: str, as_group: Group, weights: WeightsOption
) -> tuple[Mapping[str, Topic], list[str]]:
    """Return the topics with weights, and why they have none."""
    if weights is WeightsOption.NONE or not as_group.topics:
        return as_group.topics, []
    source = _SOURCES[weights]()
    try:
        found = source.weigh(as_group.topics, Measurements(cluster, group, as_group))
        weighted = with_weights(as_group.topics, found)
    except (CommandError, InvalidInputError) as error:
        return as_group.topics, [f"the weights of partitions are not known: {error}"]
    if not any(topic.weights is not None and topic.weights.any() for topic in weighted.values()):
        return as_group.topics, []
    return weighted, []


def _capacities(group: DescribedGroup, as_group: Group) -> dict[str, float]:
    """Return the capacities that members sent, if they are not 1."""
    if group.type is not GroupType.CLASSIC or group.assignor not in _BY_LOAD:
        return {}
    return {id_: each for id_, each in evaluate_load(as_group, {}).capacities.items() if each != 1}


def subscribed_in_vain(
    absent: Collection[str], forbidden: Collection[str]
) -> Iterator[tuple[str, ExitStatus]]:
    """Yield which topics of the group cannot be assigned, and the exit status that says so."""
    if absent:
        yield f"members subscribe to {few(absent)}, which {does(len(absent))} not exist", ExitStatus.NOT_FOUND
    if forbidden:
        topics = few(sorted(forbidden))
        yield (
            f"members subscribe to {topics}, which these credentials may not describe",
            ExitStatus.FORBIDDEN,
        )
