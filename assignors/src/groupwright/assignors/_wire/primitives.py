"""Kafka primitive types: a bounds-checked reader, and writers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from reprlib import repr as brief

from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic, sorted_names
from groupwright.assignors.errors import InvalidInputError, MalformedBytesError

NULL_BYTES = b"\xff\xff\xff\xff"
_NULL_STRING = b"\xff\xff"
_MAX_STRING = 2**15 - 1


class Reader:
    """Reads one value after the other from bytes.

    Every length is checked against the remaining bytes before it is used. Bytes after the last value are
    ignored. Every method that reads raises `MalformedBytesError` if the value is missing or malformed; its
    argument `what` is the field's name for the message.

    Attributes:
        data: The bytes.
        names: Strings decoded so far, by their bytes.
        offset: The offset of the next value.
    """

    __slots__ = ("_what", "data", "names", "offset")

    def __init__(self, data: bytes, what: str, names: dict[bytes, str] | None = None) -> None:
        """Start at the first byte.

        Args:
            data: The bytes.
            what: Their content, for error messages.
            names: Strings decoded so far, by their bytes. Readers that share this mapping share equal
                strings.
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

    def version(self) -> int:
        """Read the INT16 version that a format begins with; a negative one is malformed."""
        version = self.int16("version")
        if version < 0:
            raise self.malformed("a version of 0 or more", f"{version}", back=2)
        return version

    def float64(self, what: str) -> float:
        """Read a FLOAT64, which may be NaN or infinite."""
        (number,) = struct.unpack(">d", self._int(8, what).to_bytes(8, "big", signed=True))
        return float(number)

    def string(self, what: str) -> str:
        """Read a STRING."""
        raw = self._length_prefixed(2, what)
        text = self.names.get(raw)
        if text is None:
            text = self.names[raw] = self._utf8(raw, what)
        return text

    def nullable_string(self, what: str) -> str | None:
        """Read a NULLABLE_STRING; length -1 is None."""
        return None if self.skip(_NULL_STRING) else self.string(what)

    def nullable_bytes(self, what: str) -> bytes | None:
        """Read NULLABLE_BYTES; length -1 is None."""
        return None if self.skip(NULL_BYTES) else self._length_prefixed(4, what)

    def strings(self, what: str) -> tuple[str, ...]:
        """Read an array of STRING."""
        return tuple([self.string(what) for _ in range(self._count(2, what))])

    def topic_partitions(self, what: str) -> PartitionsByTopic:
        """Read an array of (topic, array of partitions).

        As in Kafka, topics and partitions may be in any order, and repeat.
        """
        by_topic: dict[str, list[int]] = {}
        for _ in range(self._count(6, what)):
            numbers = by_topic.setdefault(self.string(what), [])
            run = self._length_prefixed(4, what, unit=4)
            numbers.extend(struct.unpack(f">{len(run) // 4}i", run))
        return PartitionsByTopic.of_ints(by_topic) if by_topic else NO_PARTITIONS

    def skip(self, known: bytes) -> bool:
        """Skip these bytes if they are next, and return whether they were."""
        comes_next = self.data.startswith(known, self.offset)
        if comes_next:
            self.offset += len(known)
        return comes_next

    def since(self, offset: int) -> bytes:
        """Return the bytes from an earlier offset up to the current one."""
        return self.data[offset : self.offset]

    def malformed(self, expected: str, found: str, *, back: int = 0) -> MalformedBytesError:
        """Return an error about the value that begins `back` bytes before the current offset."""
        return MalformedBytesError(self._what, self.offset - back, expected, found)

    def _int(self, size: int, what: str) -> int:
        end = self.offset + size
        if end > len(self.data):
            raise self.malformed(f"{size} bytes of {what}", self._remaining())
        number = int.from_bytes(self.data[self.offset : end], "big", signed=True)
        self.offset = end
        return number

    def _count(self, min_size: int, what: str) -> int:
        """Read the length of an array whose elements have at least `min_size` bytes."""
        count = self.int32(what)
        if not 0 <= count * min_size <= len(self.data) - self.offset:
            raise self.malformed(f"a count in {what}", f"{count} with {self._remaining()}", back=4)
        return count

    def _length_prefixed(self, width: int, what: str, unit: int = 1) -> bytes:
        """Read a length of `width` bytes, in units of `unit` bytes, and the value of that length."""
        start = self.offset + width
        length = int.from_bytes(self.data[self.offset : start], "big", signed=True)
        end = start + length * unit
        if not start <= end <= len(self.data):
            self._int(width, what)
            raise self.malformed(f"a length in {what}", f"{length} with {self._remaining()}", back=width)
        self.offset = end
        return self.data[start:end]

    def _remaining(self) -> str:
        return f"{len(self.data) - self.offset} bytes left"

    def _utf8(self, raw: bytes, what: str) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.malformed(f"UTF-8 in {what}", brief(raw), back=len(raw)) from error


def version(number: int, newest: int, what: str) -> bytes:
    """Write the INT16 version that the format `what` begins with.

    Raises:
        InvalidInputError: The format has no such version.
    """
    if not 0 <= number <= newest:
        raise InvalidInputError(f"{what} has versions 0 to {newest}, not {number}")
    return number.to_bytes(2, "big")


def string(text: str, what: str) -> bytes:
    """Write a STRING.

    Raises:
        InvalidInputError: It is longer than 32,767 bytes in UTF-8, or cannot be encoded in UTF-8.
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
        InvalidInputError: See `string`.
    """
    return _NULL_STRING if text is None else string(text, what)


def int32(number: int, what: str) -> bytes:
    """Write an INT32.

    Raises:
        InvalidInputError: The number has more than 32 bits.
    """
    try:
        return number.to_bytes(4, "big", signed=True)
    except OverflowError as error:
        raise InvalidInputError(f"{what} must have 32 bits, not be {number}") from error


def float64(number: float) -> bytes:
    """Write a FLOAT64."""
    return struct.pack(">d", number)


def nullable_bytes(data: bytes | None, what: str) -> bytes:
    """Write NULLABLE_BYTES.

    Raises:
        InvalidInputError: It has 2³¹ bytes or more.
    """
    return NULL_BYTES if data is None else int32(len(data), f"the length of {what}") + data


def strings(texts: Sequence[str], what: str) -> bytes:
    """Write an array of STRING, sorted in Kafka's order."""
    return int32(len(texts), what) + b"".join(string(text, what) for text in sorted_names(texts))


def topic_partitions(partitions: PartitionsByTopic) -> bytes:
    """Write an array of (topic, array of partitions), sorted."""
    listed = partitions.as_tuples()
    runs = (
        string(topic, "topic") + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in listed.items()
    )
    return int32(len(listed), "the number of topics") + b"".join(runs)
