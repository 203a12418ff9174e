"""Batch decoder: decodes one field of many members at once, without a Python object per topic or partition.

The size of each element of a list determines where the next one begins, so the elements of one list can only
be located one after the other. Across lists they are located together: all first elements, then all second
ones, and so on. Their contents are decoded afterwards, for all lists at once. Names are interned: each
distinct name becomes one string and one number.

Nothing here raises. Malformed and unusual lists are marked as not valid, and `primitives.Reader` decodes
those or raises the error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import (
    BoolArray,
    Int64Array,
    Offsets,
    PartitionArray,
    TopicNumbers,
    UInt64Array,
)
from groupwright.assignors._model.columns import InternedNames, PartitionColumns
from groupwright.assignors._model.partitions import sorted_names

NOT_INTERNED = -1
"""Number of a name that is not UTF-8, or whose hash collides with that of another name."""

MAX_NAME_BYTES = 256
"""Longest name that is interned, in bytes. Topic names have at most 249."""

_COUNT_BYTES = 4
"""Size of the count that a list begins with."""

_PADDING = 2**16 + 16
"""Zeros after all lists, so that the count after a name is in the buffer, whatever length the name claims."""

_ELEMENTS_PER_STEP = 25
"""Locating the next element of many lists at once costs about as much as 25 elements one by one."""

_MIN_STRING_BYTES = 2
_MIN_RUN_BYTES = 6

_INT32_MIN = -(2**31)

_MAX_ELEMENTS = 2**20
"""Limit on the elements, and on the blocks of 16 bytes, decoded at a time. A list with more is not valid.
An element takes about 100 bytes while it is decoded, however few it takes in its list."""

_WORD = 8  # bytes of a name that are compared at once
_NAMES_AT_ONCE = 2**14  # so that the intermediate arrays stay in the processor's cache
_FIRST_NAMES = 2**10  # in the first step: most names occur early, and a new name takes longer
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio (Fibonacci hashing, Knuth)
_HALF = np.uint64(32)
_MAX_PREFIX_BITS = 16  # of a hash
_NO_NAME = 0


def unaligned_view(buffer: bytes | npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """Return a view of the buffer whose element `i` is the number that starts at byte `i`, aligned or not.

    Args:
        buffer: The bytes.
        dtype: The type of the numbers, such as `>i4`.
    """
    parsed = np.dtype(dtype)
    return np.ndarray(max(0, len(buffer) - parsed.itemsize + 1), parsed, buffer, strides=(1,))


class BatchReader:
    """Reads one value after the other, each from the bytes of many members at once. Numbers are big-endian.

    A member is no longer valid once a value is missing, malformed or unusual. Its later values are
    meaningless.

    Attributes:
        starts: `(members,) int64`: the start of each member's bytes in the concatenation of all.
        ends: `(members,) int64`: their ends.
        at: `(members,) int64`: the position of the next value.
        valid: `(members,) bool`: the members whose values could be decoded so far.
    """

    def __init__(self, data: Sequence[bytes], names: dict[bytes, str]) -> None:
        """Start at the first byte of every member.

        Args:
            data: The bytes of each member.
            names: Strings decoded so far, by their bytes; new ones are added.
        """
        sizes = np.fromiter(map(len, data), np.int64, len(data))
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self.at = self.starts.copy()
        self.valid = np.ones(len(data), np.bool_)
        self._names = names
        self._buffer = b"".join([*data, bytes(_PADDING)])

    def int16(self, where: BoolArray | None = None, default: int = 0) -> Int64Array:
        """Read an INT16.

        Args:
            where: `(members,) bool`: the members that have one; None for all.
            default: The value for the others.
        """
        return self._number(">i2", where, default)

    def int32(self, where: BoolArray | None = None, default: int = 0) -> Int64Array:
        """Read an INT32; see `int16` for the arguments."""
        return self._number(">i4", where, default)

    def nullable_bytes(self) -> list[bytes | None]:
        """Read NULLABLE_BYTES."""
        sizes, at = self.int32(), self.at
        self.skip(sizes, min_size=-1)
        sizes = np.where(self.valid, sizes, -1)
        bounds = zip(sizes.tolist(), at.tolist(), (at + sizes).tolist(), strict=True)
        return [None if size < 0 else self._buffer[start:end] for size, start, end in bounds]

    def nullable_strings(self, where: BoolArray) -> list[str | None]:
        """Read a NULLABLE_STRING, of those members that have one."""
        sizes, at = self.int16(where, -1), self.at
        self.skip(sizes, min_size=-1)
        self.valid &= sizes <= MAX_NAME_BYTES
        present = np.flatnonzero(self.valid & (sizes >= 0))
        if not present.size:
            return [None] * self.at.size
        texts, numbers = read_names(self._buffer, at[present], sizes[present], self._names)
        self.valid[present[numbers == NOT_INTERNED]] = False
        indexes = np.full(self.at.size, len(texts))
        indexes[present] = np.where(numbers == NOT_INTERNED, len(texts), numbers)
        return list(map((*texts, None).__getitem__, indexes.tolist()))

    def strings(self, members: Int64Array) -> list[tuple[str, ...]]:
        """Read an array of STRING, of these members; it is empty for those that are not valid."""
        return [listed for part in self._parts(members) for listed in self._strings(part)]

    def topic_partitions(self, where: BoolArray | None = None) -> PartitionColumns:
        """Read an array of (topic, array of partitions), in any order, of members that have one."""
        counts = unaligned_view(self._buffer, ">i4")[self.at]
        expected = np.ones(self.at.size, np.bool_) if where is None else where
        self.skip(np.where(expected & (counts == 0), _COUNT_BYTES, 0))
        members = np.flatnonzero(expected & (counts != 0))
        lists = PartitionColumns.concatenated([self._topic_partitions(part) for part in self._parts(members)])
        sizes = np.zeros(self.at.size, np.int64)
        sizes[members] = np.diff(lists.list_starts)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return PartitionColumns(lists.names, starts, lists.run_topics, lists.run_starts, lists.partitions)

    def skip(self, sizes: Int64Array, min_size: int = 0) -> None:
        """Skip a value of each member.

        Args:
            sizes: `(members,) int64`: its size in bytes; a negative one skips nothing.
            min_size: The smallest valid size; -1 where null is valid.
        """
        at = self.at + np.maximum(sizes, 0)
        self.valid &= (at <= self.ends) & (sizes >= min_size)
        self.at = np.minimum(at, self.ends)

    def _number(self, dtype: str, where: BoolArray | None, default: int) -> Int64Array:
        view = unaligned_view(self._buffer, dtype)
        numbers: Int64Array = view[self.at].astype(np.int64)
        if where is None:
            self.skip(np.full(self.at.size, view.itemsize))
            return numbers
        self.skip(where * view.itemsize)
        return np.where(where, numbers, default)

    def _parts(self, members: Int64Array) -> Iterator[Int64Array]:
        """Split the members into parts, so that the arrays computed for a part have a bounded size.

        A part ends with the member that exceeds `_MAX_ELEMENTS`, by the bytes that it has left and the
        elements that it claims.
        """
        remaining = (self.ends - self.at)[members]
        claimed = unaligned_view(self._buffer, ">u4")[self.at[members]]
        sizes = np.cumsum(remaining // 16 + np.minimum(claimed, remaining // _MIN_STRING_BYTES))
        first = before = 0
        while first < members.size:
            end = int(np.searchsorted(sizes, before + _MAX_ELEMENTS, side="right")) + 1
            yield members[first:end]
            first, before = end, int(sizes[min(end, members.size) - 1])

    def _list_offsets(self, members: Int64Array, min_size: int, *, has_partitions: bool) -> _ListOffsets:
        at, ends = self.at[members], self.ends[members]
        counts = unaligned_view(self._buffer, ">i4")[at].astype(np.int64)
        is_possible = (
            (ends - at >= _COUNT_BYTES) & (counts >= 0) & (counts * min_size <= ends - at - _COUNT_BYTES)
        )
        valid = self.valid[members] & is_possible & (counts <= _MAX_ELEMENTS)
        return _ListOffsets(
            self._buffer, at, ends, np.where(valid, counts, 0), valid, has_partitions=has_partitions
        )

    def _finish(self, members: Int64Array, lists: _ListOffsets) -> None:
        self.valid[members] = lists.valid
        at = self.at.copy()
        at[members] = np.where(lists.valid, lists.list_ends, at[members])
        self.at = at

    def _strings(self, members: Int64Array) -> list[tuple[str, ...]]:
        lists = self._list_offsets(members, _MIN_STRING_BYTES, has_partitions=False)
        list_of, at = lists.locate()
        sizes = lists.uint16s(at)
        lists.check(list_of, at + 2 + sizes, sizes)
        list_of, at, sizes = lists.of_valid_lists(list_of, at, sizes)
        texts, numbers = read_names(self._buffer, at + 2, sizes, self._names)
        lists.invalidate(list_of[numbers == NOT_INTERNED])
        list_of, numbers = lists.of_valid_lists(list_of, numbers)
        self._finish(members, lists)
        names = np.array(texts, object)[numbers]
        by_content: dict[bytes, InternedNames] = {}
        listed: list[tuple[str, ...]] = []
        for first, end in pairwise(np.searchsorted(list_of, np.arange(members.size + 1)).tolist()):
            key = numbers[first:end].tobytes()
            if key not in by_content:
                by_content[key] = InternedNames.of(names[first:end].tolist(), texts, numbers[first:end])
            listed.append(by_content[key])
        return listed

    def _topic_partitions(self, members: Int64Array) -> PartitionColumns:
        lists = self._list_offsets(members, _MIN_RUN_BYTES, has_partitions=True)
        list_of, at = lists.locate()
        sizes = lists.uint16s(at)
        first = at + 6 + sizes
        counts = lists.uint32s(first - 4)
        lists.check(list_of, first + 4 * counts, sizes)
        list_of, at, sizes, first, counts = lists.of_valid_lists(list_of, at, sizes, first, counts)
        topics, numbers = read_names(self._buffer, at + 2, sizes, self._names)
        lists.invalidate(list_of[numbers == NOT_INTERNED])
        list_of, numbers, first, counts = lists.of_valid_lists(list_of, numbers, first, counts)
        self._finish(members, lists)
        partitions = lists.int32s(first, counts)
        list_of, numbers, starts, partitions = _sorted_and_distinct(
            list_of, numbers, counts, partitions, len(topics)
        )
        list_starts = np.searchsorted(list_of, np.arange(members.size + 1))
        return PartitionColumns(topics, list_starts, numbers, starts, partitions)


def _sorted_and_distinct(
    list_of: Int64Array, numbers: TopicNumbers, counts: Int64Array, partitions: PartitionArray, topics: int
) -> tuple[Int64Array, TopicNumbers, Offsets, PartitionArray]:
    """Sort and deduplicate the topics and partitions of each list, and drop empty runs.

    Args:
        list_of: `(runs,) int64`: the list of each run.
        numbers: `(runs,) int32`: the topic of each run.
        counts: `(runs,) int64`: the number of partitions of each run.
        partitions: The partitions of all runs.
        topics: The number of topics.

    Returns:
        `(runs,) int64`, the list of each run; `(runs,) int32`, its topic; `(runs + 1,) int64`, the start of
        its partitions; `(partitions,) int32`, the partitions.
    """
    run = list_of * topics + numbers
    starts = np.concatenate([[0], np.cumsum(counts)])
    if (run[1:] > run[:-1]).all() and _ascend_in_slices(starts, partitions):
        return list_of, numbers, starts, partitions
    distinct, run_index = np.unique(run, return_inverse=True)
    ascending = np.unique((np.repeat(run_index, counts) << 32) + (partitions.astype(np.int64) - _INT32_MIN))
    run_index, first = np.unique(ascending >> 32, return_index=True)
    list_of, topic = np.divmod(distinct[run_index], max(topics, 1))
    partitions = ((ascending & 0xFFFFFFFF) + _INT32_MIN).astype(np.int32)
    return list_of, topic.astype(np.int32), np.append(first, partitions.size), partitions


def _ascend_in_slices(starts: Offsets, partitions: PartitionArray) -> bool:
    """Return whether every slice is strictly ascending and not empty."""
    if (starts[1:] == starts[:-1]).any():
        return False
    ascends = partitions[1:] > partitions[:-1]
    ascends[starts[1:-1] - 1] = True
    return bool(ascends.all())


class _ListOffsets:
    """Positions of the elements of many lists in one buffer.

    Attributes:
        valid: `(lists,) bool`: the lists that could be decoded so far.
        list_ends: `(lists,) int64`: the end of each valid list.
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
        """Keep the lists; `locate` finds their elements.

        Args:
            buffer: The bytes of the lists, and `_PADDING` zeros after them.
            at: `(lists,) int64`: the position of each list's count, ascending.
            ends: `(lists,) int64`: the end of the bytes of the member that each list belongs to.
            counts: `(lists,) int64`: the claimed number of elements; 0 for lists that are not valid.
            valid: `(lists,) bool`: the lists that can be decoded.
            has_partitions: Whether an element is a name with partitions, or a name alone.
        """
        self._buffer = buffer
        self._at = at
        self._ends = ends
        self._counts = counts
        self.valid = valid
        self.list_ends = at + _COUNT_BYTES
        self._has_partitions = has_partitions
        self._uint16 = unaligned_view(buffer, ">u2")
        self._uint32 = unaligned_view(buffer, ">u4")

    def uint16s(self, at: Int64Array) -> Int64Array:
        """Return the UINT16 at each of these positions."""
        return self._uint16[at].astype(np.int64)

    def uint32s(self, at: Int64Array) -> Int64Array:
        """Return the UINT32 at each of these positions."""
        return self._uint32[at].astype(np.int64)

    def int32s(self, at: Int64Array, counts: Int64Array) -> PartitionArray:
        """Return consecutive INT32: `counts[i]` of them from position `at[i]` on."""
        before = np.cumsum(counts) - counts
        positions = np.repeat(at - 4 * before, counts) + 4 * np.arange(counts.sum())
        numbers: PartitionArray = unaligned_view(self._buffer, ">i4")[positions].astype(np.int32)
        return numbers

    def locate(self) -> tuple[Int64Array, Int64Array]:
        """Return `(elements,) int64` twice: the list, and the position, of every element.

        The elements after one that claims too many bytes may be anywhere in the buffer: see `check`.
        """
        list_of = np.repeat(np.arange(self._counts.size), self._counts)
        found = np.empty(list_of.size, np.int64)
        first_element = np.cumsum(self._counts) - self._counts
        longest_first = np.argsort(-self._counts, kind="stable")
        long, others = np.split(longest_first, [_count_of_long_lists(self._counts[longest_first])])
        for number in long.tolist():
            first, count = first_element[number], self._counts[number]
            found[first : first + count] = self._locate_in_one_list(
                int(self._at[number]) + _COUNT_BYTES, int(count)
            )
        self._locate_in_many_lists(
            found, first_element[others], self._at[others] + _COUNT_BYTES, self._counts[others]
        )
        return list_of, found

    def _locate_in_one_list(self, at: int, count: int) -> list[int]:
        end = len(self._buffer) - _PADDING
        length, partitions = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from
        found = []
        for _ in range(count):
            found.append(at)
            at += 2 + length(self._buffer, at)[0]
            if self._has_partitions:
                at += 4 + 4 * partitions(self._buffer, at)[0]
            at = min(at, end)
        return found

    def _locate_in_many_lists(
        self, found: Int64Array, first_element: Int64Array, at: Int64Array, counts: Int64Array
    ) -> None:
        end = len(self._buffer) - _PADDING
        steps = np.arange(counts.max(initial=0))
        active = counts.size - np.searchsorted(counts[::-1], steps, side="right")
        positions = []
        for lists in active.tolist():
            at = at[:lists]
            positions.append(at)
            at = at + self._uint16[at]
            at += 2
            if self._has_partitions:
                at += 4 * self.uint32s(at)
                at += 4
            np.minimum(at, end, out=at)
        if positions:
            list_index = np.arange(active.sum()) - np.repeat(np.cumsum(active) - active, active)
            found[first_element[list_index] + np.repeat(steps, active)] = np.concatenate(positions)

    def check(self, list_of: Int64Array, ends: Int64Array, name_sizes: Int64Array) -> None:
        """Invalidate lists with an element beyond their bytes or a long name; set the ends of the others.

        Args:
            list_of: `(elements,) int64`: the list of each element.
            ends: `(elements,) int64`: the end of each element.
            name_sizes: `(elements,) int64`: the size of each element's name in bytes.
        """
        self.invalidate(list_of[(ends > self._ends[list_of]) | (name_sizes > MAX_NAME_BYTES)])
        last = np.cumsum(self._counts) - 1
        some = self._counts > 0
        self.list_ends[some] = ends[last[some]]

    def invalidate(self, lists: Int64Array) -> None:
        """Mark these lists as not valid."""
        self.valid[lists] = False

    def of_valid_lists(self, list_of: Int64Array, *columns: Any) -> tuple[Any, ...]:
        """Return `list_of` and the columns, without the elements of lists that are not valid."""
        valid = self.valid[list_of]
        return (list_of, *columns) if valid.all() else tuple(column[valid] for column in (list_of, *columns))


def _count_of_long_lists(counts: Int64Array) -> int:
    """Return the number of longest lists whose elements are faster located one by one.

    Args:
        counts: The number of elements of each list, descending.
    """
    cost_together = _ELEMENTS_PER_STEP * np.append(counts, 0)
    cost_one_by_one = np.concatenate([[0], np.cumsum(counts)])
    return int(np.argmin(cost_together + cost_one_by_one))


def read_names(
    buffer: bytes, at: Int64Array, sizes: Int64Array, known: dict[bytes, str]
) -> tuple[tuple[str, ...], TopicNumbers]:
    """Intern names of at most `MAX_NAME_BYTES` bytes.

    Args:
        buffer: The bytes of the names, and at least 7 more, since names are read in words of 8 bytes.
        at: `(names,) int64`: the position of each name.
        sizes: `(names,) int64`: the size of each name in bytes.
        known: Names decoded so far, by their bytes; new ones are added.

    Returns:
        The distinct names in Kafka's order, and the index of each name among them, or `NOT_INTERNED`.
    """
    reader = _NameReader(buffer, known, min(_MAX_PREFIX_BITS, at.size.bit_length() + 1))
    numbers = np.empty(at.size, np.int64)
    start = 0
    while start < at.size:
        chunk = slice(start, start + min(_NAMES_AT_ONCE, max(_FIRST_NAMES, 3 * start)))
        numbers[chunk] = reader.read(at[chunk], sizes[chunk])
        start = chunk.stop
    return reader.in_order(numbers)


class _NameReader:
    """Finds equal names by a hash of their 8-byte words, and verifies sizes and words.

    Names are numbered in the order of their first occurrence. Number 0 is no name; its size is -1.
    """

    def __init__(self, buffer: bytes, known: dict[bytes, str], bits: int) -> None:
        """Start without names.

        Args:
            buffer: The bytes of the names, and at least 7 more (see `_word`).
            known: Strings decoded so far, by their bytes; new ones are added.
            bits: The number of leading bits of a hash that the first look-up uses.
        """
        self._buffer = buffer
        self._view = unaligned_view(buffer, "<u8")
        self._known = known
        self._names: list[str | None] = [None]
        self._sizes = np.full(1, -1, np.int64)
        self._words: list[UInt64Array] = []
        self._hashes = np.zeros(1, np.uint64)
        self._by_hash = np.zeros(1, np.int64)
        self._by_prefix = np.zeros(1 << bits, np.int64)
        self._prefix_shift = np.uint64(64 - bits)

    def read(self, at: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return the numbers of names; 0 for those that are not UTF-8 or whose hash collides."""
        words = self._read_words(at, sizes)
        hashes = _hashes(sizes, words)
        numbers: Int64Array = self._by_prefix[hashes >> self._prefix_shift]
        equal = self._equal(numbers, sizes, words)
        if not equal.all():
            others = np.flatnonzero(~equal)
            words_of_others = [word[others] for word in words]
            numbers[others] = self._look_up(at[others], sizes[others], hashes[others], words_of_others)
        return numbers

    def in_order(self, numbers: Int64Array) -> tuple[tuple[str, ...], TopicNumbers]:
        """Return all names in Kafka's order, and the numbers as indexes into them."""
        names = sorted_names(text for text in self._names if text is not None)
        places: dict[str | None, int] = {name: place for place, name in enumerate(names)}
        return names, np.array([places.get(text, NOT_INTERNED) for text in self._names], np.int32)[numbers]

    def _equal(self, numbers: Int64Array, sizes: Int64Array, words: list[UInt64Array]) -> BoolArray:
        """Return `(names,) bool`: whether each name equals the known name with its number."""
        equal: BoolArray = self._sizes[numbers] == sizes
        # Names of equal size have equally many words.
        for known, word in zip(self._words, words, strict=False):
            equal &= known[numbers] == word
        return equal

    def _look_up(
        self, at: Int64Array, sizes: Int64Array, hashes: UInt64Array, words: list[UInt64Array]
    ) -> Int64Array:
        """Return the numbers of names by their full hashes, and assign numbers to new names."""
        numbers = self._numbers_by_hash(hashes)
        new = np.flatnonzero(self._hashes[numbers] != hashes)
        if new.size:
            self._add_new(at[new], sizes[new], hashes[new], [word[new] for word in words])
            numbers = self._numbers_by_hash(hashes)
        return np.where(self._equal(numbers, sizes, words), numbers, _NO_NAME)

    def _numbers_by_hash(self, hashes: UInt64Array) -> Int64Array:
        """Return the numbers of the known names with these hashes, or any number for an unknown hash."""
        places = np.searchsorted(self._hashes, hashes, sorter=self._by_hash)
        numbers: Int64Array = self._by_hash[np.minimum(places, self._by_hash.size - 1)]
        return numbers

    def _add_new(
        self, at: Int64Array, sizes: Int64Array, hashes: UInt64Array, words: list[UInt64Array]
    ) -> None:
        """Assign numbers to new names."""
        hashes, first = np.unique(hashes, return_index=True)
        at, sizes = at[first], sizes[first]
        new_names = [
            self._text(start, end) for start, end in zip(at.tolist(), (at + sizes).tolist(), strict=True)
        ]
        self._by_prefix[hashes >> self._prefix_shift] = len(self._names) + np.arange(len(new_names))
        no_known, no_new = np.zeros(len(self._names), np.uint64), np.zeros(len(new_names), np.uint64)
        self._words = [
            np.concatenate([no_known if known is None else known, no_new if word is None else word[first]])
            for known, word in zip_longest(self._words, words)
        ]
        self._names += new_names
        self._sizes = np.concatenate([self._sizes, np.where([text is None for text in new_names], -1, sizes)])
        self._hashes = np.concatenate([self._hashes, hashes])
        self._by_hash = np.argsort(self._hashes)

    def _read_words(self, at: Int64Array, sizes: Int64Array) -> list[UInt64Array]:
        """Return the first words of all names, the second words, and so on; 0 beyond a name's end."""
        min_size = sizes.min()
        words = []
        for offset in range(0, sizes.max(), _WORD):
            if offset < min_size:
                word = self._word(at, sizes, offset)
            else:
                longer = np.flatnonzero(sizes > offset)
                word = np.zeros(at.size, np.uint64)
                word[longer] = self._word(at[longer], sizes[longer], offset)
            words.append(word)
        return words

    def _word(self, at: Int64Array, sizes: Int64Array, offset: int) -> UInt64Array:
        """Return 8 bytes of each name: those at an offset, or its last 8 if fewer follow.

        The last 8 may overlap the word before; equal sizes keep the comparison exact. A name of fewer than 8
        bytes is shifted to the high-order bytes, which drops the up to 7 bytes after its end.

        Args:
            at: The positions of the names.
            sizes: Their sizes in bytes, greater than the offset.
            offset: A multiple of 8.
        """
        remaining = sizes - (offset + _WORD)
        if remaining.min() >= 0:
            return self._view[at + offset]
        if offset:
            return self._view[at + offset + np.minimum(remaining, 0)]
        words: UInt64Array = self._view[at]
        return words << (np.maximum(-remaining, 0) * 8).astype(np.uint64)

    def _text(self, start: int, end: int) -> str | None:
        raw = self._buffer[start:end]
        if raw not in self._known:
            try:
                self._known[raw] = raw.decode()
            except UnicodeDecodeError:
                return None
        return self._known[raw]


def _hashes(sizes: Int64Array, words: list[UInt64Array]) -> UInt64Array:
    """Return a hash of each name, independent of the other names."""
    hashes = (sizes + 1).astype(np.uint64) * _FACTOR
    min_size = sizes.min()
    for number, word in enumerate(words):
        mixed = (hashes ^ word) * _FACTOR
        mixed ^= mixed >> _HALF
        hashes = mixed if number * _WORD < min_size else np.where(sizes > number * _WORD, mixed, hashes)
    return hashes
