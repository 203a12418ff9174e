"""ConsumerProtocol: what members and leader tell each other, as bytes inside JoinGroup and SyncGroup.

The formats are those of Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0
to 3. As Kafka does, a reader takes a newer version for the newest that it knows, and does not look at bytes
that follow the last field, in any version. Stricter than Kafka, it refuses strings that are not UTF-8 (Kafka
replaces the odd bytes) and lengths below -1 (Kafka takes them for null).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from groupwright.assignors import binary, bulk
from groupwright.assignors.assignment import Assignment
from groupwright.assignors.errors import InvalidInputError
from groupwright.assignors.model import NO_GENERATION
from groupwright.assignors.partitions import NO_PARTITIONS, TopicPartitions

NEWEST_VERSION = 3
"""The newest version of both formats."""

_OWNED_SINCE = 1
_GENERATION_SINCE = 2
_RACK_SINCE = 3

_TOPICS = "topics"
_OWNED = "owned partitions"
_NO_ELEMENTS = b"\0\0\0\0"
_HEAD = 64  # bytes; lists that differ mostly do so in these


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
    owned: TopicPartitions = NO_PARTITIONS
    generation: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What the leader tells a member.

    Attributes:
        partitions: What the member gets.
        user_data: What the leader's assignor has to say to it; Groupwright's leader writes None.
    """

    partitions: TopicPartitions
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Return the bytes of a subscription; fields that the version does not have are left out.

    Topics and partitions are sorted, since a coordinator compares bytes, and takes a member whose bytes
    differ for one that has changed its mind (KAFKA-12898).

    Raises:
        InvalidInputError: There is no such version, or a value is too large for its field.
    """
    parts = [
        _version(version),
        binary.strings(subscription.topics, "topics"),
        binary.nullable_bytes(subscription.user_data, "user data"),
    ]
    if version >= _OWNED_SINCE:
        parts.append(binary.topic_partitions(subscription.owned))
    if version >= _GENERATION_SINCE:
        parts.append(binary.int32(subscription.generation, "generation"))
    if version >= _RACK_SINCE:
        parts.append(binary.nullable_string(subscription.rack, "rack"))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """Return the subscription that the bytes hold.

    Fields of later versions have their defaults; a rack of no characters is None, and every negative
    generation is -1, as in Kafka. Owned partitions are claims, and need not exist.

    Raises:
        MalformedBytesError: They hold none.
    """
    reader = binary.Reader(data, "subscription")
    version = _read_version(reader)
    topics = reader.strings("topics")
    user_data = reader.nullable_bytes("user data")
    owned = reader.topic_partitions(_OWNED) if version >= _OWNED_SINCE else NO_PARTITIONS
    return _subscription(reader, version, topics, user_data, owned)


def decode_subscriptions(metadata: Iterable[tuple[str, bytes]]) -> list[Subscription]:
    """Return what `decode_subscription` does for each member of a group, in a fraction of the time.

    What members have in common is held once.

    Args:
        metadata: Each member's id and the bytes of its subscription.

    Raises:
        MalformedBytesError: Bytes hold no subscription; the message names the member.
    """
    readers = _readers(metadata)
    versions = [_read_version(reader) for reader in readers]
    topics = _read_topics(readers)
    user_data = [reader.nullable_bytes("user data") for reader in readers]
    owned = _read_owned(readers, versions)
    return list(map(_subscription, readers, versions, topics, user_data, owned))


def decode_topics(metadata: Iterable[tuple[str, bytes]]) -> list[tuple[str, ...]]:
    """Return the topics of each member's subscription, and look at nothing else.

    Args:
        metadata: As in `decode_subscriptions`.

    Raises:
        MalformedBytesError: A version or topics cannot be read; the message names the member.
    """
    readers = _readers(metadata)
    for reader in readers:
        _read_version(reader)
    return _read_topics(readers)


def encode_assignment(
    partitions: Mapping[str, Iterable[int]], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Return the bytes of what one member gets, sorted; they are the same in all versions but for its number.

    Raises:
        InvalidInputError: There is no such version, or a value is too large for its field.
    """
    share = partitions if isinstance(partitions, TopicPartitions) else TopicPartitions(partitions)
    written = _version(version), binary.topic_partitions(share), binary.nullable_bytes(user_data, "user data")
    return b"".join(written)


def encode_assignments(assignment: Assignment, version: int = NEWEST_VERSION) -> dict[str, bytes]:
    """Return, by member id, what `encode_assignment` does for each member, in a fraction of the time.

    Raises:
        InvalidInputError: There is no such version, or a topic's name is too long.
    """
    runs, starts = binary.pack_runs(
        assignment.topics, assignment.run_topics, assignment.run_starts, assignment.partitions
    )
    head = _version(version)
    topics = np.diff(assignment.member_starts).tolist()
    bounds = starts[assignment.member_starts].tolist()
    return {
        member: b"".join((head, binary.int32(count, "topics"), runs[start:end], binary.NULL_BYTES))
        for member, count, start, end in zip(assignment.members, topics, bounds, bounds[1:], strict=False)
    }


def decode_assignment(data: bytes) -> MemberAssignment:
    """Return the member's assignment that the bytes hold.

    Whether the partitions exist is not looked at. A coordinator gives no bytes at all to a member that the
    leader left out; they hold no assignment.

    Raises:
        MalformedBytesError: They hold none.
    """
    reader = binary.Reader(data, "assignment")
    _read_version(reader)
    return MemberAssignment(
        reader.topic_partitions("assigned partitions"), reader.nullable_bytes("user data")
    )


def _version(version: int) -> bytes:
    if not 0 <= version <= NEWEST_VERSION:
        raise InvalidInputError(f"ConsumerProtocol has versions 0 to {NEWEST_VERSION}, not {version}")
    return version.to_bytes(2, "big")


def _read_version(reader: binary.Reader) -> int:
    version = reader.int16("version")
    if version < 0:
        raise reader.malformed("a version of 0 or more", f"{version}", back=2)
    return version


def _readers(metadata: Iterable[tuple[str, bytes]]) -> list[binary.Reader]:
    names: dict[bytes, str] = {}
    return [binary.Reader(data, f"subscription of member {id_!r}", names) for id_, data in metadata]


def _read_topics(readers: Sequence[binary.Reader]) -> list[tuple[str, ...]]:
    """Read the topics, which most members of most groups have in common to the byte.

    Of all lists that begin alike one is read first. Those that go on alike need not be.
    """
    heads = [reader.data[reader.offset : reader.offset + _HEAD] for reader in readers]
    firsts: dict[bytes, binary.Reader] = {}
    for head, reader in zip(heads, readers, strict=True):
        firsts.setdefault(head, reader)
    known = dict(zip(firsts, _read_lists(list(firsts.values())), strict=True))
    are_known = [
        reader is firsts[head] or reader.skip(known[head][0])
        for head, reader in zip(heads, readers, strict=True)
    ]
    others = iter(
        _read_lists([reader for reader, is_known in zip(readers, are_known, strict=True) if not is_known])
    )
    return [
        (known[head] if is_known else next(others))[1]
        for head, is_known in zip(heads, are_known, strict=True)
    ]


def _read_lists(readers: Sequence[binary.Reader]) -> list[tuple[bytes, tuple[str, ...]]]:
    """Read lists of topics, and return the bytes of each, and what they hold."""
    starts = [reader.offset for reader in readers]
    lists = [
        reader.strings(_TOPICS) if read is None else read
        for reader, read in zip(readers, bulk.strings(readers), strict=True)
    ]
    return [
        (reader.since(start), topics) for reader, start, topics in zip(readers, starts, lists, strict=True)
    ]


def _read_owned(readers: Sequence[binary.Reader], versions: Sequence[int]) -> list[TopicPartitions]:
    claim = [
        version >= _OWNED_SINCE and not reader.skip(_NO_ELEMENTS)
        for reader, version in zip(readers, versions, strict=True)
    ]
    owners = list(compress(readers, claim))
    found = (
        reader.topic_partitions(_OWNED) if read is None else read
        for reader, read in zip(owners, bulk.topic_partitions(owners), strict=True)
    )
    return [next(found) if claims else NO_PARTITIONS for claims in claim]


def _subscription(
    reader: binary.Reader,
    version: int,
    topics: tuple[str, ...],
    user_data: bytes | None,
    owned: TopicPartitions,
) -> Subscription:
    """Read what follows the owned partitions, and return all."""
    generation = reader.int32("generation") if version >= _GENERATION_SINCE else NO_GENERATION
    rack = reader.nullable_string("rack") if version >= _RACK_SINCE else None
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)
