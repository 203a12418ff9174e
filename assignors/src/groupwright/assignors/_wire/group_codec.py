"""ConsumerProtocol of a whole group: what the leader reads of all members, and writes for them, in arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire import batch_decoder as bulk
from groupwright.assignors._wire import consumer_protocol as wire
from groupwright.assignors._wire import packing, primitives
from groupwright.assignors._wire.consumer_protocol import Subscription

_VERSION_SIZE = 2  # bytes
_HEAD = 64  # bytes; lists that differ mostly do so in these


def decode_subscriptions(metadata: Iterable[tuple[str, bytes]]) -> list[Subscription]:
    """Return what `decode_subscription` does for each member of a group, in a fraction of the time.

    What members have in common is held once.

    Args:
        metadata: Each member's id and the bytes of its subscription.

    Raises:
        MalformedBytesError: Bytes hold no subscription; the message names the member.
    """
    subscriptions = read_subscriptions(*_columns(metadata))
    return list(
        map(
            Subscription,
            subscriptions.topics,
            subscriptions.user_data,
            subscriptions.owned,
            subscriptions.generations,
            subscriptions.racks,
        )
    )


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What the members of a group tell the leader: for each member, what `Subscription` has."""

    topics: list[tuple[str, ...]]
    user_data: list[bytes | None]
    owned: list[PartitionsByTopic]
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
    reader = bulk.BatchReader(metadata, names)
    versions = _read_versions(reader)
    topics = _read_topics(reader, metadata)
    user_data = reader.nullable_bytes()
    owned = reader.topic_partitions(versions >= wire.OWNED_SINCE).split()
    generations = reader.int32(versions >= wire.GENERATION_SINCE, NO_GENERATION)
    racks = [rack or None for rack in reader.nullable_strings(versions >= wire.RACK_SINCE)]
    generations = np.maximum(generations, NO_GENERATION)
    subscriptions = Subscriptions(topics, user_data, owned, generations.tolist(), racks)
    for number in np.flatnonzero(~reader.valid).tolist():
        decoded = wire.read_subscription(_member_reader(ids[number], metadata[number], names))
        subscriptions.topics[number] = decoded.topics
        subscriptions.user_data[number] = decoded.user_data
        subscriptions.owned[number] = decoded.owned
        subscriptions.generations[number] = decoded.generation
        subscriptions.racks[number] = decoded.rack
    return subscriptions


def encode_assignments(assignment: Assignment, version: int = wire.NEWEST_VERSION) -> dict[str, bytes]:
    """Return, by member id, what `encode_assignment` does for each member, in a fraction of the time.

    Raises:
        InvalidInputError: There is no such version, or a topic's name is too long.
    """
    packed, bounds = packing.pack_assignments(
        assignment.topics,
        assignment.member_starts,
        assignment.run_topics,
        assignment.run_starts,
        assignment.partitions,
        head=wire.written_version(version),
        tail=primitives.NULL_BYTES,
    )
    places = bounds.tolist()
    return {
        member: packed[start:end].tobytes()
        for member, start, end in zip(assignment.members, places, places[1:], strict=False)
    }


def _columns(metadata: Iterable[tuple[str, bytes]]) -> tuple[list[str], list[bytes]]:
    listed = list(metadata)
    return [id_ for id_, _ in listed], [data for _, data in listed]


def _member_reader(id_: str, data: bytes, names: dict[bytes, str]) -> primitives.Reader:
    return primitives.Reader(data, f"subscription of member {id_!r}", names)


def _read_versions(reader: bulk.BatchReader) -> Int64Array:
    versions = reader.int16()
    reader.valid &= versions >= 0
    return versions


def _read_topics(reader: bulk.BatchReader, metadata: Sequence[bytes]) -> list[tuple[str, ...]]:
    """Read the topics, which most members of most groups have in common to the byte.

    Of all lists that begin alike one is read first. Those that go on alike need not be.
    """
    heads = [data[_VERSION_SIZE : _VERSION_SIZE + _HEAD] for data in metadata]
    first_of: dict[bytes, int] = {}
    for number, head in enumerate(heads):
        first_of.setdefault(head, number)
    firsts = np.array(list(first_of.values()), np.int64)
    starts = reader.at
    lists = reader.strings(firsts)
    ends = np.where(reader.valid, reader.at - reader.starts, 0)[firsts].tolist()
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
    reader.at = starts + sizes
    others = np.flatnonzero(sizes == 0)
    for number, listed in zip(others.tolist(), reader.strings(others), strict=True):
        topics[number] = listed
    return topics
