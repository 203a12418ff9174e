"""Arrow arrays from decoded positions, sliced from one buffer without creating an object per row."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding.cursors import BatchCursor, Bytes, Flags, Numbers

_BASE64URL = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_UUID_BYTES = 16
_UUID_CHARACTERS = 22
_END_OF_TIME = 253_370_764_800_000
"""The year 9999 in milliseconds since 1970, from which on Python cannot represent times in all time zones."""


def integers(numbers: Numbers, arrow_type: pa.DataType, null_value: int | None = None) -> pa.Array:
    """Return an integer array; numbers equal to `null_value` become null."""
    cast = numbers.astype(arrow_type.to_pandas_dtype())
    return pa.array(
        cast, arrow_type, mask=None if null_value is None else _mask(np.equal(numbers, null_value))
    )


def times(milliseconds: Numbers, arrow_type: pa.DataType) -> pa.Array:
    """Return timestamps from milliseconds since 1970, null where negative or after the year 9998."""
    is_null = (milliseconds < 0) | (milliseconds >= _END_OF_TIME)
    micros = np.where(is_null, 0, milliseconds) * 1000
    return pa.array(micros, pa.int64(), mask=_mask(is_null)).view(arrow_type)


def byte_strings(buffer: Bytes, starts: Numbers, ends: Numbers, null: Flags | None = None) -> pa.Array:
    """Return the byte strings in the ranges of the buffer, which must be ascending.

    Args:
        buffer: The bytes.
        starts: `(rows,) int64`.
        ends: `(rows,) int64`, exclusive.
        null: `(rows,) bool`, whether a row is null; None for no nulls.
    """
    count = starts.size
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = offsets[-2] if count else 0
    # One array over the whole buffer, in which the ranges alternate with the gaps between them.
    both = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    indices = pa.array(np.arange(0, 2 * count, 2), mask=None if null is None else _mask(null))
    return both.take(indices)


def strings(cursor: BatchCursor, starts: Numbers, ends: Numbers, null: Flags | None, path: str) -> pa.Array:
    """Return the strings at these ranges; rows with invalid UTF-8 are rejected and have empty strings."""
    raw = byte_strings(cursor.buffer, starts, ends, null)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        bad = np.array([value is not None and not _is_utf8(value) for value in raw.to_pylist()])
        cursor.reject(bad, f"{path}: it is not UTF-8")
        return byte_strings(cursor.buffer, starts, np.where(bad, starts, ends), null).cast(pa.string())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def uuids(cursor: BatchCursor, starts: Numbers, *, null_if_zero: bool = False) -> pa.Array:
    """Return UUIDs in Kafka's format: 22 characters of URL-safe base64."""
    size = starts.size
    padded = np.zeros((size, 18), np.uint8)
    # A rejected row may have fewer bytes than a UUID; the margin makes the read safe.
    padded[:, :_UUID_BYTES] = cursor.buffer[starts[:, None] + np.arange(_UUID_BYTES)]
    triples = padded.reshape(size, 6, 3).astype(np.uint32)
    joined = (triples[..., 0] << 16) | (triples[..., 1] << 8) | triples[..., 2]
    sextets = (joined[..., None] >> np.array([18, 12, 6, 0], np.uint32)) & 63
    text = np.ascontiguousarray(_BASE64URL[sextets].reshape(size, 24)[:, :_UUID_CHARACTERS])
    offsets = np.arange(size + 1, dtype=np.int32) * _UUID_CHARACTERS
    array = pa.Array.from_buffers(pa.string(), size, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    if not null_if_zero:
        return array
    return array.take(pa.array(np.arange(size), mask=_mask(np.logical_not(padded.any(axis=1)))))


def lists(counts: Numbers, values: pa.Array) -> pa.Array:
    """Return lists of consecutive values; `counts` has the length of each list."""
    offsets = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def structs(columns: Mapping[str, pa.Array], arrow_type: pa.StructType, length: int) -> pa.Array:
    """Return structs of this type; fields without a column are null."""
    arrays = [
        columns[child.name] if child.name in columns else pa.nulls(length, child.type) for child in arrow_type
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type))


def scatter(
    parts: list[tuple[Numbers, pa.Array]], length: int, arrow_type: pa.DataType, keep: Flags | None = None
) -> pa.Array:
    """Combine parts, each with the rows that it fills; other rows are null.

    Args:
        parts: `(rows, values)` of each part, with equal lengths; no row is in two parts.
        length: Length of the result.
        arrow_type: Type of the result.
        keep: `(length,) bool`, False for rows that must be null.
    """
    parts = [part for part in parts if part[0].size]
    if not parts:
        return pa.nulls(length, arrow_type)
    rows = np.concatenate([rows for rows, _ in parts])
    values = parts[0][1] if len(parts) == 1 else pa.concat_arrays([values for _, values in parts])
    in_order = rows.size == length and (rows[1:] > rows[:-1]).all()
    if in_order and (keep is None or keep.all()):
        return values
    positions = np.full(length, -1, np.int64)
    positions[rows] = np.arange(rows.size)
    if keep is not None:
        positions[~keep] = -1
    return values.take(pa.array(positions, mask=_mask(positions < 0)))


def null_unless(array: pa.Array, keep: Flags) -> pa.Array:
    """Return the array, with null where `keep` is False."""
    if keep.all():
        return array
    if not keep.any():
        return pa.nulls(len(array), array.type)
    return array.take(pa.array(np.arange(len(array)), mask=~keep))


def _mask(flags: Flags) -> Flags | None:
    return flags if flags.any() else None
