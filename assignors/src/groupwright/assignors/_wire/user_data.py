"""User data of Kafka's sticky assignors: the partitions that a member owned, and their generation."""

from __future__ import annotations

from typing import NamedTuple

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire import primitives
from groupwright.assignors.errors import MalformedBytesError


class Owned(NamedTuple):
    """The partitions that a member claims to own: Java's `AbstractStickyAssignor.MemberData`.

    Attributes:
        partitions: The partitions, which need not exist.
        generation: The generation in which they were assigned; -1 if that is unknown.
    """

    partitions: PartitionsByTopic = NO_PARTITIONS
    generation: int = NO_GENERATION


def encode_owned(owned: Owned) -> bytes:
    """Encode the user data of `sticky`, version 1: the partitions by topic, and the generation.

    Raises:
        InvalidInputError: A topic's name is too long, or the generation has more than 32 bits.
    """
    return primitives.topic_partitions(owned.partitions) + encode_generation(owned.generation)


def encode_generation(generation: int) -> bytes:
    """Encode the user data of `cooperative-sticky`: the generation alone.

    Raises:
        InvalidInputError: The generation has more than 32 bits.
    """
    return primitives.int32(generation, "generation")


def decode_generation(data: bytes | None) -> int:
    """Decode the user data of `cooperative-sticky`: the generation, or -1 if it cannot be decoded."""
    try:
        return primitives.Reader(data or b"", "user data").int32("generation")
    except MalformedBytesError:
        return NO_GENERATION
