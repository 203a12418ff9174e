"""Kafka's primitive types: vectorized readers and skippers over many rows."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Numbers
from groupwright.pipeline._decoding.list_offsets import ShortError, length_at, within

TIMESTAMP = pa.timestamp("us", tz="UTC")


class Type(Protocol):
    """A type of field.

    Attributes:
        shape: What its values are in Arrow.
        least: The fewest bytes that a value takes.
    """

    @property
    def shape(self) -> pa.DataType: ...

    @property
    def least(self) -> int: ...

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """Read a value of each row; `what` names the field in the reason for rejected rows."""

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """Skip a value of each row."""

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """Return the end of the value at this position.

        Raises:
            ShortError: It goes beyond the end.
        """


@dataclass(frozen=True)
class Int:
    """An integer of fixed size.

    Attributes:
        size: 1, 2, 4 or 8.
        none: The number that stands for none.
        names: What numbers mean, if they are names; others are refused.
    """

    size: int
    none: int | None = None
    names: tuple[str, ...] = ()

    @property
    def shape(self) -> pa.DataType:
        """An integer, or a string if numbers have names."""
        return (
            pa.string()
            if self.names
            else {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[self.size]
        )

    @property
    def least(self) -> int:
        """Its size."""
        return self.size

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        numbers = cursor.number(f">i{self.size}", what)
        if not self.names:
            return arrays.integers(numbers, self.shape, self.none)
        cursor.refuse(
            (numbers < 0) | (numbers >= len(self.names)), f"{what}: not one of {', '.join(self.names)}"
        )
        return pa.array(self.names).take(pa.array(np.clip(numbers, 0, len(self.names) - 1)))

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        cursor.go_on(self.size, what)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return within(at + self.size, end)


@dataclass(frozen=True)
class Time:
    """Milliseconds since 1970; negative for none."""

    shape: pa.DataType = TIMESTAMP
    least: int = 8

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        return arrays.times(cursor.number(">i8", what), self.shape)

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        cursor.go_on(self.least, what)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return within(at + self.least, end)


@dataclass(frozen=True)
class Uuid:
    """A UUID; `none_if_zero` if the zero UUID stands for none."""

    none_if_zero: bool = False
    shape: pa.DataType = pa.string()  # noqa: RUF009 - Arrow's types are values
    least: int = 16

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        starts = cursor.at
        cursor.go_on(self.least, what)
        return arrays.uuids(cursor, starts, none_if_zero=self.none_if_zero)

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        cursor.go_on(self.least, what)

    def skip_one(self, _data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return within(at + self.least, end)


@dataclass(frozen=True)
class Sized:
    """STRING or BYTES: a length and as many bytes.

    Attributes:
        width: How many bytes the length has; 0 if it is a varint, and one more than the length (COMPACT_…).
        nullable: Whether a length of -1 stands for none.
        is_text: Whether it is a string.
    """

    width: int
    nullable: bool = False
    is_text: bool = True

    @property
    def shape(self) -> pa.DataType:
        """A string, or bytes."""
        return pa.string() if self.is_text else pa.binary()

    @property
    def least(self) -> int:
        """The bytes of the length."""
        return self.width or 1

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        sizes, starts, ends = self._span(cursor, what)
        null = sizes < 0 if self.nullable else None
        if self.is_text:
            return arrays.strings(cursor, starts, ends, null, what)
        return arrays.byte_strings(cursor.buffer, starts, ends, null)

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        self._span(cursor, what)

    def _span(self, cursor: BatchCursor, what: str) -> tuple[Numbers, Numbers, Numbers]:
        sizes = cursor.number(f">i{self.width}", what) if self.width else cursor.varint(what) - 1
        is_null = sizes == -1
        starts, ends = cursor.span(np.where(is_null, 0, sizes) if self.nullable else sizes, what)
        return sizes, starts, ends

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        size, at = length_at(data, at, end, self.width)
        if size < (-1 if self.nullable else 0):
            raise ShortError("a negative length")
        return within(at + max(size, 0), end)
