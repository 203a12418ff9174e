"""Kafka's primitive types as bytes: a reader that believes no length, and writers."""

import struct
from collections.abc import Sequence

from groupwright.assignors._model.order import sorted_names
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors.errors import InvalidInputError, MalformedBytesError

NULL_BYTES = b"\xff\xff\xff\xff"
_NULL_STRING = b"\xff\xff"
_MAX_STRING = 2**15 - 1


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

    def topic_partitions(self, what: str) -> PartitionsByTopic:
        """Read an array of a topic and an array of its partitions.

        Topics and partitions may come in any order, and more than once: Kafka reads them so.
        """
        gathered: dict[str, list[int]] = {}
        for _ in range(self._count(6, what)):
            numbers = gathered.setdefault(self.string(what), [])
            run = self._sized(4, what, unit=4)
            numbers.extend(struct.unpack(f">{len(run) // 4}i", run))
        return PartitionsByTopic.of_ints(gathered) if gathered else NO_PARTITIONS

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


def topic_partitions(partitions: PartitionsByTopic) -> bytes:
    """Write an array of a topic and an array of its partitions, in order."""
    listed = partitions.as_tuples()
    runs = (
        string(topic, "topic") + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in listed.items()
    )
    return int32(len(listed), "the number of topics") + b"".join(runs)
