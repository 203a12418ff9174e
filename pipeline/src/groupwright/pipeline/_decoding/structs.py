"""Arrays and structs of Kafka's messages: vectorized readers and skippers over many rows.

The elements of arrays are read in two steps. `list_offsets` locates them; then all elements of all rows are
read at once, each as a row of its own. In flexible versions, structs end with tagged fields (KIP-482).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Numbers
from groupwright.pipeline._decoding.list_offsets import (
    MalformedError,
    checked_end,
    length_at,
    locate_elements,
    varint_at,
)
from groupwright.pipeline._decoding.types import Int, Type


@dataclass(frozen=True)
class Array:
    """ARRAY or COMPACT_ARRAY.

    Attributes:
        element: Type of the elements.
        width: Size of the count in bytes; 0 for an UNSIGNED_VARINT of the count + 1 (COMPACT_ARRAY).
        nullable: Whether a count of -1 is valid; it is read as an empty array.
    """

    element: Type
    width: int
    nullable: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """A list of the element's type."""
        return pa.list_(self.element.arrow_type)

    @property
    def min_size(self) -> int:
        """Size of the count, in bytes."""
        return self.width or 1

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        counts = self._counts(cursor, path)
        if isinstance(self.element, Int):
            return arrays.lists(counts, self._integers(cursor, counts, path))
        rows, starts = locate_elements(cursor, counts, self.element, path)
        elements = cursor.sub_cursor(starts, cursor.ends[rows])
        values = self.element.read(elements, path)
        cursor.merge_rejections(elements, rows)
        return arrays.lists(np.bincount(rows, minlength=len(cursor)), values)

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        counts = self._counts(cursor, path)
        if isinstance(self.element, Int):
            cursor.skip(counts * self.element.size, path)
        else:
            locate_elements(cursor, counts, self.element, path)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        count, at = length_at(data, at, end, self.width)
        if count < (-1 if self.nullable else 0):
            raise MalformedError("a negative count")
        checked_end(at + count * self.element.min_size, end)
        if isinstance(self.element, Int):
            return at + max(count, 0) * self.element.size
        for _ in range(count):
            at = self.element.skip_one(data, at, end)
        return at

    def _counts(self, cursor: BatchCursor, path: str) -> Numbers:
        counts = cursor.integer(f">i{self.width}", path) if self.width else cursor.varint(path) - 1
        if self.nullable:
            counts = np.where(counts == -1, 0, counts)
        return cursor.checked_counts(counts, self.element.min_size, path)

    def _integers(self, cursor: BatchCursor, counts: Numbers, path: str) -> pa.Array:
        size = self.element.min_size
        # The position of each integer of all rows: the start of its row's array, and its index in it.
        before = np.cumsum(counts) - counts
        places = np.repeat(cursor.at - size * before, counts) + size * np.arange(counts.sum())
        cursor.skip(counts * size, path)
        return arrays.integers(cursor.view(f">i{size}")[places].astype(np.int64), self.element.arrow_type)


Fields = tuple[tuple[str, Type], ...]
"""Names and types of a struct's fields, in order. Fields with a leading underscore are skipped."""


@dataclass(frozen=True)
class Struct:
    """Consecutive fields, followed by tagged fields in flexible versions.

    Attributes:
        fields: The fields.
        tags: The tagged fields to read, by tag; others are skipped. None for non-flexible versions.
        arrow_struct: Arrow type, if it has more fields than this version of the struct.
    """

    fields: Fields
    tags: Mapping[int, tuple[str, Type]] | None = None
    arrow_struct: pa.StructType | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        """A struct of the fields that are read."""
        if self.arrow_struct is not None:
            return self.arrow_struct
        tagged = () if self.tags is None else tuple(self.tags.values())
        return pa.struct(
            [(name, field_type.arrow_type) for name, field_type in (*self.fields, *tagged) if name[0] != "_"]
        )

    @property
    def min_size(self) -> int:
        """The minimum size of all fields, in bytes."""
        return sum(field_type.min_size for _, field_type in self.fields) + (self.tags is not None)

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        return arrays.structs(self.columns(cursor, path), self.arrow_type, len(cursor))

    def columns(self, cursor: BatchCursor, path: str = "") -> dict[str, pa.Array]:
        """Read the fields of each row, and return an array for each, by name."""
        columns = {}
        for name, field_type in self.fields:
            field_path = f"{path}.{name.lstrip('_')}" if path else name.lstrip("_")
            if name[0] == "_":
                field_type.skip(cursor, field_path)
            else:
                columns[name] = field_type.read(cursor, field_path)
        if self.tags is not None:
            columns |= _read_tags(cursor, self.tags, path)
        return columns

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        for name, field_type in self.fields:
            field_type.skip(cursor, f"{path}.{name.lstrip('_')}")
        if self.tags is not None:
            _skip_tags(cursor, path)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        for _, field_type in self.fields:
            at = field_type.skip_one(data, at, end)
        return at if self.tags is None else _skip_tags_of_one(data, at, end)


@dataclass(frozen=True)
class FieldOf:
    """A struct of which a single field is read."""

    name: str
    struct: Struct

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of the field."""
        return dict(self.struct.fields)[self.name].arrow_type

    @property
    def min_size(self) -> int:
        """Minimum size of the struct, in bytes."""
        return self.struct.min_size

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        return self.struct.columns(cursor, path)[self.name]

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        self.struct.skip(cursor, path)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        return self.struct.skip_one(data, at, end)


_SIGN = 0x80
"""Sign bit of an INT8."""


@dataclass(frozen=True)
class Nullable:
    """A nullable struct: a marker, followed by the struct unless it is null.

    Attributes:
        inner: The struct.
        marker: INT8, negative for null; None for an UNSIGNED_VARINT, 0 for null, as in tagged fields.
    """

    inner: Type
    marker: Int | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of the struct."""
        return self.inner.arrow_type

    @property
    def min_size(self) -> int:
        """Size of the null marker, in bytes."""
        return 1

    def read(self, cursor: BatchCursor, path: str) -> pa.Array:
        """See `Type`."""
        rows = self._present(cursor, path)
        part = cursor.take(rows)
        values = self.inner.read(part, path)
        cursor.merge_rejections(part, rows)
        cursor.at = _replaced(cursor.at, rows, part.at)
        return arrays.scatter([(rows, values)], len(cursor), self.arrow_type)

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """See `Type`."""
        rows = self._present(cursor, path)
        part = cursor.take(rows)
        self.inner.skip(part, path)
        cursor.merge_rejections(part, rows)
        cursor.at = _replaced(cursor.at, rows, part.at)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """See `Type`."""
        if self.marker is None:
            marker, at = varint_at(data, at, end)
            return self.inner.skip_one(data, at, end) if marker else at
        after = self.marker.skip_one(data, at, end)
        return after if data[at] & _SIGN else self.inner.skip_one(data, after, end)

    def _present(self, cursor: BatchCursor, path: str) -> Numbers:
        if self.marker is None:
            return np.flatnonzero(cursor.varint(path) > 0)
        return np.flatnonzero(cursor.integer(">i1", path) >= 0)


def _replaced(numbers: Numbers, rows: Numbers, new_values: Numbers) -> Numbers:
    """Return the numbers with new values in some rows."""
    updated = numbers.copy()
    updated[rows] = new_values
    return updated


class _TaggedField:
    """A tagged field: tag, size and bytes."""

    min_size = 2

    def skip(self, cursor: BatchCursor, path: str) -> None:
        cursor.varint(path)
        cursor.span(cursor.varint(path), path)

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        _, at = varint_at(data, at, end)
        size, at = varint_at(data, at, end)
        return checked_end(at + size, end)


_TAGGED_FIELD = _TaggedField()


def _skip_tags_of_one(data: bytes, at: int, end: int) -> int:
    count, at = varint_at(data, at, end)
    checked_end(at + count * _TAGGED_FIELD.min_size, end)
    for _ in range(count):
        at = _TAGGED_FIELD.skip_one(data, at, end)
    return at


def _skip_tags(cursor: BatchCursor, path: str) -> tuple[Numbers, Numbers]:
    path = f"{path}.tags" if path else "tags"
    counts = cursor.checked_counts(cursor.varint(path), _TAGGED_FIELD.min_size, path)
    return locate_elements(cursor, counts, _TAGGED_FIELD, path)


def _read_tags(cursor: BatchCursor, known: Mapping[int, tuple[str, Type]], path: str) -> dict[str, pa.Array]:
    """Read the known tagged fields; missing ones are null."""
    rows, starts = _skip_tags(cursor, path)
    if not rows.size:
        return {name: pa.nulls(len(cursor), field_type.arrow_type) for name, field_type in known.values()}
    tagged = cursor.sub_cursor(starts, cursor.ends[rows])
    tags = tagged.varint(path)
    values, ends = tagged.span(tagged.varint(path), path)
    columns = {}
    for tag, (name, field_type) in known.items():
        # Of several fields with the same tag, Kafka uses the last.
        _, last = np.unique(rows[::-1][tags[::-1] == tag], return_index=True)
        chosen = np.flatnonzero(tags == tag)[::-1][last]
        field = cursor.sub_cursor(values[chosen], ends[chosen])
        field_path = f"{path}.{name}" if path else name
        read = field_type.read(field, field_path)
        field.reject(field.at != field.ends, f"{field_path}: its size is not that of the tagged field")
        cursor.merge_rejections(field, rows[chosen])
        columns[name] = arrays.scatter([(rows[chosen], read)], len(cursor), field_type.arrow_type)
    return columns
