"""ConsumerProtocol: what members and leader tell each other, as bytes inside JoinGroup and SyncGroup.

The formats are those of Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0
to 3. As Kafka does, a reader takes a newer version for the newest that it knows, and does not look at bytes
that follow the last field, in any version. Stricter than Kafka, it refuses strings that are not UTF-8 (Kafka
replaces the odd bytes) and lengths below -1 (Kafka takes them for null).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
_VERSION_SIZE = 2  # bytes
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
    return _decode_subscription(binary.Reader(data, "subscription"))


def decode_subscriptions(metadata: Iterable[tuple[str, bytes]]) -> list[Subscription]:
    """Return what `decode_subscription` does for each member of a group, in a fraction of the time.

    What members have in common is held once.

    Args:
        metadata: Each member's id and the bytes of its subscription.

    Raises:
        MalformedBytesError: Bytes hold no subscription; the message names the member.
    """
    said = read_subscriptions(*_columns(metadata))
    return list(map(Subscription, said.topics, said.user_data, said.owned, said.generations, said.racks))


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What the members of a group tell the leader: for each member, what `Subscription` has."""

    topics: list[tuple[str, ...]]
    user_data: list[bytes | None]
    owned: list[TopicPartitions]
    generations: list[int]
    racks: list[str | None]


def read_subscriptions(ids: Sequence[str], metadata: Sequence[bytes]) -> Subscriptions:
    """Return what `decode_subscriptions` does, field by field.

    Args:
        ids: The members' ids.
        metadata: The bytes of their subscriptions.

    Raises:
        MalformedBytesError: Bytes hold no subscription; the message names the member.
    """
    names: dict[bytes, str] = {}
    cursor = bulk.Cursor(metadata, names)
    versions = _read_versions(cursor)
    topics = _read_topics(cursor, metadata)
    user_data = cursor.nullable_bytes()
    owned = cursor.topic_partitions(versions >= _OWNED_SINCE).each()
    generations = cursor.int32(versions >= _GENERATION_SINCE, NO_GENERATION)
    racks = [rack or None for rack in cursor.nullable_strings(versions >= _RACK_SINCE)]
    generations = np.maximum(generations, NO_GENERATION)
    said = Subscriptions(topics, user_data, owned, generations.tolist(), racks)
    for number in np.flatnonzero(~cursor.good).tolist():
        alone = _decode_subscription(_reader(ids[number], metadata[number], names))
        said.topics[number] = alone.topics
        said.user_data[number] = alone.user_data
        said.owned[number] = alone.owned
        said.generations[number] = alone.generation
        said.racks[number] = alone.rack
    return said


def decode_topics(metadata: Iterable[tuple[str, bytes]]) -> list[tuple[str, ...]]:
    """Return the topics of each member's subscription, and look at nothing else.

    Args:
        metadata: As in `decode_subscriptions`.

    Raises:
        MalformedBytesError: A version or topics cannot be read; the message names the member.
    """
    ids, data = _columns(metadata)
    names: dict[bytes, str] = {}
    cursor = bulk.Cursor(data, names)
    _read_versions(cursor)
    topics = _read_topics(cursor, data)
    for number in np.flatnonzero(~cursor.good).tolist():
        reader = _reader(ids[number], data[number], names)
        _read_version(reader)
        topics[number] = reader.strings(_TOPICS)
    return topics


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
    packed, bounds = binary.pack_lists(
        assignment.topics,
        assignment.member_starts,
        assignment.run_topics,
        assignment.run_starts,
        assignment.partitions,
        head=_version(version),
        tail=binary.NULL_BYTES,
    )
    places = bounds.tolist()
    return {
        member: packed[start:end].tobytes()
        for member, start, end in zip(assignment.members, places, places[1:], strict=False)
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


def _columns(metadata: Iterable[tuple[str, bytes]]) -> tuple[list[str], list[bytes]]:
    listed = list(metadata)
    return [id_ for id_, _ in listed], [data for _, data in listed]


def _reader(id_: str, data: bytes, names: dict[bytes, str]) -> binary.Reader:
    return binary.Reader(data, f"subscription of member {id_!r}", names)


def _read_versions(cursor: bulk.Cursor) -> npt.NDArray[np.int64]:
    versions = cursor.int16()
    cursor.good &= versions >= 0
    return versions


def _read_topics(cursor: bulk.Cursor, metadata: Sequence[bytes]) -> list[tuple[str, ...]]:
    """Read the topics, which most members of most groups have in common to the byte.

    Of all lists that begin alike one is read first. Those that go on alike need not be.
    """
    heads = [data[_VERSION_SIZE : _VERSION_SIZE + _HEAD] for data in metadata]
    first_of: dict[bytes, int] = {}
    for number, head in enumerate(heads):
        first_of.setdefault(head, number)
    firsts = np.array(list(first_of.values()), np.int64)
    starts = cursor.at
    lists = cursor.strings(firsts)
    ends = np.where(cursor.good, cursor.at - cursor.starts, 0)[firsts].tolist()
    known = {
        head: (metadata[number][_VERSION_SIZE:end], listed)
        for (head, number), end, listed in zip(first_of.items(), ends, lists, strict=True)
    }
    topics = [known[head][1] for head in heads]
    sizes = np.array(
        [
            len(known[head][0]) if data.startswith(known[head][0], _VERSION_SIZE) else 0
            for data, head in zip(metadata, heads, strict=True)
        ],
        np.int64,
    )
    cursor.at = starts + sizes
    others = np.flatnonzero(sizes == 0)
    for number, listed in zip(others.tolist(), cursor.strings(others), strict=True):
        topics[number] = listed
    return topics


def _decode_subscription(reader: binary.Reader) -> Subscription:
    version = _read_version(reader)
    topics = reader.strings(_TOPICS)
    user_data = reader.nullable_bytes("user data")
    owned = reader.topic_partitions("owned partitions") if version >= _OWNED_SINCE else NO_PARTITIONS
    generation = reader.int32("generation") if version >= _GENERATION_SINCE else NO_GENERATION
    rack = reader.nullable_string("rack") if version >= _RACK_SINCE else None
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)
