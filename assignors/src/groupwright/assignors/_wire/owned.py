"""Claims of many members to partitions, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire import primitives
from groupwright.assignors._wire.batch_decoder import BatchReader
from groupwright.assignors._wire.load_data import previous_assignment_data
from groupwright.assignors._wire.user_data import Owned
from groupwright.assignors.errors import MalformedBytesError

_NO_TOPICS = b"\0\0\0\0"

OWNS_NOTHING = Owned()
"""Claims of a member whose user data is missing or cannot be decoded."""


class OwnedColumns(NamedTuple):
    """Claims of many members to partitions.

    Attributes:
        partitions: The claimed partitions of each member.
        generations: `(members,) int64`: the generation of each member's claims; -1 for none.
    """

    partitions: PartitionColumns
    generations: Int64Array

    @classmethod
    def of(cls, owned: Sequence[Owned]) -> OwnedColumns:
        """Return these claims in columns."""
        generations = np.array([of_member.generation for of_member in owned], np.int64)
        return cls(PartitionColumns.of([of_member.partitions for of_member in owned]), generations)

    @classmethod
    def of_members(cls, group: Group, ids: Sequence[str]) -> OwnedColumns:
        """Return the claims in the subscriptions of the members with these ids."""
        members = {member.id: member for member in group.members}
        return cls.of([Owned(members[id_].owned, members[id_].generation) for id_ in ids])


def decode_previous_assignment(user_data: bytes | None, assignor: str = "sticky") -> PartitionsByTopic:
    """Decode the partitions in the user data of an eager member: those that it owned before it joined.

    As in Java, user data that cannot be decoded holds none.

    Args:
        user_data: The user data.
        assignor: The name of the assignor that it is for: `sticky`, `load-aware`, or `co-partitioned-sticky`,
            whose user data is that of `load-aware` with `by_load`, and none without.
    """
    if assignor in {"load-aware", "co-partitioned-sticky"}:
        user_data = previous_assignment_data(user_data)
    return decode_owned([user_data]).partitions.split()[0]


def decode_owned(data: Sequence[bytes | None]) -> OwnedColumns:
    """Decode the user data of `sticky`: version 1, or version 0, which has no generation.

    As in Java, user data in neither version claims nothing, and trailing bytes are ignored.

    Args:
        data: The user data of each member; None or empty for none.
    """
    reader = BatchReader([bytes_ or _NO_TOPICS for bytes_ in data], {})
    partitions = reader.topic_partitions()
    not_decoded = np.flatnonzero(~reader.valid).tolist()
    generations = reader.int32()
    generations = np.where(reader.valid, generations, NO_GENERATION)
    if not_decoded:
        lists = partitions.split()
        for number in not_decoded:
            lists[number], generations[number] = _decode_one(data[number] or b"")
        partitions = PartitionColumns.of(lists)
    return OwnedColumns(partitions, generations)


def _decode_one(data: bytes) -> Owned:
    reader = primitives.Reader(data, "user data")
    try:
        partitions = reader.topic_partitions("previous assignment")
    except MalformedBytesError:
        return OWNS_NOTHING
    try:
        return Owned(partitions, reader.int32("generation"))
    except MalformedBytesError:
        return Owned(partitions)
