"""Responses to requests that describe groups, as `DescribedGroup`s."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from groupwright.assignors import (
    MalformedBytesError,
    decode_assignment,
    decode_subscription,
)
from groupwright.cli._cluster import apis
from groupwright.cli._cluster.model import (
    DescribedGroup,
    GroupMember,
    GroupType,
    Partitions,
    TopicMetadata,
)
from groupwright.consumer.cluster import Broker
from groupwright.core.kafka_apis import DESCRIBE_GROUPS


def described_classic(row: Any, coordinator: Broker) -> DescribedGroup:
    """Return a group in a response to DescribeGroups."""
    group = DescribedGroup(
        id=row.group_id,
        type=GroupType.CLASSIC,
        state=row.group_state,
        protocol_type=row.protocol_type,
        assignor=row.protocol_data,
        members=tuple(
            GroupMember(
                id=member.member_id,
                client_id=member.client_id,
                host=_host(member.client_host),
                instance_id=member.group_instance_id,
            )
            for member in row.members
        ),
        coordinator=coordinator,
    )
    if not group.is_assignment_known:
        return group
    return replace(group, members=tuple(map(_with_assignment, group.members, row.members)))


def _with_assignment(member: GroupMember, row: Any) -> GroupMember:
    """Return a classic member with its subscription and its assignment."""
    fields: dict[str, Any] = {}
    metadata, assignment = row.member_metadata, row.member_assignment
    try:
        subscription = decode_subscription(metadata)
    except MalformedBytesError as error:
        fields["undecodable"] = str(error)
    else:
        fields |= {
            "topics": subscription.topics,
            "owned": subscription.owned.as_tuples(),
            "generation": subscription.generation,
            "rack": subscription.rack,
            "user_data": subscription.user_data,
            "subscription_version": int.from_bytes(metadata[:2], "big"),
        }
    if assignment:
        try:
            decoded = decode_assignment(assignment)
            fields["assigned"] = decoded.partitions.as_tuples()
            fields["has_assignment_data"] = bool(decoded.user_data)
        except MalformedBytesError as error:
            fields["undecodable"] = str(error)
    return replace(member, **fields)


def described_consumer(row: Any, coordinator: Broker) -> DescribedGroup:
    """Return a group in a response to ConsumerGroupDescribe (KIP-848)."""
    return _described(
        row,
        GroupType.CONSUMER,
        coordinator,
        [
            GroupMember(
                id=member.member_id,
                client_id=member.client_id,
                host=_host(member.client_host),
                instance_id=member.instance_id,
                rack=member.rack_id or None,
                topics=tuple(sorted(member.subscribed_topic_names)),
                topic_regex=member.subscribed_topic_regex or None,
                assigned=_by_topic(member.assignment),
                target=_by_topic(member.target_assignment),
                epoch=member.member_epoch,
                is_classic=member.member_type == 0,
            )
            for member in row.members
        ],
        row.assignor_name,
    )


def described_share(row: Any, coordinator: Broker) -> DescribedGroup:
    """Return a group in a response to ShareGroupDescribe (KIP-932)."""
    return _described(
        row,
        GroupType.SHARE,
        coordinator,
        [
            GroupMember(
                id=member.member_id,
                client_id=member.client_id,
                host=_host(member.client_host),
                rack=member.rack_id or None,
                topics=tuple(sorted(member.subscribed_topic_names)),
                assigned=_by_topic(member.assignment),
                epoch=member.member_epoch,
            )
            for member in row.members
        ],
        row.assignor_name,
    )


def described_streams(row: Any, coordinator: Broker) -> DescribedGroup:
    """Return a group in a response to StreamsGroupDescribe (KIP-1071).

    The partitions of a member are those of the source topics of its active tasks, whose numbers reach to the
    largest topic of a subtopology: see `without_missing_partitions`.
    """
    subtopologies = (row.topology.subtopologies or []) if row.topology is not None else []
    sources = {
        each.subtopology_id: (*each.source_topics, *(topic.name for topic in each.repartition_source_topics))
        for each in subtopologies
    }
    topics = tuple(sorted({topic for of_one in sources.values() for topic in of_one}))
    return _described(
        row,
        GroupType.STREAMS,
        coordinator,
        [
            GroupMember(
                id=member.member_id,
                client_id=member.client_id,
                host=_host(member.client_host),
                instance_id=member.instance_id,
                rack=member.rack_id or None,
                topics=topics,
                assigned=_of_tasks(member.assignment.active_tasks, sources),
                target=_of_tasks(member.target_assignment.active_tasks, sources),
                epoch=member.member_epoch,
                is_classic=bool(member.is_classic),
            )
            for member in row.members
        ],
        "",
    )


def without_missing_partitions(group: DescribedGroup, topics: Mapping[str, TopicMetadata]) -> DescribedGroup:
    """Return a streams group without the partitions that do not exist.

    A subtopology has as many tasks as the largest of its source topics has partitions.

    Args:
        group: The group.
        topics: The topics that are known; partitions of others stay.
    """

    def existing(partitions: Partitions) -> Partitions:
        kept = {
            topic: tuple(each for each in numbers if topic not in topics or each < topics[topic].partitions)
            for topic, numbers in partitions.items()
        }
        return {topic: numbers for topic, numbers in kept.items() if numbers}

    members = (
        replace(
            each,
            assigned=existing(each.assigned),
            target=None if each.target is None else existing(each.target),
        )
        for each in group.members
    )
    return replace(group, members=tuple(members))


def _described(
    row: Any, type_: GroupType, coordinator: Broker, members: list[GroupMember], assignor: str
) -> DescribedGroup:
    return DescribedGroup(
        id=row.group_id,
        type=type_,
        state=row.group_state,
        protocol_type=type_.value,
        assignor=assignor,
        members=tuple(members),
        coordinator=coordinator,
        epoch=row.group_epoch,
        assignment_epoch=row.assignment_epoch,
    )


def _host(text: str) -> str:
    """Return a host without the slash that brokers write before an address."""
    return text.removeprefix("/")


def _by_topic(assignment: Any) -> Partitions:
    return {row.topic_name: tuple(sorted(row.partitions)) for row in assignment.topic_partitions}


def _of_tasks(tasks: Iterable[Any], sources: Mapping[str, tuple[str, ...]]) -> Partitions:
    found: dict[str, set[int]] = {}
    for task in tasks:
        for topic in sources.get(task.subtopology_id, ()):
            found.setdefault(topic, set()).update(task.partitions)
    return {topic: tuple(sorted(partitions)) for topic, partitions in sorted(found.items())}


DESCRIPTIONS: tuple[tuple[Callable[[list[str]], Any], Callable[[Any, Broker], DescribedGroup]], ...] = (
    (lambda ids: DESCRIBE_GROUPS(groups=ids), described_classic),
    (lambda ids: apis.CONSUMER_GROUP_DESCRIBE(group_ids=ids), described_consumer),
    (lambda ids: apis.SHARE_GROUP_DESCRIBE(group_ids=ids), described_share),
    (lambda ids: apis.STREAMS_GROUP_DESCRIBE(group_ids=ids), described_streams),
)
"""Requests that describe groups of each type, and the readers of their responses' rows."""
