"""Kafka's primitive types: vectorized readers and skippers over many rows."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Numbers
from groupwright.pipeline._decoding.list_offsets import MalformedError, checked_end, length_at

TIMESTAMP = pa.timestamp("us", tz="UTC")


class Type(Protocol):
    """Type of a field.

    Attributes:
        arrow_type: Arrow type of its values.
        min_size: Minimum size of a value, in bytes.
    """

    @property
    def arrow_type(self) -> pa.DataType: ...

    @property
    def min_size(self) -> int: ...

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """Read a value of each row; `path` names the field in the reason if a row is rejected."""

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """Skip a value of each row."""

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """Return the end of the value at this position.

        Raises:
            MalformedError: The value goes beyond the end, or is not valid.
        """


@dataclass(frozen=True)
class Int:
    """INT8, INT16, INT32 or INT64.

    Attributes:
        size: Size in bytes: 1, 2, 4 or 8.
        null_value: The number that means null.
        names: Names of consecutive numbers of an enumeration; other numbers are rejected.
        first: The first of these numbers.
    """

    size: int
    null_value: int | None = None
    names: tuple[str, ...] = ()
    first: int = 0

    @property
    def arrow_type(self) -> pa.DataType:
        """An integer, or a string if numbers have names."""
        return (
            pa.string()
            if self.names
            else {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[self.size]
        )

    @property
    def min_size(self) -> int:
        """The size, in bytes."""
        return self.size

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        numbers = cursor.integer(f">i{self.size}", path)
        if not self.names:
            return arrays.integers(numbers, self.arrow_type, self.null_value)
        numbers = numbers - self.first
        cursor.reject(
            (numbers < 0) | (numbers >= len(self.names)), f"{path}: not one of {', '.join(self.names)}"
        )
        return pa.array(self.names).take(pa.array(np.clip(numbers, 0, len(self.names) - 1)))

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        cursor.skip(self.size, path)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return checked_end(at + self.size, end)


@dataclass(frozen=True)
class Time:
    """INT64: milliseconds since 1970 in UTC; negative numbers, and times after the year 9998, mean null."""

    arrow_type: pa.DataType = TIMESTAMP
    min_size: int = 8

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        return arrays.times(cursor.integer(">i8", path), self.arrow_type)

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        cursor.skip(self.min_size, path)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return checked_end(at + self.min_size, end)


@dataclass(frozen=True)
class Uuid:
    """UUID; with `null_if_zero`, the zero UUID means null."""

    null_if_zero: bool = False
    arrow_type: pa.DataType = pa.string()  # noqa: RUF009 - Arrow's types are values
    min_size: int = 16

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        starts = cursor.at
        cursor.skip(self.min_size, path)
        return arrays.uuids(cursor, starts, null_if_zero=self.null_if_zero)

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        cursor.skip(self.min_size, path)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return checked_end(at + self.min_size, end)


@dataclass(frozen=True)
class LengthPrefixed:
    """STRING, BYTES, and their compact and nullable variants: a length, and as many bytes.

    Attributes:
        width: Size of the length in bytes; 0 for an UNSIGNED_VARINT of the length + 1 (COMPACT_STRING).
        nullable: Whether a length of -1 is valid, and means null.
        is_text: Whether the value is a string rather than bytes.
    """

    width: int
    nullable: bool = False
    is_text: bool = True

    @property
    def arrow_type(self) -> pa.DataType:
        """A string, or bytes."""
        return pa.string() if self.is_text else pa.binary()

    @property
    def min_size(self) -> int:
        """Size of the length, in bytes."""
        return self.width or 1

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        sizes, starts, ends = self._span(cursor, path)
        null = sizes < 0 if self.nullable else None
        if self.is_text:
            return arrays.strings(cursor, starts, ends, null, path)
        return arrays.byte_strings(cursor.buffer, starts, ends, null)

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        self._span(cursor, path)

    def _span(self, cursor: BatchCursor, path: str) -> tuple[Numbers, Numbers, Numbers]:
        sizes = cursor.integer(f">i{self.width}", path) if self.width else cursor.varint(path) - 1
        is_null = sizes == -1
        starts, ends = cursor.span(np.where(is_null, 0, sizes) if self.nullable else sizes, path)
        return sizes, starts, ends

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        size, at = length_at(data, at, end, self.width)
        if size < (-1 if self.nullable else 0):
            raise MalformedError("a negative length")
        return checked_end(at + max(size, 0), end)
