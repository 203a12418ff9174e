"""What many members say they own, in columns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.columns import PartitionLists
from groupwright.assignors._model.group import NO_GENERATION
from groupwright.assignors._wire import batch_decoder as bulk
from groupwright.assignors._wire import primitives as binary
from groupwright.assignors._wire.user_data import Owned
from groupwright.assignors.errors import MalformedBytesError

_NO_TOPICS = b"\0\0\0\0"

NOTHING = Owned()
"""What a member owns that says nothing, or nothing that can be read."""


class OwnedLists(NamedTuple):
    """What many members say they own.

    Attributes:
        partitions: For each member what `Owned` has.
        generations: As well.
    """

    partitions: PartitionLists
    generations: npt.NDArray[np.int64]

    @classmethod
    def of(cls, owned: Sequence[Owned]) -> "OwnedLists":
        """Return what these members own."""
        generations = np.array([of_member.generation for of_member in owned], np.int64)
        return cls(PartitionLists.of([of_member.partitions for of_member in owned]), generations)


def decode_owned(data: Sequence[bytes | None]) -> OwnedLists:
    """Return what the members' user data of `sticky` say: of version 1, or of version 0, without generation.

    As in Java, user data that can be read as neither says nothing, and bytes that follow are not looked at.
    """
    cursor = bulk.Cursor([bytes_ or _NO_TOPICS for bytes_ in data], {})
    partitions = cursor.topic_partitions()
    unread = np.flatnonzero(~cursor.good).tolist()
    generations = cursor.int32()
    generations = np.where(cursor.good, generations, NO_GENERATION)
    if unread:
        lists = partitions.each()
        for number in unread:
            lists[number], generations[number] = _read_alone(data[number] or b"")
        partitions = PartitionLists.of(lists)
    return OwnedLists(partitions, generations)


def _read_alone(data: bytes) -> Owned:
    reader = binary.Reader(data, "user data")
    try:
        partitions = reader.topic_partitions("previous assignment")
    except MalformedBytesError:
        return NOTHING
    try:
        return Owned(partitions, reader.int32("generation"))
    except MalformedBytesError:
        return Owned(partitions)
