"""ConsumerProtocol: what a member and its leader tell each other, as bytes inside JoinGroup and SyncGroup.

The formats are those of Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0
to 3. As Kafka does, a reader takes a newer version for the newest that it knows, and does not look at bytes
that follow the last field, in any version. Stricter than Kafka, it refuses strings that are not UTF-8 (Kafka
replaces the odd bytes) and lengths below -1 (Kafka takes them for null).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire import primitives
from groupwright.assignors.errors import InvalidInputError

NEWEST_VERSION = 3
"""The newest version of both formats."""

OWNED_SINCE = 1
GENERATION_SINCE = 2
RACK_SINCE = 3
"""The versions of a subscription that brought these fields."""

TOPICS = "topics"
"""What topics are called in error messages."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member tells the leader when it joins.

    Attributes:
        topics: The topics that it wants.
        user_data: What its assignor's `user_data` returned. None and no bytes are not the same: Java
            members send None where librdkafka's send no bytes.
        owned: What it still owns (version 1, KIP-429).
        generation: The generation in which it got that (version 2, KIP-792); -1 for none.
        rack: Where it runs (version 3, KIP-881), or None.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: PartitionsByTopic = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What the leader tells a member.

    Attributes:
        partitions: What the member gets.
        user_data: What the leader's assignor has to say to it; Groupwright's leader writes None.
    """

    partitions: PartitionsByTopic
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Return the bytes of a subscription; fields that the version does not have are left out.

    Topics and partitions are sorted, since a coordinator compares bytes, and takes a member whose bytes
    differ for one that has changed its mind (KAFKA-12898).

    Raises:
        InvalidInputError: There is no such version, or a value is too large for its field.
    """
    parts = [
        written_version(version),
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
    """Return the subscription that the bytes hold.

    Fields of later versions have their defaults; a rack of no characters is None, and every negative
    generation is -1, as in Kafka. Owned partitions are claims, and need not exist.

    Raises:
        MalformedBytesError: They hold none.
    """
    return read_subscription(primitives.Reader(data, "subscription"))


def encode_assignment(
    partitions: Mapping[str, Iterable[int]], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Return the bytes of what one member gets, sorted; they are the same in all versions but for its number.

    Raises:
        InvalidInputError: There is no such version, or a value is too large for its field.
    """
    share = partitions if isinstance(partitions, PartitionsByTopic) else PartitionsByTopic(partitions)
    written = (
        written_version(version),
        primitives.topic_partitions(share),
        primitives.nullable_bytes(user_data, "user data"),
    )
    return b"".join(written)


def decode_assignment(data: bytes) -> MemberAssignment:
    """Return the member's assignment that the bytes hold.

    Whether the partitions exist is not looked at. A coordinator gives no bytes at all to a member that the
    leader left out; they hold no assignment.

    Raises:
        MalformedBytesError: They hold none.
    """
    reader = primitives.Reader(data, "assignment")
    read_version(reader)
    return MemberAssignment(
        reader.topic_partitions("assigned partitions"), reader.nullable_bytes("user data")
    )


def written_version(version: int) -> bytes:
    """Write the version that both formats begin with.

    Raises:
        InvalidInputError: There is no such version.
    """
    if not 0 <= version <= NEWEST_VERSION:
        raise InvalidInputError(f"ConsumerProtocol has versions 0 to {NEWEST_VERSION}, not {version}")
    return version.to_bytes(2, "big")


def read_version(reader: primitives.Reader) -> int:
    """Read the version that both formats begin with.

    Raises:
        MalformedBytesError: It is negative, or there is none.
    """
    version = reader.int16("version")
    if version < 0:
        raise reader.malformed("a version of 0 or more", f"{version}", back=2)
    return version


def read_subscription(reader: primitives.Reader) -> Subscription:
    """Read a subscription, as `decode_subscription` does."""
    version = read_version(reader)
    topics = reader.strings(TOPICS)
    user_data = reader.nullable_bytes("user data")
    owned = reader.topic_partitions("owned partitions") if version >= OWNED_SINCE else NO_PARTITIONS
    generation = reader.int32("generation") if version >= GENERATION_SINCE else NO_GENERATION
    rack = reader.nullable_string("rack") if version >= RACK_SINCE else None
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)
