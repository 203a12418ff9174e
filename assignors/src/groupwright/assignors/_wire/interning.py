"""Names read in arrays: each different name becomes a string once, and a number from then on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat, zip_longest

import numpy as np

from groupwright.assignors._model.arrays import BoolArray, Int64Array, IntegerArray, TopicNumbers, UInt64Array
from groupwright.assignors._model.order import sorted_names
from groupwright.assignors._wire.packing import unaligned_view

NOT_INTERNED = -1
"""The number of a name that is not UTF-8, or that another one hides."""

MAX_NAME_BYTES = 256
"""The most bytes of a name that can be read here. A topic's has 249 at most."""


_WORD = 8
_CHUNK = 2**14  # names at a time, so that what is computed of them stays in the processor's cache
_FIRST_CHUNK = 2**10  # most names come up early, and what is new takes longer
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_MOST_BITS = 16  # of the prefix of a hash
_NO_NAME = 0


class InternedNames(tuple[str, ...]):  # noqa: SLOT001 - a tuple's subclass can have no other slots
    """Names, and where they stand in a table of all names that were read together: computed on without a string.

    Attributes:
        table: The table.
        places: For each name its place there.
    """

    table: tuple[str, ...]
    places: TopicNumbers

    @classmethod
    def of(cls, names: Iterable[str], table: tuple[str, ...], places: TopicNumbers) -> "InternedNames":
        """Return the list of these names, which stand at these places."""
        made = cls(names)
        made.table = table
        made.places = places
        return made


def topic_indexes(topics: Sequence[str], lists: Sequence[tuple[str, ...]]) -> Iterator[IntegerArray]:
    """Go through lists of names as places in `topics`; what is not there has the place behind the last."""
    numbers = {topic: number for number, topic in enumerate(topics)}
    tables: dict[int, TopicNumbers] = {}

    def numbers_of(names: Sequence[str]) -> TopicNumbers:
        return np.fromiter(map(numbers.get, names, repeat(len(topics))), np.int32, len(names))

    for listed in lists:
        if not isinstance(listed, InternedNames):
            yield numbers_of(listed)
            continue
        if id(listed.table) not in tables:
            tables[id(listed.table)] = numbers_of(listed.table)
        yield tables[id(listed.table)][listed.places]


def read_names(
    buffer: bytes, at: Int64Array, sizes: Int64Array, known: dict[bytes, str]
) -> tuple[tuple[str, ...], TopicNumbers]:
    """Read names of at most `MAX_NAME_BYTES` bytes.

    Args:
        buffer: Where the names are, and at least `MAX_NAME_BYTES` bytes more.
        at: Where each name starts.
        sizes: How many bytes each has.
        known: Names read so far, by their bytes; new ones are added.

    Returns:
        The different names in Kafka's order, and for each name its place among them, or `NOT_INTERNED`.
    """
    reader = _NameReader(buffer, known, min(_MOST_BITS, at.size.bit_length() + 1))
    numbers = np.empty(at.size, np.int64)
    start = 0
    while start < at.size:
        chunk = slice(start, start + min(_CHUNK, max(_FIRST_CHUNK, 3 * start)))
        numbers[chunk] = reader.read(at[chunk], sizes[chunk])
        start = chunk.stop
    return reader.in_order(numbers)


class _NameReader:
    """Tells names from each other by a hash of their words, and believes it only if sizes and words agree.

    Names have numbers in the order in which they came up. Number 0 is no name: no name has its size.
    """

    def __init__(self, buffer: bytes, known: dict[bytes, str], bits: int) -> None:
        """Start with no names. They are found by so many bits of their hashes first."""
        self._buffer = buffer
        self._places = unaligned_view(buffer, "<u8")
        self._known = known
        self._texts: list[str | None] = [None]
        self._sizes = np.full(1, -1, np.int64)
        self._words: list[UInt64Array] = []
        self._hashes = np.zeros(1, np.uint64)
        self._by_hash = np.zeros(1, np.int64)
        self._by_prefix = np.zeros(1 << bits, np.int64)
        self._rest = np.uint64(64 - bits)

    def read(self, at: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return the numbers of names; 0 of those that cannot be read."""
        words = self._read_words(at, sizes)
        hashes = _hashes(sizes, words)
        numbers: Int64Array = self._by_prefix[hashes >> self._rest]
        agree = self._agree(numbers, sizes, words)
        if not agree.all():
            others = np.flatnonzero(~agree)
            words_of_others = [word[others] for word in words]
            numbers[others] = self._find(at[others], sizes[others], hashes[others], words_of_others)
        return numbers

    def in_order(self, numbers: Int64Array) -> tuple[tuple[str, ...], TopicNumbers]:
        """Return all names in Kafka's order, and the numbers as places among them."""
        names = sorted_names(text for text in self._texts if text is not None)
        places: dict[str | None, int] = {name: place for place, name in enumerate(names)}
        return names, np.array([places.get(text, NOT_INTERNED) for text in self._texts], np.int32)[numbers]

    def _agree(self, numbers: Int64Array, sizes: Int64Array, words: list[UInt64Array]) -> BoolArray:
        """Tell which names are those of the numbers."""
        agree: BoolArray = self._sizes[numbers] == sizes
        for known, word in zip(self._words, words, strict=False):  # of one size, names have as many words
            agree &= known[numbers] == word
        return agree

    def _find(
        self, at: Int64Array, sizes: Int64Array, hashes: UInt64Array, words: list[UInt64Array]
    ) -> Int64Array:
        """Return the numbers of names by their whole hashes, and give numbers to those that have none yet."""
        numbers = self._with_hashes(hashes)
        new = np.flatnonzero(self._hashes[numbers] != hashes)
        if new.size:
            self._learn(at[new], sizes[new], hashes[new], [word[new] for word in words])
            numbers = self._with_hashes(hashes)
        return np.where(self._agree(numbers, sizes, words), numbers, _NO_NAME)

    def _with_hashes(self, hashes: UInt64Array) -> Int64Array:
        """Return the names that have these hashes, if any has."""
        places = np.searchsorted(self._hashes, hashes, sorter=self._by_hash)
        numbers: Int64Array = self._by_hash[np.minimum(places, self._by_hash.size - 1)]
        return numbers

    def _learn(
        self, at: Int64Array, sizes: Int64Array, hashes: UInt64Array, words: list[UInt64Array]
    ) -> None:
        """Give numbers to names that have none yet."""
        hashes, first = np.unique(hashes, return_index=True)
        at, sizes = at[first], sizes[first]
        texts = [
            self._text(start, end) for start, end in zip(at.tolist(), (at + sizes).tolist(), strict=True)
        ]
        self._by_prefix[hashes >> self._rest] = len(self._texts) + np.arange(len(texts))
        no_known, no_new = np.zeros(len(self._texts), np.uint64), np.zeros(len(texts), np.uint64)
        self._words = [
            np.concatenate([no_known if known is None else known, no_new if word is None else word[first]])
            for known, word in zip_longest(self._words, words)
        ]
        self._texts += texts
        self._sizes = np.concatenate([self._sizes, np.where([text is None for text in texts], -1, sizes)])
        self._hashes = np.concatenate([self._hashes, hashes])
        self._by_hash = np.argsort(self._hashes)

    def _read_words(self, at: Int64Array, sizes: Int64Array) -> list[UInt64Array]:
        """Return the first word of each name, the second one, and so on; 0 behind the end."""
        least = sizes.min()
        words = []
        for offset in range(0, sizes.max(), _WORD):
            if offset < least:
                word = self._word(at, sizes, offset)
            else:
                reaching = np.flatnonzero(sizes > offset)
                word = np.zeros(at.size, np.uint64)
                word[reaching] = self._word(at[reaching], sizes[reaching], offset)
            words.append(word)
        return words

    def _word(self, at: Int64Array, sizes: Int64Array, offset: int) -> UInt64Array:
        """Return the 8 bytes from each name's offset on, or its last 8, or all that it has and zeros.

        Args:
            at: Where the names start.
            sizes: How many bytes they have, more than the offset.
            offset: A multiple of 8.
        """
        left = sizes - (offset + _WORD)
        if left.min() >= 0:
            return self._places[at + offset]
        if offset:
            return self._places[at + offset + np.minimum(left, 0)]
        words: UInt64Array = self._places[at]
        return words << (np.maximum(-left, 0) * 8).astype(np.uint64)

    def _text(self, start: int, end: int) -> str | None:
        raw = self._buffer[start:end]
        if raw not in self._known:
            try:
                self._known[raw] = raw.decode()
            except UnicodeDecodeError:
                return None
        return self._known[raw]


def _hashes(sizes: Int64Array, words: list[UInt64Array]) -> UInt64Array:
    """Return a hash of each name, which does not depend on the others."""
    hashes = (sizes + 1).astype(np.uint64) * _FACTOR
    least = sizes.min()
    for number, word in enumerate(words):
        mixed = (hashes ^ word) * _FACTOR
        mixed ^= mixed >> _HALF
        hashes = mixed if number * _WORD < least else np.where(sizes > number * _WORD, mixed, hashes)
    return hashes
