"""Where the elements of many lists are: each tells where the next one of its list begins."""

import struct
from typing import Any

import numpy as np

from groupwright.assignors._model.arrays import BoolArray, Int64Array, PartitionArray
from groupwright.assignors._wire.interning import MAX_NAME_BYTES
from groupwright.assignors._wire.packing import unaligned_view

COUNT_BYTES = 4
"""The bytes of a list's count."""

PADDING = 2**16 + 16
"""Zeros behind all lists: whatever length a name claims, the count that follows it is in the buffer."""

_ITEMS_PER_PASS = 25
"""Finding one element each of many lists takes as long as finding so many elements one by one, about."""


class ListOffsets:
    """The elements of lists that stand in one buffer.

    Attributes:
        valid: Which lists can be read, as far as is known.
        list_ends: Where each list that can be read ends.
    """

    def __init__(
        self,
        buffer: bytes,
        at: Int64Array,
        ends: Int64Array,
        counts: Int64Array,
        valid: BoolArray,
        *,
        has_partitions: bool,
    ) -> None:
        """Take the lists.

        Args:
            buffer: Where they are, and behind them `PADDING` zeros.
            at: Where each list starts, with its count; ascending.
            ends: Where the bytes end that each list is in.
            counts: How many elements each list says that it has; 0 of those that cannot be read.
            valid: Which can.
            has_partitions: Whether an element is a name and partitions, or a name.
        """
        self._buffer = buffer
        self._at = at
        self._ends = ends
        self._counts = counts
        self.valid = valid
        self.list_ends = at + COUNT_BYTES
        self._has_partitions = has_partitions
        self._uint16 = unaligned_view(buffer, ">u2")
        self._uint32 = unaligned_view(buffer, ">u4")

    def uint16s(self, at: Int64Array) -> Int64Array:
        """Return the numbers at these places."""
        return self._uint16[at].astype(np.int64)

    def uint32s(self, at: Int64Array) -> Int64Array:
        """Return the numbers at these places."""
        return self._uint32[at].astype(np.int64)

    def int32s(self, at: Int64Array, counts: Int64Array) -> PartitionArray:
        """Return so many numbers from each of these places on."""
        before = np.cumsum(counts) - counts
        places = np.repeat(at - 4 * before, counts) + 4 * np.arange(counts.sum())
        numbers: PartitionArray = unaligned_view(self._buffer, ">i4")[places].astype(np.int32)
        return numbers

    def find(self) -> tuple[Int64Array, Int64Array]:
        """Return, for all elements of all lists, the list and the place of the element.

        Where an element claims more than there is, those that seem to follow it may be anywhere in the buffer.
        """
        of = np.repeat(np.arange(self._counts.size), self._counts)
        found = np.empty(of.size, np.int64)
        rows = np.cumsum(self._counts) - self._counts
        longest_first = np.argsort(-self._counts, kind="stable")
        decoded, together = np.split(longest_first, [_long_lists(self._counts[longest_first])])
        for number in decoded.tolist():
            row, count = rows[number], self._counts[number]
            found[row : row + count] = self._find_in_one_list(int(self._at[number]) + COUNT_BYTES, int(count))
        self._find_in_many_lists(
            found, rows[together], self._at[together] + COUNT_BYTES, self._counts[together]
        )
        return of, found

    def _find_in_one_list(self, at: int, count: int) -> list[int]:
        end = len(self._buffer) - PADDING
        length, partitions = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from
        found = []
        for _ in range(count):
            found.append(at)
            at += 2 + length(self._buffer, at)[0]
            if self._has_partitions:
                at += 4 + 4 * partitions(self._buffer, at)[0]
            at = min(at, end)
        return found

    def _find_in_many_lists(
        self, found: Int64Array, rows: Int64Array, at: Int64Array, counts: Int64Array
    ) -> None:
        end = len(self._buffer) - PADDING
        rounds = np.arange(counts.max(initial=0))
        active = counts.size - np.searchsorted(counts[::-1], rounds, side="right")
        places = []
        for lists in active.tolist():
            at = at[:lists]
            places.append(at)
            at = at + self._uint16[at]
            at += 2
            if self._has_partitions:
                at += 4 * self.uint32s(at)
                at += 4
            np.minimum(at, end, out=at)
        if places:
            turn = np.arange(active.sum()) - np.repeat(np.cumsum(active) - active, active)
            found[rows[turn] + np.repeat(rounds, active)] = np.concatenate(places)

    def check(self, of: Int64Array, ends: Int64Array, name_sizes: Int64Array) -> None:
        """Refuse lists with an element that ends beyond their data, or with a long name; note the others' ends."""
        self.invalidate(of[(ends > self._ends[of]) | (name_sizes > MAX_NAME_BYTES)])
        last = np.cumsum(self._counts) - 1
        some = self._counts > 0
        self.list_ends[some] = ends[last[some]]

    def invalidate(self, lists: Int64Array) -> None:
        """Note that these lists must be read by themselves."""
        self.valid[lists] = False

    def only_valid(self, of: Int64Array, *columns: Any) -> tuple[Any, ...]:
        """Return the columns without the elements of lists that were refused, and first of all `of`."""
        valid = self.valid[of]
        return (of, *columns) if valid.all() else tuple(column[valid] for column in (of, *columns))


def _long_lists(counts: Int64Array) -> int:
    """Return how many of the longest lists are read faster one by one.

    Args:
        counts: How many elements each list has, descending.
    """
    together = _ITEMS_PER_PASS * np.append(counts, 0)
    decoded = np.concatenate([[0], np.cumsum(counts)])
    return int(np.argmin(together + decoded))
