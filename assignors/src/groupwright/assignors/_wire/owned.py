"""What many members say they own, in columns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._wire import batch_decoder as bulk
from groupwright.assignors._wire import primitives
from groupwright.assignors._wire.user_data import Owned
from groupwright.assignors.errors import MalformedBytesError

_NO_TOPICS = b"\0\0\0\0"

OWNS_NOTHING = Owned()
"""What a member owns that says nothing, or nothing that can be read."""


class OwnedColumns(NamedTuple):
    """What many members say they own.

    Attributes:
        partitions: For each member what `Owned` has.
        generations: As well.
    """

    partitions: PartitionColumns
    generations: Int64Array

    @classmethod
    def of(cls, owned: Sequence[Owned]) -> "OwnedColumns":
        """Return what these members own."""
        generations = np.array([of_member.generation for of_member in owned], np.int64)
        return cls(PartitionColumns.of([of_member.partitions for of_member in owned]), generations)

    @classmethod
    def of_members(cls, group: Group, ids: Sequence[str]) -> "OwnedColumns":
        """Return the claims in the subscriptions of the members with these ids."""
        members = {member.id: member for member in group.members}
        return cls.of([Owned(members[id_].owned, members[id_].generation) for id_ in ids])


def decode_owned(data: Sequence[bytes | None]) -> OwnedColumns:
    """Return what the members' user data of `sticky` say: of version 1, or of version 0, without generation.

    As in Java, user data that can be read as neither says nothing, and bytes that follow are not looked at.
    """
    reader = bulk.BatchReader([bytes_ or _NO_TOPICS for bytes_ in data], {})
    partitions = reader.topic_partitions()
    unread = np.flatnonzero(~reader.valid).tolist()
    generations = reader.int32()
    generations = np.where(reader.valid, generations, NO_GENERATION)
    if unread:
        lists = partitions.split()
        for number in unread:
            lists[number], generations[number] = _read_alone(data[number] or b"")
        partitions = PartitionColumns.of(lists)
    return OwnedColumns(partitions, generations)


def _read_alone(data: bytes) -> Owned:
    reader = primitives.Reader(data, "user data")
    try:
        partitions = reader.topic_partitions("previous assignment")
    except MalformedBytesError:
        return OWNS_NOTHING
    try:
        return Owned(partitions, reader.int32("generation"))
    except MalformedBytesError:
        return Owned(partitions)
