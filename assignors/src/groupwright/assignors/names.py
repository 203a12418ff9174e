"""Names read in arrays: each different name becomes a string once, and a number from then on."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from groupwright.assignors.binary import at_any_byte
from groupwright.assignors.order import sorted_names
from groupwright.assignors.partitions import TopicNumbers

UNREAD = -1
"""The number of a name that is not UTF-8, or that another one hides."""

LONGEST_NAME = 256
"""The most bytes of a name that can be read here. A topic's has 249 at most."""

_Numbers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_WORD = 8
_CHUNK = 2**15  # names at a time, so that what is computed of them stays in the processor's cache
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_PREFIX = 16  # bits of a hash
_REST = np.uint64(64 - _PREFIX)
_NO_NAME = 0


def read_names(
    buffer: bytes, at: _Numbers, sizes: _Numbers, known: dict[bytes, str]
) -> tuple[tuple[str, ...], TopicNumbers]:
    """Read names of at most `LONGEST_NAME` bytes.

    Args:
        buffer: Where the names are, and at least `LONGEST_NAME` bytes more.
        at: Where each name starts.
        sizes: How many bytes each has.
        known: Names read so far, by their bytes; new ones are added.

    Returns:
        The different names in Kafka's order, and for each name its place among them, or `UNREAD`.
    """
    reader = _NameReader(buffer, known)
    numbers = np.empty(at.size, np.int32)
    for start in range(0, at.size, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        numbers[chunk] = reader.read(at[chunk], sizes[chunk])
    return reader.in_order(numbers)


class _NameReader:
    """Tells names from each other by a hash of their bytes, and believes it only if the bytes agree.

    Names have numbers in the order in which they came up. Number 0 is no name: no name has its size.
    """

    def __init__(self, buffer: bytes, known: dict[bytes, str]) -> None:
        self._buffer = buffer
        self._words = at_any_byte(buffer, "<u8")
        self._known = known
        self._texts: list[str | None] = [None]
        self._at = np.zeros(1, np.int64)
        self._sizes = np.full(1, -1, np.int64)
        self._hashes = np.zeros(1, np.uint64)
        self._by_hash = np.zeros(1, np.int32)
        self._by_prefix = np.zeros(1 << _PREFIX, np.int32)

    def read(self, at: _Numbers, sizes: _Numbers) -> TopicNumbers:
        """Return the numbers of names; 0 of those that cannot be read."""
        hashes = (sizes + 1).astype(np.uint64) * _FACTOR
        words = [
            (rows, offset, self._word(at[rows], sizes[rows], offset)) for rows, offset in _reaching(sizes)
        ]
        for rows, _, word in words:
            mixed = (hashes[rows] ^ word) * _FACTOR
            hashes[rows] = mixed ^ (mixed >> _HALF)
        numbers = self._find(hashes)
        new = self._hashes[numbers] != hashes
        if new.any():
            self._learn(hashes[new], at[new], sizes[new])
            numbers = self._find(hashes)
        agree = self._sizes[numbers] == sizes
        for rows, offset, word in words:
            agree[rows] &= self._word(self._at[numbers[rows]], sizes[rows], offset) == word
        return np.where(agree, numbers, _NO_NAME)

    def in_order(self, numbers: TopicNumbers) -> tuple[tuple[str, ...], TopicNumbers]:
        """Return all names in Kafka's order, and the numbers as places among them."""
        names = sorted_names(text for text in self._texts if text is not None)
        places: dict[str | None, int] = {name: place for place, name in enumerate(names)}
        return names, np.array([places.get(text, UNREAD) for text in self._texts], np.int32)[numbers]

    def _find(self, hashes: _Words) -> TopicNumbers:
        """Return the names that have these hashes, if any has."""
        numbers: TopicNumbers = self._by_prefix[hashes >> _REST]
        missed = np.flatnonzero(self._hashes[numbers] != hashes)
        if missed.size:
            places = np.searchsorted(self._hashes, hashes[missed], sorter=self._by_hash)
            numbers[missed] = self._by_hash[np.minimum(places, self._by_hash.size - 1)]
        return numbers

    def _word(self, at: _Numbers, sizes: _Numbers, offset: int) -> _Words:
        """Return the 8 bytes from each name's offset on, or its last 8, or all that it has and zeros.

        Args:
            at: Where the names start.
            sizes: How many bytes they have, more than the offset.
            offset: A multiple of 8.
        """
        left = sizes - (offset + _WORD)
        if left.min() >= 0:
            return self._words[at + offset]
        if offset:
            return self._words[at + offset + np.minimum(left, 0)]
        words: _Words = self._words[at]
        return words << (np.maximum(-left, 0) * 8).astype(np.uint64)

    def _learn(self, hashes: _Words, at: _Numbers, sizes: _Numbers) -> None:
        """Give numbers to names that have none yet."""
        hashes, first = np.unique(hashes, return_index=True)
        at, sizes = at[first], sizes[first]
        texts = [
            self._text(start, end) for start, end in zip(at.tolist(), (at + sizes).tolist(), strict=True)
        ]
        self._by_prefix[hashes >> _REST] = len(self._texts) + np.arange(len(texts))
        self._texts += texts
        self._at = np.concatenate([self._at, at])
        self._sizes = np.concatenate([self._sizes, np.where([text is None for text in texts], -1, sizes)])
        self._hashes = np.concatenate([self._hashes, hashes])
        self._by_hash = np.argsort(self._hashes).astype(np.int32)

    def _text(self, start: int, end: int) -> str | None:
        raw = self._buffer[start:end]
        if raw not in self._known:
            try:
                self._known[raw] = raw.decode()
            except UnicodeDecodeError:
                return None
        return self._known[raw]


def _reaching(sizes: _Numbers) -> Iterator[tuple[slice | _Numbers, int]]:
    """Go through the offsets of words, with the names that reach beyond each."""
    for offset in range(0, sizes.max(initial=0), _WORD):
        rows = np.flatnonzero(sizes > offset)
        yield slice(None) if rows.size == sizes.size else rows, offset
