"""Kafka's primitive types as bytes: a reader that believes no length, and writers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors.errors import InvalidInputError, MalformedBytesError
from groupwright.assignors.order import sorted_names, strictly_ascending
from groupwright.assignors.partitions import (
    NO_PARTITIONS,
    Offsets,
    PartitionArray,
    TopicPartitions,
    ascend_in_slices,
)

NULL_BYTES = b"\xff\xff\xff\xff"
_NULL_STRING = b"\xff\xff"
_MAX_STRING = 2**15 - 1
_WORD = 8
_CHUNK = 2**14  # runs at a time, so that what is computed of them stays in the processor's cache


class Reader:
    """Reads values off bytes, one after the other.

    Every length is compared with the bytes that are left before anything is made of it. Bytes after the
    last value asked for are not looked at.
    """

    __slots__ = ("_what", "data", "names", "offset")

    def __init__(self, data: bytes, what: str, names: dict[bytes, str] | None = None) -> None:
        """Start at the first byte. What follows `offset` in `data` is still to be read.

        Args:
            data: What to read.
            what: What it is, for error messages.
            names: Strings read so far, by their bytes. Readers that share one share equal strings too.
        """
        self.data = data
        self.names = {} if names is None else names
        self.offset = 0
        self._what = what

    def int16(self, what: str) -> int:
        """Read an INT16."""
        return self._int(2, what)

    def int32(self, what: str) -> int:
        """Read an INT32."""
        return self._int(4, what)

    def string(self, what: str) -> str:
        """Read a STRING."""
        raw = self._sized(2, what)
        text = self.names.get(raw)
        if text is None:
            text = self.names[raw] = self._utf8(raw, what)
        return text

    def nullable_string(self, what: str) -> str | None:
        """Read a NULLABLE_STRING: of length -1 for None."""
        return None if self.skip(_NULL_STRING) else self.string(what)

    def nullable_bytes(self, what: str) -> bytes | None:
        """Read NULLABLE_BYTES: of length -1 for None."""
        return None if self.skip(NULL_BYTES) else self._sized(4, what)

    def strings(self, what: str) -> tuple[str, ...]:
        """Read an array of STRING."""
        return tuple([self.string(what) for _ in range(self._count(2, what))])

    def topic_partitions(self, what: str) -> TopicPartitions:
        """Read an array of a topic and an array of its partitions.

        Topics and partitions may come in any order, and more than once: Kafka reads them so.
        """
        topics = []
        runs = []
        for _ in range(self._count(6, what)):
            topics.append(self.string(what))
            runs.append(self._sized(4, what, unit=4))
        if not topics:
            return NO_PARTITIONS
        partitions = np.frombuffer(b"".join(runs), ">i4").astype(np.int32)
        starts = np.cumsum([0, *map(len, runs)], dtype=np.int64) // 4
        return _normalised(tuple(topics), starts, partitions)

    def skip(self, known: bytes) -> bool:
        """Go past the bytes given, if they come next."""
        comes_next = self.data.startswith(known, self.offset)
        if comes_next:
            self.offset += len(known)
        return comes_next

    def since(self, offset: int) -> bytes:
        """Return the bytes read since an earlier offset."""
        return self.data[offset : self.offset]

    def malformed(self, expected: str, found: str, *, back: int = 0) -> MalformedBytesError:
        """Return the error that says so, of the value `back` bytes ago."""
        return MalformedBytesError(self._what, self.offset - back, expected, found)

    def _int(self, size: int, what: str) -> int:
        end = self.offset + size
        if end > len(self.data):
            raise self.malformed(f"{size} bytes of {what}", self._left())
        number = int.from_bytes(self.data[self.offset : end], "big", signed=True)
        self.offset = end
        return number

    def _count(self, least: int, what: str) -> int:
        """Read an array's length. Each element takes `least` bytes or more."""
        count = self.int32(what)
        if not 0 <= count * least <= len(self.data) - self.offset:
            raise self.malformed(f"a count in {what}", f"{count} with {self._left()}", back=4)
        return count

    def _sized(self, width: int, what: str, unit: int = 1) -> bytes:
        """Read a length, of `width` bytes and in units of bytes, and return as much."""
        start = self.offset + width
        length = int.from_bytes(self.data[self.offset : start], "big", signed=True)
        end = start + length * unit
        if not start <= end <= len(self.data):
            self._int(width, what)
            raise self.malformed(f"a length in {what}", f"{length} with {self._left()}", back=width)
        self.offset = end
        return self.data[start:end]

    def _left(self) -> str:
        return f"{len(self.data) - self.offset} bytes left"

    def _utf8(self, raw: bytes, what: str) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.malformed(f"UTF-8 in {what}", f"{raw!r}", back=len(raw)) from error


def string(text: str, what: str) -> bytes:
    """Write a STRING.

    Raises:
        InvalidInputError: Its UTF-8 is longer than 32,767 bytes, or it has none.
    """
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{what} {text!r} cannot be written in UTF-8") from error
    if len(encoded) > _MAX_STRING:
        raise InvalidInputError(
            f"{what} {text[:40]!r}… is {len(encoded)} bytes long; {_MAX_STRING} can be written"
        )
    return len(encoded).to_bytes(2, "big") + encoded


def nullable_string(text: str | None, what: str) -> bytes:
    """Write a NULLABLE_STRING.

    Raises:
        InvalidInputError: As `string` does.
    """
    return _NULL_STRING if text is None else string(text, what)


def int32(number: int, what: str) -> bytes:
    """Write an INT32.

    Raises:
        InvalidInputError: It has more than 32 bits.
    """
    try:
        return number.to_bytes(4, "big", signed=True)
    except OverflowError as error:
        raise InvalidInputError(f"{what} must have 32 bits, not be {number}") from error


def nullable_bytes(data: bytes | None, what: str) -> bytes:
    """Write NULLABLE_BYTES.

    Raises:
        InvalidInputError: There are 2³¹ bytes or more.
    """
    return NULL_BYTES if data is None else int32(len(data), f"the length of {what}") + data


def strings(texts: Sequence[str], what: str) -> bytes:
    """Write an array of STRING, in Kafka's order."""
    return int32(len(texts), what) + b"".join(string(text, what) for text in sorted_names(texts))


def topic_partitions(partitions: TopicPartitions) -> bytes:
    """Write an array of a topic and an array of its partitions."""
    topics = np.arange(len(partitions), dtype=np.int32)
    starts = np.array([0, topics.size], np.int64)
    packed, _ = pack_lists(partitions.topics, starts, topics, partitions.starts, partitions.partitions)
    return packed.tobytes()


def pack_lists(
    topics: Sequence[str],
    list_starts: Offsets,
    run_topics: npt.NDArray[np.int32],
    run_starts: Offsets,
    partitions: PartitionArray,
    *,
    head: bytes = b"",
    tail: bytes = b"",
) -> tuple[memoryview, Offsets]:
    """Write arrays of runs, each a topic and the array of its partitions, on end.

    Args:
        topics: The names.
        list_starts: Where among the runs those of each array start, and, last, end.
        run_topics: For each run, the place of its topic.
        run_starts: Where in `partitions` each run starts, and, last, ends; no run is empty.
        partitions: The partitions of all runs.
        head: What stands before each array.
        tail: What stands behind each.

    Returns:
        The bytes, and where in them each head starts, and, last, the last tail ends.
    """
    names = [string(topic, "topic") for topic in topics]
    words = -(-max(map(len, names), default=0) // _WORD)
    padded = np.frombuffer(b"".join(name.ljust(words * _WORD, b"\0") for name in names), np.uint64)
    name_words = padded.reshape(len(names), words)
    name_sizes = np.array([len(name) for name in names], np.int64)
    counts, lists = np.diff(run_starts), np.diff(list_starts)
    sizes = name_sizes[run_topics] + 4 + 4 * counts
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    frame = len(head) + 4 + len(tail)
    bounds = ends[list_starts] + frame * np.arange(list_starts.size)
    at = ends[:-1] + np.repeat(frame * np.arange(lists.size) + len(head) + 4, lists)
    packed = np.empty(bounds[-1], np.uint8)
    for first in range(0, counts.size, _CHUNK):
        runs = slice(first, min(first + _CHUNK, counts.size))
        of = run_topics[runs]
        _pack_names(packed, at[runs], name_sizes[of], name_words, of)
        numbers = partitions[run_starts[runs.start] : run_starts[runs.stop]]
        _pack_counted(packed, at[runs] + name_sizes[of], counts[runs], numbers)
    _pack_bytes(packed, bounds[:-1], head)
    at_any_byte(packed, ">i4")[bounds[:-1] + len(head)] = lists
    _pack_bytes(packed, bounds[1:] - len(tail), tail)
    return packed.data, bounds


def _pack_bytes(packed: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], data: bytes) -> None:
    for offset, byte in enumerate(data):
        packed[at + offset] = byte


def _pack_names(
    packed: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    words: npt.NDArray[np.uint64],
    topics: npt.NDArray[np.int32],
) -> None:
    """Write names in words of 8 bytes.

    The last word of a name may reach beyond it, but not beyond the count and the first partition behind, which
    are written later.
    """
    places = at_any_byte(packed, "u8")
    for word in range(words.shape[1]):
        reaching = np.flatnonzero(sizes > word * _WORD)
        places[at[reaching] + word * _WORD] = words[topics[reaching], word]


def _pack_counted(
    packed: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    partitions: PartitionArray,
) -> None:
    """Write counts, each followed by so many partitions."""
    places = at_any_byte(packed, ">i4")
    places[at] = counts
    before = np.cumsum(counts) - counts
    places[np.repeat(at + 4 - 4 * before, counts) + 4 * np.arange(partitions.size)] = partitions


def at_any_byte(buffer: bytes | npt.NDArray[np.uint8], kind: str) -> npt.NDArray[Any]:
    """Return a view of the buffer in which element i is the number that starts at byte i."""
    dtype = np.dtype(kind)
    return np.ndarray(max(0, len(buffer) - dtype.itemsize + 1), dtype, buffer, strides=(1,))


def _normalised(topics: tuple[str, ...], starts: Offsets, partitions: PartitionArray) -> TopicPartitions:
    """Return the partitions, ascending and once, of topics that may be repeated or without any."""
    if ascend_in_slices(starts, partitions) and strictly_ascending(topics):
        return TopicPartitions.from_slices(topics, starts, partitions)
    gathered: dict[str, list[int]] = {}
    for topic, chunk in zip(topics, np.split(partitions, starts[1:-1]), strict=True):
        gathered.setdefault(topic, []).extend(chunk.tolist())
    return TopicPartitions(gathered)
