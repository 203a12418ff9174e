"""The user data of Kafka's sticky assignors: what a member owned, and in which generation."""

from collections.abc import Sequence
from typing import NamedTuple

from groupwright.assignors import binary, bulk
from groupwright.assignors.errors import MalformedBytesError
from groupwright.assignors.model import NO_GENERATION
from groupwright.assignors.partitions import NO_PARTITIONS, TopicPartitions


class Owned(NamedTuple):
    """What a member says it owns.

    Attributes:
        partitions: The partitions, which need not exist.
        generation: The generation in which it got them; -1 if it does not say.
    """

    partitions: TopicPartitions = NO_PARTITIONS
    generation: int = NO_GENERATION


NOTHING = Owned()
"""What a member owns that says nothing, or nothing that can be read."""


def encode_owned(owned: Owned) -> bytes:
    """Return the user data of `sticky`, version 1: the partitions by topic, and the generation.

    Raises:
        InvalidInputError: A topic's name is too long, or the generation has more than 32 bits.
    """
    return binary.topic_partitions(owned.partitions) + encode_generation(owned.generation)


def decode_owned(data: Sequence[bytes | None]) -> list[Owned]:
    """Return what the members' user data of `sticky` say: of version 1, or of version 0, without generation.

    As in Java, user data that can be read as neither says nothing, and bytes that follow are not looked at.
    """
    names: dict[bytes, str] = {}
    readers = [binary.Reader(bytes_, "user data", names) for bytes_ in data if bytes_]
    owned = map(_read_owned, readers, bulk.topic_partitions(readers))
    return [next(owned) if bytes_ else NOTHING for bytes_ in data]


def _read_owned(reader: binary.Reader, partitions: TopicPartitions | None) -> Owned:
    """Read on after the partitions, or from them on if they are None."""
    try:
        partitions = reader.topic_partitions("previous assignment") if partitions is None else partitions
    except MalformedBytesError:
        return NOTHING
    try:
        return Owned(partitions, reader.int32("generation"))
    except MalformedBytesError:
        return Owned(partitions)


def encode_generation(generation: int) -> bytes:
    """Return the user data of `cooperative-sticky`: the generation alone.

    Raises:
        InvalidInputError: It has more than 32 bits.
    """
    return binary.int32(generation, "generation")


def decode_generation(data: bytes | None) -> int:
    """Return the generation that user data of `cooperative-sticky` says, or -1 if it says none."""
    try:
        return binary.Reader(data or b"", "user data").int32("generation")
    except MalformedBytesError:
        return NO_GENERATION
