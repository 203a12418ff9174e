"""User data of `load-aware`: what a member sends its leader about its load.

The format grows at its end. Big-endian:

| field | type | content |
|---|---|---|
| version | INT16 | the newest version whose fields are all there; 1 or greater |
| generation | INT32 | of the owned partitions, for subscriptions before version 2; -1 for none |
| capacity | FLOAT64 | the member's capacity |

A later version appends fields and changes none, so a leader reads the fields that it knows of any version,
and ignores the bytes after them. The data is untrusted: fields that are missing, and capacities out of range,
have their defaults.
"""

from typing import NamedTuple

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._wire import primitives
from groupwright.assignors.errors import MalformedBytesError

VERSION = 1

MIN_CAPACITY = 0.001
MAX_CAPACITY = 1000.0


class MemberLoadData(NamedTuple):
    """The data that a member sends.

    Attributes:
        generation: The generation in which the owned partitions were assigned; -1 for none.
        capacity: The capacity, from `MIN_CAPACITY` to `MAX_CAPACITY`.
    """

    generation: int = NO_GENERATION
    capacity: float = 1.0


def encode_load_data(sent: MemberLoadData) -> bytes:
    """Encode the user data.

    Raises:
        InvalidInputError: The generation has more than 32 bits.
    """
    version = VERSION.to_bytes(2, "big")
    return version + primitives.int32(sent.generation, "generation") + primitives.float64(sent.capacity)


def decode_load_data(data: bytes | None) -> MemberLoadData:
    """Decode the user data, with defaults for everything that is missing or out of range."""
    reader = primitives.Reader(data or b"", "user data")
    generation, capacity = MemberLoadData()
    try:
        if reader.int16("version") >= VERSION:
            generation = max(NO_GENERATION, reader.int32("generation"))
            capacity = reader.float64("capacity")
    except MalformedBytesError:
        pass
    return MemberLoadData(generation, capacity if is_capacity(capacity) else 1.0)


def is_capacity(capacity: float) -> bool:
    """Return whether a capacity is within its range, which NaN is not."""
    return MIN_CAPACITY <= capacity <= MAX_CAPACITY
