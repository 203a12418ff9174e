"""The user data of Kafka's sticky assignors: what a member owned, and in which generation."""

from typing import NamedTuple

from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire import primitives
from groupwright.assignors.errors import MalformedBytesError


class Owned(NamedTuple):
    """What a member says it owns.

    Attributes:
        partitions: The partitions, which need not exist.
        generation: The generation in which it got them; -1 if it does not say.
    """

    partitions: PartitionsByTopic = NO_PARTITIONS
    generation: int = NO_GENERATION


def encode_owned(owned: Owned) -> bytes:
    """Return the user data of `sticky`, version 1: the partitions by topic, and the generation.

    Raises:
        InvalidInputError: A topic's name is too long, or the generation has more than 32 bits.
    """
    return primitives.topic_partitions(owned.partitions) + encode_generation(owned.generation)


def encode_generation(generation: int) -> bytes:
    """Return the user data of `cooperative-sticky`: the generation alone.

    Raises:
        InvalidInputError: It has more than 32 bits.
    """
    return primitives.int32(generation, "generation")


def decode_generation(data: bytes | None) -> int:
    """Return the generation that user data of `cooperative-sticky` says, or -1 if it says none."""
    try:
        return primitives.Reader(data or b"", "user data").int32("generation")
    except MalformedBytesError:
        return NO_GENERATION
