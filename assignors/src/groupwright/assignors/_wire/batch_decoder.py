"""The subscriptions of many members read at once, in arrays: no Python object is made for a topic or a partition.

Every element of a list tells where the next one begins, so the elements must be found one after the other; but
the first elements of all lists can be found at once, then all second ones, and so on. What stands in them is
read afterwards, of all lists together.

Nothing here raises. What is malformed or unusual is left to `primitives.Reader`, which says what is wrong with it,
or reads it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from groupwright.assignors._model.arrays import (
    BoolArray,
    Int64Array,
    Offsets,
    PartitionArray,
    TopicNumbers,
    ascend_in_slices,
)
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._wire.interning import MAX_NAME_BYTES, NOT_INTERNED, InternedNames, read_names
from groupwright.assignors._wire.list_offsets import COUNT_BYTES, PADDING, ListOffsets
from groupwright.assignors._wire.packing import unaligned_view

_MIN_STRING_BYTES = 2
_MIN_RUN_BYTES = 6

_INT32_MIN = -(2**31)

_MAX_ITEMS = 2**20
"""The most elements, or blocks of 16 bytes, to read at a time; a list that has more is unusual. Elements take
some 100 bytes each while they are read, however few they take in their list."""


class BatchReader:
    """A place in the bytes of each of many members, from where values are read off all of them at once.

    Whoever is not good has no such value, or an unusual one; what is read of it from then on means nothing.

    Attributes:
        starts: Where in the joined bytes those of each member start.
        ends: Where they end.
        at: What is to be read next.
        good: Whose bytes could be read so far.
    """

    def __init__(self, data: Sequence[bytes], names: dict[bytes, str]) -> None:
        """Start at everybody's first byte.

        Args:
            data: Each member's bytes.
            names: Strings read so far, by their bytes; new ones are added.
        """
        sizes = np.fromiter(map(len, data), np.int64, len(data))
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self.at = self.starts.copy()
        self.valid = np.ones(len(data), np.bool_)
        self._names = names
        self._buffer = b"".join([*data, bytes(PADDING)])

    def int16(self, where: BoolArray | None = None, default: int = 0) -> Int64Array:
        """Read an INT16.

        Args:
            where: Whose bytes have one; everybody's have if it is None.
            default: The others' number.
        """
        return self._number(">i2", where, default)

    def int32(self, where: BoolArray | None = None, default: int = 0) -> Int64Array:
        """Read an INT32; as `int16`."""
        return self._number(">i4", where, default)

    def nullable_bytes(self) -> list[bytes | None]:
        """Read NULLABLE_BYTES."""
        sizes, at = self.int32(), self.at
        self.skip(sizes, least=-1)
        sizes = np.where(self.valid, sizes, -1)
        bounds = zip(sizes.tolist(), at.tolist(), (at + sizes).tolist(), strict=True)
        return [None if size < 0 else self._buffer[start:end] for size, start, end in bounds]

    def nullable_strings(self, where: BoolArray) -> list[str | None]:
        """Read a NULLABLE_STRING where there is one."""
        sizes, at = self.int16(where, -1), self.at
        self.skip(sizes, least=-1)
        self.valid &= sizes <= MAX_NAME_BYTES
        some = np.flatnonzero(self.valid & (sizes >= 0))
        if not some.size:
            return [None] * self.at.size
        texts, numbers = read_names(self._buffer, at[some], sizes[some], self._names)
        self.valid[some[numbers == NOT_INTERNED]] = False
        places = np.full(self.at.size, len(texts))
        places[some] = np.where(numbers == NOT_INTERNED, len(texts), numbers)
        return list(map((*texts, None).__getitem__, places.tolist()))

    def strings(self, members: Int64Array) -> list[tuple[str, ...]]:
        """Read an array of STRING from the bytes of these members; of those that are not good it is empty."""
        return [listed for part in self._parts(members) for listed in self._strings(part)]

    def topic_partitions(self, where: BoolArray | None = None) -> PartitionColumns:
        """Read an array of a topic and an array of its partitions, in any order and more than once, where there is one."""
        counts = unaligned_view(self._buffer, ">i4")[self.at]
        asked = np.ones(self.at.size, np.bool_) if where is None else where
        self.skip(np.where(asked & (counts == 0), COUNT_BYTES, 0))
        members = np.flatnonzero(asked & (counts != 0))
        lists = PartitionColumns.concatenated([self._topic_partitions(part) for part in self._parts(members)])
        sizes = np.zeros(self.at.size, np.int64)
        sizes[members] = np.diff(lists.list_starts)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return PartitionColumns(lists.names, starts, lists.run_topics, lists.run_starts, lists.partitions)

    def skip(self, sizes: Int64Array, least: int = 0) -> None:
        """Go past so many bytes of each; less than none are none, but not good if they are less than the least."""
        at = self.at + np.maximum(sizes, 0)
        self.valid &= (at <= self.ends) & (sizes >= least)
        self.at = np.minimum(at, self.ends)

    def _number(self, kind: str, where: BoolArray | None, default: int) -> Int64Array:
        places = unaligned_view(self._buffer, kind)
        numbers: Int64Array = places[self.at].astype(np.int64)
        if where is None:
            self.skip(np.full(self.at.size, places.itemsize))
            return numbers
        self.skip(where * places.itemsize)
        return np.where(where, numbers, default)

    def _parts(self, members: Int64Array) -> Iterator[Int64Array]:
        """Go through the members, so many at a time that what is computed of their lists has a bounded size."""
        left = (self.ends - self.at)[members]
        claimed = unaligned_view(self._buffer, ">u4")[self.at[members]]
        sizes = np.cumsum(left // 16 + np.minimum(claimed, left // _MIN_STRING_BYTES))
        first = before = 0
        while first < members.size:
            end = int(np.searchsorted(sizes, before + _MAX_ITEMS, side="right")) + 1
            yield members[first:end]
            first, before = end, int(sizes[min(end, members.size) - 1])

    def _elements(self, members: Int64Array, least: int, *, has_partitions: bool) -> ListOffsets:
        at, ends = self.at[members], self.ends[members]
        counts = unaligned_view(self._buffer, ">i4")[at].astype(np.int64)
        can_be = (ends - at >= COUNT_BYTES) & (counts >= 0) & (counts * least <= ends - at - COUNT_BYTES)
        valid = self.valid[members] & can_be & (counts <= _MAX_ITEMS)
        return ListOffsets(
            self._buffer, at, ends, np.where(valid, counts, 0), valid, has_partitions=has_partitions
        )

    def _finish(self, members: Int64Array, lists: ListOffsets) -> None:
        self.valid[members] = lists.valid
        at = self.at.copy()
        at[members] = np.where(lists.valid, lists.list_ends, at[members])
        self.at = at

    def _strings(self, members: Int64Array) -> list[tuple[str, ...]]:
        lists = self._elements(members, _MIN_STRING_BYTES, has_partitions=False)
        of, at = lists.find()
        sizes = lists.uint16s(at)
        lists.check(of, at + 2 + sizes, sizes)
        of, at, sizes = lists.only_valid(of, at, sizes)
        texts, numbers = read_names(self._buffer, at + 2, sizes, self._names)
        lists.invalidate(of[numbers == NOT_INTERNED])
        of, numbers = lists.only_valid(of, numbers)
        self._finish(members, lists)
        words = np.array(texts, object)[numbers]
        alike: dict[bytes, InternedNames] = {}
        listed: list[tuple[str, ...]] = []
        for first, end in pairwise(np.searchsorted(of, np.arange(members.size + 1)).tolist()):
            key = numbers[first:end].tobytes()
            if key not in alike:
                alike[key] = InternedNames.of(words[first:end].tolist(), texts, numbers[first:end])
            listed.append(alike[key])
        return listed

    def _topic_partitions(self, members: Int64Array) -> PartitionColumns:
        lists = self._elements(members, _MIN_RUN_BYTES, has_partitions=True)
        of, at = lists.find()
        sizes = lists.uint16s(at)
        first = at + 6 + sizes
        counts = lists.uint32s(first - 4)
        lists.check(of, first + 4 * counts, sizes)
        of, at, sizes, first, counts = lists.only_valid(of, at, sizes, first, counts)
        topics, numbers = read_names(self._buffer, at + 2, sizes, self._names)
        lists.invalidate(of[numbers == NOT_INTERNED])
        of, numbers, first, counts = lists.only_valid(of, numbers, first, counts)
        self._finish(members, lists)
        partitions = lists.int32s(first, counts)
        of, numbers, starts, partitions = _normalised(of, numbers, counts, partitions, len(topics))
        list_starts = np.searchsorted(of, np.arange(members.size + 1))
        return PartitionColumns(topics, list_starts, numbers, starts, partitions)


def _normalised(
    of: Int64Array, numbers: TopicNumbers, counts: Int64Array, partitions: PartitionArray, topics: int
) -> tuple[Int64Array, TopicNumbers, Offsets, PartitionArray]:
    """Return runs with topics and partitions ascending and once, and none that is empty.

    Args:
        of: For each run, its list.
        numbers: For each run, its topic.
        counts: For each run, how many partitions it has.
        partitions: The partitions of all runs.
        topics: How many topics there are.

    Returns:
        For each run, its list and its topic; where its partitions start; the partitions.
    """
    run = of * topics + numbers
    starts = np.concatenate([[0], np.cumsum(counts)])
    if (run[1:] > run[:-1]).all() and ascend_in_slices(starts, partitions):
        return of, numbers, starts, partitions
    distinct, place = np.unique(run, return_inverse=True)
    ascending = np.unique((np.repeat(place, counts) << 32) + (partitions.astype(np.int64) - _INT32_MIN))
    place, first = np.unique(ascending >> 32, return_index=True)
    of, topic = np.divmod(distinct[place], max(topics, 1))
    partitions = ((ascending & 0xFFFFFFFF) + _INT32_MIN).astype(np.int32)
    return of, topic.astype(np.int32), np.append(first, partitions.size), partitions
