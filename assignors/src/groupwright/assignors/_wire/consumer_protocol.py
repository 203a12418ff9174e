"""ConsumerProtocol: subscriptions in JoinGroup and assignments in SyncGroup, as bytes.

The formats are Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0 to 3. As
in Kafka, a newer version is decoded as version 3, and bytes after the last field are ignored in every
version. Unlike Kafka, strings that are not UTF-8 (Kafka replaces the invalid bytes) and lengths below -1
(Kafka decodes null) are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire import primitives

PROTOCOL = "ConsumerProtocol"
"""Name of both formats in error messages."""

NEWEST_VERSION = 3
"""Newest version of both formats."""

OWNED_SINCE = 1
GENERATION_SINCE = 2
RACK_SINCE = 3
"""Versions of a subscription that introduced these fields."""

TOPICS = "topics"
"""Name of the topics field in error messages."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription, which it sends to the leader in JoinGroup.

    Attributes:
        topics: The subscribed topics.
        user_data: The result of the assignor's `user_data`. None and empty bytes differ: Java members send
            None where librdkafka's send empty bytes.
        owned: The partitions that the member still owns (version 1, KIP-429).
        generation: The generation in which they were assigned (version 2, KIP-792); -1 for none.
        rack: The member's rack (version 3, KIP-881), or None.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: PartitionsByTopic = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member's assignment, which the leader sends in SyncGroup.

    Attributes:
        partitions: The assigned partitions.
        user_data: Bytes from the leader's assignor; Groupwright's leader writes None.
    """

    partitions: PartitionsByTopic
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Encode a subscription, without the fields that the version does not have.

    Topics and partitions are sorted, since the coordinator compares the bytes, and rebalances the group when
    a member's differ (KAFKA-12898).

    Raises:
        InvalidInputError: The version does not exist, or a value is too large for its field.
    """
    parts = [
        primitives.version(version, NEWEST_VERSION, PROTOCOL),
        primitives.strings(subscription.topics, "topics"),
        primitives.nullable_bytes(subscription.user_data, "user data"),
    ]
    if version >= OWNED_SINCE:
        parts.append(primitives.topic_partitions(subscription.owned))
    if version >= GENERATION_SINCE:
        parts.append(primitives.int32(subscription.generation, "generation"))
    if version >= RACK_SINCE:
        parts.append(primitives.nullable_string(subscription.rack, "rack"))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription.

    Fields that the version does not have get their defaults. As in Kafka, an empty rack is None, and every
    negative generation is -1. The owned partitions need not exist.

    Raises:
        MalformedBytesError: The bytes are not a subscription.
    """
    return read_subscription(primitives.Reader(data, "subscription"))


def encode_assignment(
    partitions: Mapping[str, Iterable[int]], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Encode one member's assignment, sorted. Apart from the version number, all versions are the same.

    Raises:
        InvalidInputError: The version does not exist, or a value is too large for its field.
    """
    assigned = partitions if isinstance(partitions, PartitionsByTopic) else PartitionsByTopic(partitions)
    parts = (
        primitives.version(version, NEWEST_VERSION, PROTOCOL),
        primitives.topic_partitions(assigned),
        primitives.nullable_bytes(user_data, "user data"),
    )
    return b"".join(parts)


def decode_assignment(data: bytes) -> MemberAssignment:
    """Decode one member's assignment.

    The partitions need not exist. The coordinator sends empty bytes to a member that the leader left out;
    these are not an assignment.

    Raises:
        MalformedBytesError: The bytes are not an assignment.
    """
    reader = primitives.Reader(data, "assignment")
    reader.version()
    return MemberAssignment(
        reader.topic_partitions("assigned partitions"), reader.nullable_bytes("user data")
    )


def read_subscription(reader: primitives.Reader) -> Subscription:
    """Read a subscription; see `decode_subscription`."""
    version = reader.version()
    topics = reader.strings(TOPICS)
    user_data = reader.nullable_bytes("user data")
    owned = reader.topic_partitions("owned partitions") if version >= OWNED_SINCE else NO_PARTITIONS
    generation = reader.int32("generation") if version >= GENERATION_SINCE else NO_GENERATION
    rack = reader.nullable_string("rack") if version >= RACK_SINCE else None
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)
