"""The lists of many members read at once, in arrays: no Python object is made for a topic or a partition.

Every element of a list tells where the next one begins, so the elements must be found one after the other; but
the first elements of all lists can be found at once, then all second ones, and so on. What stands in them is
read afterwards, of all lists together.

Nothing here raises. A list that is malformed or unusual is left to `binary.Reader`, which says what is wrong
with it, or reads it.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from groupwright.assignors.binary import Reader, at_any_byte
from groupwright.assignors.names import LONGEST_NAME, UNREAD, NameList, read_names
from groupwright.assignors.partitions import (
    Offsets,
    PartitionArray,
    TopicNumbers,
    TopicPartitions,
    ascend_in_slices,
)

_Numbers = npt.NDArray[np.int64]
_Made = TypeVar("_Made")

_MARGIN = 2**16 + 16
"""Zeros behind all lists: whatever length a name claims, the count that follows it is in the buffer."""

_COUNT = 4  # bytes of a count
_LEAST_STRING = 2
_LEAST_RUN = 6

_INT32_MIN = -(2**31)

_MOST = 2**20
"""The most elements, or blocks of 16 bytes, to read at a time; a list that has more is unusual. Elements take
some 100 bytes each while they are read, however few they take in their list."""

_ROUND = 25
"""Finding one element each of many lists takes as long as finding so many elements one by one, about."""


def strings(readers: Sequence[Reader]) -> list[tuple[str, ...] | None]:
    """Read from each reader what its `strings` reads.

    Args:
        readers: They share their names, and each stands before a list.

    Returns:
        What the lists hold, or None for a list that its reader must read by itself, before which it still stands.
    """
    return [read for part in _parts(readers) for read in _strings(part)]


def topic_partitions(readers: Sequence[Reader]) -> list[TopicPartitions | None]:
    """Read from each reader what its `topic_partitions` reads; as `strings` otherwise."""
    return [read for part in _parts(readers) for read in _topic_partitions(part)]


def _parts(readers: Sequence[Reader]) -> Iterator[Sequence[Reader]]:
    """Go through the readers, so many at a time that what is computed of their lists has a bounded size."""
    first = size = 0
    for number, reader in enumerate(readers):
        left = len(reader.data) - reader.offset
        claimed = int.from_bytes(reader.data[reader.offset : reader.offset + _COUNT], "big")
        size += left // 16 + min(claimed, left // _LEAST_STRING)
        if size > _MOST:
            yield readers[first : number + 1]
            first, size = number + 1, 0
    yield readers[first:]


def _strings(readers: Sequence[Reader]) -> list[tuple[str, ...] | None]:
    lists = _Lists(readers, _LEAST_STRING, has_partitions=False)
    of, at = lists.find()
    sizes = lists.uint16s(at)
    lists.check(of, at + 2 + sizes, sizes)
    of, at, sizes = lists.good_ones(of, at, sizes)
    texts, numbers = read_names(lists.buffer, at + 2, sizes, lists.names)
    lists.refuse(of[numbers == UNREAD])
    of, numbers = lists.good_ones(of, numbers)
    words = np.array(texts, object)[numbers]
    alike: dict[bytes, NameList] = {}

    def list_of(part: slice) -> tuple[str, ...]:
        key = numbers[part].tobytes()
        if key not in alike:
            alike[key] = NameList.of(words[part].tolist(), texts, numbers[part])
        return alike[key]

    return lists.results(of, list_of)


def _topic_partitions(readers: Sequence[Reader]) -> list[TopicPartitions | None]:
    lists = _Lists(readers, _LEAST_RUN, has_partitions=True)
    of, at = lists.find()
    sizes = lists.uint16s(at)
    first = at + 6 + sizes
    counts = lists.uint32s(first - 4)
    lists.check(of, first + 4 * counts, sizes)
    of, at, sizes, first, counts = lists.good_ones(of, at, sizes, first, counts)
    topics, numbers = read_names(lists.buffer, at + 2, sizes, lists.names)
    lists.refuse(of[numbers == UNREAD])
    of, numbers, first, counts = lists.good_ones(of, numbers, first, counts)
    partitions = lists.int32s(first, counts)
    of, numbers, starts, partitions = _normalised(of, numbers, counts, partitions, len(topics))

    def share(part: slice) -> TopicPartitions:
        bounds = starts[part.start : part.stop + 1]
        first = bounds[0]
        return TopicPartitions.from_numbers(
            topics, numbers[part], bounds - first, partitions[first : bounds[-1]]
        )

    return lists.results(of, share)


class _Lists:
    """Lists in one buffer, on end, each with what follows it in its data."""

    def __init__(self, readers: Sequence[Reader], least: int, *, has_partitions: bool) -> None:
        """Join them, and refuse those with too many elements, or more than there can be of `least` bytes or more."""
        views = [memoryview(reader.data)[reader.offset :] for reader in readers]
        sizes = np.array([len(view) for view in views], np.int64)
        self.buffer = b"".join([*views, bytes(_MARGIN)])
        self.names = readers[0].names if readers else {}
        self._readers = readers
        self._has_partitions = has_partitions
        self._uint16 = at_any_byte(self.buffer, ">u2")
        self._uint32 = at_any_byte(self.buffer, ">u4")
        self._ends = np.cumsum(sizes)
        self._at = self._ends - sizes
        counts = at_any_byte(self.buffer, ">i4")[self._at].astype(np.int64)
        self._good = (
            (sizes >= _COUNT) & (counts >= 0) & (counts * least <= sizes - _COUNT) & (counts <= _MOST)
        )
        self._counts = np.where(self._good, counts, 0)
        self._sizes = np.full(len(readers), _COUNT)

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
        numbers: PartitionArray = at_any_byte(self.buffer, ">i4")[places].astype(np.int32)
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
            found[row : row + count] = self._find_alone(int(self._at[number]) + _COUNT, int(count))
        self._find_together(found, rows[together], self._at[together] + _COUNT, self._counts[together])
        return of, found

    def _find_alone(self, at: int, count: int) -> list[int]:
        end = len(self.buffer) - _MARGIN
        length, partitions = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from
        found = []
        for _ in range(count):
            found.append(at)
            at += 2 + length(self.buffer, at)[0]
            if self._has_partitions:
                at += 4 + 4 * partitions(self.buffer, at)[0]
            at = min(at, end)
        return found

    def _find_together(self, found: _Numbers, rows: _Numbers, at: _Numbers, counts: _Numbers) -> None:
        end = len(self.buffer) - _MARGIN
        rounds = np.arange(counts.max(initial=0))
        for active in (counts.size - np.searchsorted(counts[::-1], rounds, side="right")).tolist():
            rows, at = rows[:active], at[:active]
            found[rows] = at
            rows = rows + 1
            at = at + 2 + self._uint16[at]
            if self._has_partitions:
                at = at + 4 + 4 * self.uint32s(at)
            at = np.minimum(at, end)

    def check(self, of: _Numbers, ends: _Numbers, name_sizes: _Numbers) -> None:
        """Refuse lists with an element that ends beyond their data, or with a long name; note the others' size."""
        self.refuse(of[(ends > self._ends[of]) | (name_sizes > LONGEST_NAME)])
        last = np.cumsum(self._counts) - 1
        some = self._counts > 0
        self._sizes[some] = ends[last[some]] - self._at[some]

    def refuse(self, lists: _Numbers) -> None:
        """Note that these lists must be read by themselves."""
        self._good[lists] = False

    def good_ones(self, of: _Numbers, *columns: Any) -> tuple[Any, ...]:
        """Return the columns without the elements of lists that were refused, and first of all `of`."""
        good = self._good[of]
        return (of, *columns) if good.all() else tuple(column[good] for column in (of, *columns))

    def results(self, of: _Numbers, made_of: Callable[[slice], _Made]) -> list[_Made | None]:
        """Return, for each list that was not refused, what is made of its elements, and move its reader on."""
        bounds = np.searchsorted(of, np.arange(self._counts.size + 1)).tolist()
        results = [
            made_of(slice(first, last)) if good else None
            for (first, last), good in zip(pairwise(bounds), self._good.tolist(), strict=True)
        ]
        for reader, size, good in zip(self._readers, self._sizes.tolist(), self._good.tolist(), strict=True):
            reader.offset += size * good
        return results


def _found_alone(counts: _Numbers) -> int:
    """Return how many of the longest lists are read faster one by one.

    Args:
        counts: How many elements each list has, descending.
    """
    together = _ROUND * np.append(counts, 0)
    alone = np.concatenate([[0], np.cumsum(counts)])
    return int(np.argmin(together + alone))


def _normalised(
    of: _Numbers, numbers: TopicNumbers, counts: _Numbers, partitions: PartitionArray, topics: int
) -> tuple[_Numbers, TopicNumbers, Offsets, PartitionArray]:
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
