"""User data of `load-aware`: a member's load, as it sends it to the group leader.

Newer versions append fields. Integers and floats are big-endian:

| field | type | content |
|---|---|---|
| version | INT16 | the lowest version that has all fields sent; 1 or greater |
| generation | INT32 | of the owned partitions, for subscriptions before version 2; -1 for none |
| capacity | FLOAT64 | the member's capacity |
| processing_times | ARRAY of topic STRING, times BYTES | since version 2; see below |
| previous_assignment | user data of Kafka's `sticky`, version 1 | since version 3; see below |

`times` is a sequence of pairs: a partition as INT32, and the milliseconds that the member took for each of
its messages as FLOAT16 (IEEE 754 binary16), from 0 to 65,504. These are the partitions that the member was
assigned last, as far as it has measured them.

`previous_assignment` has the partitions that the member was assigned last, and the generation. Only members
that rebalance eagerly send it: they have revoked all partitions when they join, so their subscriptions have
none.

A member sends the lowest version that has all its fields. A later version appends fields and changes none, so
a leader reads the fields that it knows of any version, and ignores the bytes after them. The data is
untrusted: fields that are missing, and capacities out of range, have their defaults.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire import primitives
from groupwright.assignors._wire.user_data import Owned, encode_owned
from groupwright.assignors.errors import MalformedBytesError

VERSION = 1
PROCESSING_TIMES_VERSION = 2
PREVIOUS_ASSIGNMENT_VERSION = 3

MIN_CAPACITY = 0.001
MAX_CAPACITY = 1000.0
MAX_MILLISECONDS = 65_504.0
"""The largest FLOAT16."""


class MemberLoadData(NamedTuple):
    """Load data of one member.

    Attributes:
        generation: The generation in which the owned partitions were assigned; -1 for none.
        capacity: The capacity, from `MIN_CAPACITY` to `MAX_CAPACITY`.
        processing_times: Seconds per message, by topic and partition. Only members set it: leaders read all
            members' times at once (`sent_processing_times`).
        previous_assignment: The partitions that were assigned in the generation. Only eager members set it:
            leaders read those of all members at once (`previous_assignment_data`).
    """

    generation: int = NO_GENERATION
    capacity: float = 1.0
    processing_times: Mapping[str, Mapping[int, float]] = MappingProxyType({})
    previous_assignment: PartitionsByTopic = NO_PARTITIONS


def encode_load_data(sent: MemberLoadData) -> bytes:
    """Encode the user data.

    Raises:
        InvalidInputError: The generation has more than 32 bits.
    """
    version = PROCESSING_TIMES_VERSION if sent.processing_times else VERSION
    if sent.previous_assignment:
        version = PREVIOUS_ASSIGNMENT_VERSION
    fields = [
        version.to_bytes(2, "big"),
        primitives.int32(sent.generation, "generation"),
        primitives.float64(sent.capacity),
    ]
    if version >= PROCESSING_TIMES_VERSION:
        fields.append(primitives.int32(len(sent.processing_times), "the number of topics"))
        for topic, times in sent.processing_times.items():
            pairs = b"".join(
                struct.pack(">ie", number, min(seconds * 1000, MAX_MILLISECONDS))
                for number, seconds in times.items()
            )
            fields += primitives.string(topic, "topic"), primitives.nullable_bytes(pairs, "times")
    if version >= PREVIOUS_ASSIGNMENT_VERSION:
        fields.append(encode_owned(Owned(sent.previous_assignment, sent.generation)))
    return b"".join(fields)


def decode_load_data(data: bytes | None) -> MemberLoadData:
    """Decode the user data, with defaults for everything that is missing or out of range."""
    reader = primitives.Reader(data or b"", "user data")
    generation, capacity = NO_GENERATION, 1.0
    try:
        if reader.int16("version") >= VERSION:
            generation = max(NO_GENERATION, reader.int32("generation"))
            capacity = reader.float64("capacity")
    except MalformedBytesError:
        pass
    return MemberLoadData(generation, capacity if is_capacity(capacity) else 1.0)


def previous_assignment_data(data: bytes | None) -> bytes:
    """Return the field `previous_assignment` and the bytes after it; empty if there is none."""
    reader = primitives.Reader(data or b"", "user data")
    try:
        if reader.int16("version") < PREVIOUS_ASSIGNMENT_VERSION:
            return b""
        reader.int32("generation")
        reader.float64("capacity")
        for _ in range(reader.int32("the number of topics")):
            reader.string("topic")
            reader.nullable_bytes("times")
    except MalformedBytesError:
        return b""
    return reader.data[reader.offset :]


def is_capacity(capacity: float) -> bool:
    """Return whether a capacity is within its range, which NaN is not."""
    return MIN_CAPACITY <= capacity <= MAX_CAPACITY
