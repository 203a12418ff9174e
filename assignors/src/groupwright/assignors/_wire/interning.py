"""Interning: each distinct name in many members' bytes becomes one string and one number."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest

import numpy as np

from groupwright.assignors._model.arrays import (
    BoolArray,
    Int32Array,
    Int64Array,
    TopicNumbers,
    UInt64Array,
    unaligned_view,
)
from groupwright.assignors._model.group import Member
from groupwright.assignors._model.order import sorted_names

NOT_INTERNED = -1
"""Number of a name that is not UTF-8, or whose hash collides with that of another name."""

MAX_NAME_BYTES = 256
"""Longest name that is interned, in bytes. Topic names have at most 249."""

_WORD = 8
_CHUNK = 2**14  # names at a time, so that the intermediate arrays stay in the processor's cache
_FIRST_CHUNK = 2**10  # most names occur early, and a new name takes longer
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio (Fibonacci hashing, Knuth)
_HALF = np.uint64(32)
_MAX_PREFIX_BITS = 16  # of a hash
_NO_NAME = 0


class InternedNames(tuple[str, ...]):  # noqa: SLOT001 - a tuple's subclass can have no other slots
    """Names with their indexes in a table of all names that were decoded together, for use in arrays.

    Attributes:
        table: The distinct names.
        indexes: `(names,) int32`: the index of each name in the table.
    """

    table: tuple[str, ...]
    indexes: TopicNumbers

    @classmethod
    def of(cls, names: Iterable[str], table: tuple[str, ...], indexes: TopicNumbers) -> "InternedNames":
        """Return the list of these names, which have these indexes in the table."""
        interned = cls(names)
        interned.table = table
        interned.indexes = indexes
        return interned


@dataclass(frozen=True, eq=False, slots=True)
class IndexedSubscriptions:
    """Subscriptions of a group's members, as pairs of a distinct subscription and one of its topics.

    Attributes:
        count: The number of distinct subscriptions.
        of_member: `(members,) int32`: the index of each member's subscription.
        subscription: `(pairs,) int32`: the subscription of each pair, ascending.
        topic: `(pairs,) int32`: the topic of each pair, in the order of the subscription.
    """

    count: int
    of_member: Int32Array
    subscription: Int32Array
    topic: Int32Array

    @classmethod
    def of(cls, members: Iterable[Member], topics: Sequence[str]) -> "IndexedSubscriptions":
        """Return the members' subscriptions.

        Args:
            members: The members.
            topics: The topics that count. Any other topic has the index `len(topics)`.
        """
        numbers: dict[tuple[str, ...], int] = {}
        by_identity: dict[int, int] = {}  # members share long tuples, which are slow to hash
        of_member = []
        for member in members:
            number = by_identity.get(id(member.topics))
            if number is None:
                number = by_identity[id(member.topics)] = numbers.setdefault(member.topics, len(numbers))
            of_member.append(number)
        subscription = np.repeat(np.arange(len(numbers), dtype=np.int32), list(map(len, numbers)))
        topic = np.concatenate([np.empty(0, np.int32), *_topic_indexes(topics, numbers)])
        return cls(len(numbers), np.array(of_member, np.int32), subscription, topic)


def _topic_indexes(topics: Sequence[str], lists: Iterable[tuple[str, ...]]) -> Iterator[Int32Array]:
    """Yield each list of names as indexes into `topics`; a name that is not in it has index `len(topics)`."""
    numbers = {topic: number for number, topic in enumerate(topics)}
    tables: dict[int, Int32Array] = {}

    def numbers_of(names: Sequence[str]) -> Int32Array:
        return np.fromiter(map(numbers.get, names, repeat(len(topics))), np.int32, len(names))

    for listed in lists:
        if not isinstance(listed, InternedNames):
            yield numbers_of(listed)
            continue
        if id(listed.table) not in tables:
            tables[id(listed.table)] = numbers_of(listed.table)
        yield tables[id(listed.table)][listed.indexes]


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
        chunk = slice(start, start + min(_CHUNK, max(_FIRST_CHUNK, 3 * start)))
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
