"""Group codec: decodes the subscriptions, and encodes the assignments, of all members at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import (
    Int32Array,
    Int64Array,
    Offsets,
    PartitionArray,
    UInt64Array,
)
from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import NO_GENERATION, JoinedMember, Member
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire import consumer_protocol, primitives
from groupwright.assignors._wire.batch_decoder import BatchReader, unaligned_view
from groupwright.assignors._wire.consumer_protocol import Subscription
from groupwright.assignors.errors import MalformedBytesError

_WORD = 8
_CHUNK = 2**14  # runs encoded at a time, so that the intermediate arrays stay in the processor's cache
_VERSION_SIZE = 2  # bytes
_PREFIX_BYTES = 64  # most lists of topics that differ do so within these


class DecodedMembers(NamedTuple):
    """The members in JoinGroup's response.

    Attributes:
        members: The members whose subscriptions could be decoded, in the response's order.
        undecodable: By member id, the reason why a subscription or user data could not be decoded.
    """

    members: list[Member]
    undecodable: dict[str, str]


def decode_members(joined: Sequence[JoinedMember], assignor: Assignor | None = None) -> DecodedMembers:
    """Decode the subscriptions in JoinGroup's response.

    A member whose subscription cannot be decoded is not among the members: it claims no partitions and is
    assigned none. A member whose user data the assignor's `check_user_data` rejects is among them, without
    user data.

    Args:
        joined: The members in JoinGroup's response.
        assignor: The assignor that the user data is for; None if user data need not be checked.
    """
    subscriptions = read_subscriptions([member.metadata for member in joined])
    reasons: dict[int, str] = {number: str(error) for number, error in subscriptions.malformed.items()}
    if assignor is not None and type(assignor).check_user_data is not Assignor.check_user_data:
        for number, data in enumerate(subscriptions.user_data):
            reason = None if data is None or number in reasons else _user_data_error(assignor, data)
            if reason is not None:
                reasons[number] = reason
                subscriptions.user_data[number] = None
    members = map(
        Member.from_fields,
        [member.id for member in joined],
        subscriptions.topics,
        subscriptions.owned,
        subscriptions.generations,
        [member.instance_id for member in joined],
        subscriptions.racks,
        subscriptions.user_data,
    )
    return DecodedMembers(
        [member for number, member in enumerate(members) if number not in subscriptions.malformed],
        {joined[number].id: reason for number, reason in sorted(reasons.items())},
    )


def _user_data_error(assignor: Assignor, data: bytes) -> str | None:
    try:
        assignor.check_user_data(data)
    except Exception as error:  # noqa: BLE001 - a custom assignor's decoder, and bytes of another client
        return f"malformed user data of the assignor {assignor.name!r}: {type(error).__name__}: {error}"
    return None


def decode_subscriptions(metadata: Iterable[bytes]) -> list[Subscription | MalformedBytesError]:
    """Decode the subscriptions of a group's members, much faster than `decode_subscription` one by one.

    Members with equal topics share one tuple. In the place of a subscription that cannot be decoded is the
    error.
    """
    columns = read_subscriptions(list(metadata))
    subscriptions = map(
        Subscription, columns.topics, columns.user_data, columns.owned, columns.generations, columns.racks
    )
    return [columns.malformed.get(number, each) for number, each in enumerate(subscriptions)]


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of a group's members by field, one element per member. See `Subscription`.

    Attributes:
        malformed: By index, the errors of the subscriptions that cannot be decoded. Their fields are empty.
    """

    topics: list[tuple[str, ...]]
    user_data: list[bytes | None]
    owned: list[PartitionsByTopic]
    generations: list[int]
    racks: list[str | None]
    malformed: dict[int, MalformedBytesError]

    def set(self, number: int, subscription: Subscription) -> None:
        """Replace the fields of one member."""
        self.topics[number] = subscription.topics
        self.user_data[number] = subscription.user_data
        self.owned[number] = subscription.owned
        self.generations[number] = subscription.generation
        self.racks[number] = subscription.rack


def read_subscriptions(metadata: Sequence[bytes]) -> Subscriptions:
    """Decode the subscriptions of a group's members into one list per field."""
    names: dict[bytes, str] = {}
    reader = BatchReader(metadata, names)
    versions = _read_versions(reader)
    topics = _read_topics(reader, metadata)
    user_data = reader.nullable_bytes()
    owned = reader.topic_partitions(versions >= consumer_protocol.OWNED_SINCE).split()
    generations = reader.int32(versions >= consumer_protocol.GENERATION_SINCE, NO_GENERATION)
    racks = [rack or None for rack in reader.nullable_strings(versions >= consumer_protocol.RACK_SINCE)]
    generations = np.maximum(generations, NO_GENERATION)
    subscriptions = Subscriptions(topics, user_data, owned, generations.tolist(), racks, {})
    for number in np.flatnonzero(~reader.valid).tolist():
        one = primitives.Reader(metadata[number], "subscription", names)
        try:
            subscriptions.set(number, consumer_protocol.read_subscription(one))
        except MalformedBytesError as error:
            subscriptions.set(number, Subscription(()))
            subscriptions.malformed[number] = error.with_traceback(None)
    return subscriptions


def encode_assignments(
    assignment: Assignment,
    version: int = consumer_protocol.NEWEST_VERSION,
    *,
    others: Iterable[str] = (),
) -> dict[str, bytes]:
    """Encode the assignments of all members, much faster than `encode_assignment` one by one.

    Args:
        assignment: The assignment.
        version: The version of ConsumerProtocol.
        others: The ids of members without an entry in the assignment, which are assigned nothing. Java's
            consumer fails if its leader leaves it out.

    Returns:
        The bytes by member id.

    Raises:
        InvalidInputError: The version does not exist, or a topic's name is too long.
    """
    packed, bounds = _pack_assignments(
        assignment.topics,
        assignment.member_starts,
        assignment.run_topics,
        assignment.run_starts,
        assignment.partitions,
        head=primitives.version(version, consumer_protocol.NEWEST_VERSION, consumer_protocol.PROTOCOL),
        tail=primitives.NULL_BYTES,
    )
    positions = bounds.tolist()
    encoded = {
        member: packed[start:end].tobytes()
        for member, start, end in zip(assignment.members, positions, positions[1:], strict=False)
    }
    for member in others:
        encoded.setdefault(member, consumer_protocol.encode_assignment({}, version=version))
    return encoded


def _read_versions(reader: BatchReader) -> Int64Array:
    versions = reader.int16()
    reader.valid &= versions >= 0
    return versions


def _read_topics(reader: BatchReader, metadata: Sequence[bytes]) -> list[tuple[str, ...]]:
    """Read the topics, which are the same bytes for most members of most groups.

    Of all lists with the same first bytes, one is decoded. The others are compared with it, and decoded only
    if they differ.
    """
    prefixes = [data[_VERSION_SIZE : _VERSION_SIZE + _PREFIX_BYTES] for data in metadata]
    first_of: dict[bytes, int] = {}
    for number, prefix in enumerate(prefixes):
        first_of.setdefault(prefix, number)
    firsts = np.array(list(first_of.values()), np.int64)
    starts = reader.at
    lists = reader.strings(firsts)
    ends = np.where(reader.valid, reader.at - reader.starts, 0)[firsts].tolist()
    known = {
        prefix: (metadata[number][_VERSION_SIZE:end], listed)
        for (prefix, number), end, listed in zip(first_of.items(), ends, lists, strict=True)
    }
    topics = [known[prefix][1] for prefix in prefixes]
    sizes = np.array(
        [
            len(known[prefix][0]) if data.startswith(known[prefix][0], _VERSION_SIZE) else 0
            for data, prefix in zip(metadata, prefixes, strict=True)
        ],
        np.int64,
    )
    reader.at = starts + sizes
    others = np.flatnonzero(sizes == 0)
    for number, listed in zip(others.tolist(), reader.strings(others), strict=True):
        topics[number] = listed
    return topics


def _pack_assignments(
    topics: Sequence[str],
    list_starts: Offsets,
    run_topics: Int32Array,
    run_starts: Offsets,
    partitions: PartitionArray,
    *,
    head: bytes = b"",
    tail: bytes = b"",
) -> tuple[memoryview, Offsets]:
    """Encode arrays of runs, each a topic and the array of its partitions, into one buffer.

    Args:
        topics: The names of the topics.
        list_starts: `(arrays + 1,) int64`: the first run of each array, and the number of runs.
        run_topics: `(runs,) int32`: the topic of each run, as an index into `topics`.
        run_starts: `(runs + 1,) int64`: the first partition of each run, and the number of partitions. No run
            is empty.
        partitions: `(partitions,) int32`: the partitions of all runs.
        head: Bytes before each array.
        tail: Bytes after each array.

    Returns:
        The buffer, and the positions of the heads in it, followed by its size.
    """
    names = [primitives.string(topic, "topic") for topic in topics]
    words = -(-max(map(len, names), default=0) // _WORD)
    padded = np.frombuffer(b"".join(name.ljust(words * _WORD, b"\0") for name in names), np.uint64)
    name_words = padded.reshape(len(names), words)
    name_sizes = np.array([len(name) for name in names], np.int64)
    counts, lists = np.diff(run_starts), np.diff(list_starts)
    sizes = name_sizes[run_topics] + 4 + 4 * counts
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    frame = len(head) + 4 + len(tail)  # the bytes of an array that are not runs; 4 are its count
    bounds = ends[list_starts] + frame * np.arange(list_starts.size)
    starts = ends[:-1] + np.repeat(frame * np.arange(lists.size) + len(head) + 4, lists)
    packed = np.empty(bounds[-1], np.uint8)
    for first in range(0, counts.size, _CHUNK):
        runs = slice(first, min(first + _CHUNK, counts.size))
        topic_of_run = run_topics[runs]
        _pack_names(packed, starts[runs], name_sizes[topic_of_run], name_words, topic_of_run)
        numbers = partitions[run_starts[runs.start] : run_starts[runs.stop]]
        _pack_counted(packed, starts[runs] + name_sizes[topic_of_run], counts[runs], numbers)
    _pack_bytes(packed, bounds[:-1], head)
    unaligned_view(packed, ">i4")[bounds[:-1] + len(head)] = lists
    _pack_bytes(packed, bounds[1:] - len(tail), tail)
    return packed.data, bounds


def _pack_bytes(packed: npt.NDArray[np.uint8], at: Int64Array, data: bytes) -> None:
    for offset, byte in enumerate(data):
        packed[at + offset] = byte


def _pack_names(
    packed: npt.NDArray[np.uint8],
    at: Int64Array,
    sizes: Int64Array,
    words: UInt64Array,
    topics: Int32Array,
) -> None:
    """Write names in words of 8 bytes.

    The last word of a name may overwrite the count and the first partition after it, which are written later.
    """
    view = unaligned_view(packed, "u8")
    for word in range(words.shape[1]):
        longer = np.flatnonzero(sizes > word * _WORD)
        view[at[longer] + word * _WORD] = words[topics[longer], word]


def _pack_counted(
    packed: npt.NDArray[np.uint8],
    at: Int64Array,
    counts: Int64Array,
    partitions: PartitionArray,
) -> None:
    """Write counts, each followed by that number of partitions."""
    view = unaligned_view(packed, ">i4")
    view[at] = counts
    before = np.cumsum(counts) - counts
    view[np.repeat(at + 4 - 4 * before, counts) + 4 * np.arange(partitions.size)] = partitions
