"""Where the elements of many lists are: each tells where the next one of its list begins."""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import PartitionArray
from groupwright.assignors._wire.interning import LONGEST_NAME
from groupwright.assignors._wire.packing import at_any_byte

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

COUNT = 4
"""The bytes of a list's count."""

MARGIN = 2**16 + 16
"""Zeros behind all lists: whatever length a name claims, the count that follows it is in the buffer."""

_ROUND = 25
"""Finding one element each of many lists takes as long as finding so many elements one by one, about."""


class Elements:
    """The elements of lists that stand in one buffer.

    Attributes:
        good: Which lists can be read, as far as is known.
        list_ends: Where each list that can be read ends.
    """

    def __init__(
        self,
        buffer: bytes,
        at: _Numbers,
        ends: _Numbers,
        counts: _Numbers,
        good: _Flags,
        *,
        has_partitions: bool,
    ) -> None:
        """Take the lists.

        Args:
            buffer: Where they are, and behind them `MARGIN` zeros.
            at: Where each list starts, with its count; ascending.
            ends: Where the bytes end that each list is in.
            counts: How many elements each list says that it has; 0 of those that cannot be read.
            good: Which can.
            has_partitions: Whether an element is a name and partitions, or a name.
        """
        self._buffer = buffer
        self._at = at
        self._ends = ends
        self._counts = counts
        self.good = good
        self.list_ends = at + COUNT
        self._has_partitions = has_partitions
        self._uint16 = at_any_byte(buffer, ">u2")
        self._uint32 = at_any_byte(buffer, ">u4")

    def uint16s(self, at: _Numbers) -> _Numbers:
        """Return the numbers at these places."""
        return self._uint16[at].astype(np.int64)

    def uint32s(self, at: _Numbers) -> _Numbers:
        """Return the numbers at these places."""
        return self._uint32[at].astype(np.int64)

    def int32s(self, at: _Numbers, counts: _Numbers) -> PartitionArray:
        """Return so many numbers from each of these places on."""
        before = np.cumsum(counts) - counts
        places = np.repeat(at - 4 * before, counts) + 4 * np.arange(counts.sum())
        numbers: PartitionArray = at_any_byte(self._buffer, ">i4")[places].astype(np.int32)
        return numbers

    def find(self) -> tuple[_Numbers, _Numbers]:
        """Return, for all elements of all lists, the list and the place of the element.

        Where an element claims more than there is, those that seem to follow it may be anywhere in the buffer.
        """
        of = np.repeat(np.arange(self._counts.size), self._counts)
        found = np.empty(of.size, np.int64)
        rows = np.cumsum(self._counts) - self._counts
        longest_first = np.argsort(-self._counts, kind="stable")
        alone, together = np.split(longest_first, [_found_alone(self._counts[longest_first])])
        for number in alone.tolist():
            row, count = rows[number], self._counts[number]
            found[row : row + count] = self._find_alone(int(self._at[number]) + COUNT, int(count))
        self._find_together(found, rows[together], self._at[together] + COUNT, self._counts[together])
        return of, found

    def _find_alone(self, at: int, count: int) -> list[int]:
        end = len(self._buffer) - MARGIN
        length, partitions = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from
        found = []
        for _ in range(count):
            found.append(at)
            at += 2 + length(self._buffer, at)[0]
            if self._has_partitions:
                at += 4 + 4 * partitions(self._buffer, at)[0]
            at = min(at, end)
        return found

    def _find_together(self, found: _Numbers, rows: _Numbers, at: _Numbers, counts: _Numbers) -> None:
        end = len(self._buffer) - MARGIN
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

    def check(self, of: _Numbers, ends: _Numbers, name_sizes: _Numbers) -> None:
        """Refuse lists with an element that ends beyond their data, or with a long name; note the others' ends."""
        self.refuse(of[(ends > self._ends[of]) | (name_sizes > LONGEST_NAME)])
        last = np.cumsum(self._counts) - 1
        some = self._counts > 0
        self.list_ends[some] = ends[last[some]]

    def refuse(self, lists: _Numbers) -> None:
        """Note that these lists must be read by themselves."""
        self.good[lists] = False

    def good_ones(self, of: _Numbers, *columns: Any) -> tuple[Any, ...]:
        """Return the columns without the elements of lists that were refused, and first of all `of`."""
        good = self.good[of]
        return (of, *columns) if good.all() else tuple(column[good] for column in (of, *columns))


def _found_alone(counts: _Numbers) -> int:
    """Return how many of the longest lists are read faster one by one.

    Args:
        counts: How many elements each list has, descending.
    """
    together = _ROUND * np.append(counts, 0)
    alone = np.concatenate([[0], np.cumsum(counts)])
    return int(np.argmin(together + alone))
