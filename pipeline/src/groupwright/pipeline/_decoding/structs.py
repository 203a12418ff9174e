"""Arrays and structs of Kafka's messages, read off many rows at once.

What an array's elements are is found in two steps: where each begins, one after the other since each tells
where the next one is, but for all rows together; then all elements of all rows are read as rows of their own.
Flexible messages end their structs with tagged fields (KIP-482).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Numbers
from groupwright.pipeline._decoding.list_offsets import (
    ShortError,
    length_at,
    locate_elements,
    varint_at,
    within,
)
from groupwright.pipeline._decoding.types import Int, Type


@dataclass(frozen=True)
class Array:
    """An array of other values.

    Attributes:
        element: What they are.
        width: How many bytes the count has; 0 if it is a varint, and one more than the count.
        nullable: Whether a count of -1 stands for none, which is then read as empty.
    """

    element: Type
    width: int
    nullable: bool = False

    @property
    def shape(self) -> pa.DataType:
        """A list."""
        return pa.list_(self.element.shape)

    @property
    def least(self) -> int:
        """The bytes of the count."""
        return self.width or 1

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        counts = self._counts(cursor, what)
        if isinstance(self.element, Int):
            return arrays.lists(counts, self._integers(cursor, counts, what))
        rows, starts = locate_elements(cursor, counts, self.element, what)
        elements = cursor.within(starts, cursor.ends[rows])
        values = self.element.read(elements, what)
        cursor.refuse_with(elements, rows)
        return arrays.lists(np.bincount(rows, minlength=len(cursor)), values)

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        counts = self._counts(cursor, what)
        if isinstance(self.element, Int):
            cursor.go_on(counts * self.element.size, what)
        else:
            locate_elements(cursor, counts, self.element, what)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        count, at = length_at(data, at, end, self.width)
        if count < (-1 if self.nullable else 0):
            raise ShortError("a negative count")
        within(at + count * self.element.least, end)
        if isinstance(self.element, Int):
            return at + max(count, 0) * self.element.size
        for _ in range(count):
            at = self.element.skip_one(data, at, end)
        return at

    def _counts(self, cursor: BatchCursor, what: str) -> Numbers:
        counts = cursor.number(f">i{self.width}", what) if self.width else cursor.varint(what) - 1
        if self.nullable:
            counts = np.where(counts == -1, 0, counts)
        return cursor.counts(counts, self.element.least, what)

    def _integers(self, cursor: BatchCursor, counts: Numbers, what: str) -> pa.Array:
        size = self.element.least
        before = np.cumsum(counts) - counts
        places = np.repeat(cursor.at - size * before, counts) + size * np.arange(counts.sum())
        cursor.go_on(counts * size, what)
        return arrays.integers(cursor.view(f">i{size}")[places].astype(np.int64), self.element.shape)


Fields = tuple[tuple[str, Type], ...]
"""Names and types of a struct's fields, in order. Fields with a leading underscore are skipped."""


@dataclass(frozen=True)
class Struct:
    """Consecutive fields, followed by tagged fields in flexible versions.

    Attributes:
        fields: The fields.
        tags: The tagged fields that are known, by tag; None if the struct is not flexible. Others are gone
            past.
        looks: What it is in Arrow, if it has not just its fields.
    """

    fields: Fields
    tags: Mapping[int, tuple[str, Type]] | None = None
    looks: pa.StructType | None = None

    @property
    def shape(self) -> pa.DataType:
        """A struct."""
        if self.looks is not None:
            return self.looks
        tagged = () if self.tags is None else tuple(self.tags.values())
        return pa.struct([(name, kind.shape) for name, kind in (*self.fields, *tagged) if name[0] != "_"])

    @property
    def least(self) -> int:
        """The minimum size of all fields, in bytes."""
        return sum(kind.least for _, kind in self.fields) + (self.tags is not None)

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        return arrays.structs(self.columns(cursor, what), self.shape, len(cursor))

    def columns(self, cursor: BatchCursor, what: str = "") -> dict[str, pa.Array]:
        """Read the fields of each row, each an array by its name."""
        columns = {}
        for name, kind in self.fields:
            path = f"{what}.{name.lstrip('_')}" if what else name.lstrip("_")
            if name[0] == "_":
                kind.skip(cursor, path)
            else:
                columns[name] = kind.read(cursor, path)
        if self.tags is not None:
            columns |= _read_tags(cursor, self.tags, what)
        return columns

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        for name, kind in self.fields:
            kind.skip(cursor, f"{what}.{name.lstrip('_')}")
        if self.tags is not None:
            _skip_tags(cursor, what)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        for _, kind in self.fields:
            at = kind.skip_one(data, at, end)
        return at if self.tags is None else _skip_tags_of_one(data, at, end)


@dataclass(frozen=True)
class Picked:
    """One field of a struct, in place of the struct."""

    name: str
    struct: Struct

    @property
    def shape(self) -> pa.DataType:
        """The field's."""
        return dict(self.struct.fields)[self.name].shape

    @property
    def least(self) -> int:
        """The struct's."""
        return self.struct.least

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        return self.struct.columns(cursor, what)[self.name]

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        self.struct.skip(cursor, what)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return self.struct.skip_one(data, at, end)


@dataclass(frozen=True)
class Nullable:
    """A nullable struct in a tagged field: a varint, 0 for none, and the struct."""

    inner: Type

    @property
    def shape(self) -> pa.DataType:
        """The struct's."""
        return self.inner.shape

    @property
    def least(self) -> int:
        """The byte."""
        return 1

    def read(self, cursor: BatchCursor, what: str) -> pa.Array:
        """See `Type`."""
        rows = np.flatnonzero(cursor.varint(what) > 0)
        part = cursor.take(rows)
        values = self.inner.read(part, what)
        cursor.refuse_with(part, rows)
        cursor.at = _with(cursor.at, rows, part.at)
        return arrays.scatter([(rows, values)], len(cursor), self.shape)

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """See `Type`."""
        rows = np.flatnonzero(cursor.varint(what) > 0)
        part = cursor.take(rows)
        self.inner.skip(part, what)
        cursor.refuse_with(part, rows)
        cursor.at = _with(cursor.at, rows, part.at)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        is_there, at = varint_at(data, at, end)
        return self.inner.skip_one(data, at, end) if is_there else at


def _with(numbers: Numbers, rows: Numbers, others: Numbers) -> Numbers:
    changed = numbers.copy()
    changed[rows] = others
    return changed


class _Tag:
    """A tagged field: tag, size and bytes."""

    least = 2

    def skip(self, cursor: BatchCursor, what: str) -> None:
        cursor.varint(what)
        cursor.span(cursor.varint(what), what)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        _, at = varint_at(data, at, end)
        size, at = varint_at(data, at, end)
        return within(at + size, end)


_TAG = _Tag()


def _skip_tags_of_one(data: bytes, at: int, end: int) -> int:
    count, at = varint_at(data, at, end)
    within(at + count * _TAG.least, end)
    for _ in range(count):
        at = _TAG.skip_one(data, at, end)
    return at


def _skip_tags(cursor: BatchCursor, what: str) -> tuple[Numbers, Numbers]:
    what = f"{what}.tags" if what else "tags"
    counts = cursor.counts(cursor.varint(what), _TAG.least, what)
    return locate_elements(cursor, counts, _TAG, what)


def _read_tags(cursor: BatchCursor, known: Mapping[int, tuple[str, Type]], what: str) -> dict[str, pa.Array]:
    """Read the known tagged fields; missing ones are null."""
    rows, starts = _skip_tags(cursor, what)
    if not rows.size:
        return {name: pa.nulls(len(cursor), kind.shape) for name, kind in known.values()}
    tagged = cursor.within(starts, cursor.ends[rows])
    tags = tagged.varint(what)
    values, ends = tagged.span(tagged.varint(what), what)
    columns = {}
    for tag, (name, kind) in known.items():
        # Of several fields with the same tag, Kafka uses the last.
        _, last = np.unique(rows[::-1][tags[::-1] == tag], return_index=True)
        chosen = np.flatnonzero(tags == tag)[::-1][last]
        field = cursor.within(values[chosen], ends[chosen])
        path = f"{what}.{name}" if what else name
        read = kind.read(field, path)
        field.refuse(field.at != field.ends, f"{path}: it does not have the size that its tag says")
        cursor.refuse_with(field, rows[chosen])
        columns[name] = arrays.scatter([(rows[chosen], read)], len(cursor), kind.shape)
    return columns
