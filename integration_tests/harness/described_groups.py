"""Groups as brokers describe them, and their lag, made up."""

from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import (
    DescribedGroup,
    GroupMember,
    GroupType,
    ListedGroup,
    Partitions,
    TopicMetadata,
)
from groupwright.consumer.cluster import Broker

BROKER = Broker(1, "broker-1", 9092)


def member(
    id_: str = "worker-1",
    *,
    client_id: str = "worker",
    topics: tuple[str, ...] = ("orders",),
    topic_regex: str | None = None,
    assigned: Partitions | None = None,
    target: Partitions | None = None,
    instance_id: str | None = None,
    version: int | None = None,
) -> GroupMember:
    return GroupMember(
        id_,
        client_id,
        "10.0.0.1",
        instance_id=instance_id,
        topics=topics,
        topic_regex=topic_regex,
        assigned={"orders": (0,)} if assigned is None else assigned,
        target=target,
        subscription_version=version,
    )


def group(
    *members: GroupMember,
    id_: str = "billing",
    type_: GroupType = GroupType.CLASSIC,
    state: str | None = None,
    protocol_type: str = "consumer",
) -> DescribedGroup:
    return DescribedGroup(
        id_,
        type_,
        state or ("Stable" if members else "Empty"),
        protocol_type,
        "range" if members else "",
        members,
        BROKER,
    )


def partition(
    topic: str = "orders",
    number: int = 0,
    *,
    committed: int | None = 30,
    begin: int | None = 0,
    end: int | None = 100,
    owner: GroupMember | None = None,
    error: str = "",
    stable: int | None = None,
    has_message: bool | None = None,
) -> PartitionLag:
    return PartitionLag(
        topic,
        number,
        committed,
        begin,
        end,
        (owner,) if owner else (),
        error,
        stable=stable,
        has_message=has_message,
    )


def lag_of(of: DescribedGroup, *partitions: PartitionLag) -> GroupLag:
    return GroupLag(of, partitions)


def listed(id_: str, type_: GroupType = GroupType.CLASSIC, state: str = "Stable") -> ListedGroup:
    return ListedGroup(id_, type_, state, "consumer", BROKER.id)


def topic(name: str = "orders", partitions: int = 1) -> TopicMetadata:
    return TopicMetadata(name, name, (1,) * partitions, (frozenset(),) * partitions)
