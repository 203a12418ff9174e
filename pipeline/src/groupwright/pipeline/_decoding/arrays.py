"""Arrow arrays from decoded positions, sliced from one buffer without creating an object per row."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from groupwright.pipeline._decoding.cursors import BatchCursor, Bytes, Flags, Numbers

_BASE64URL = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_UUID_BYTES = 16
_UUID_CHARACTERS = 22


def integers(numbers: Numbers, kind: pa.DataType, none: int | None = None) -> pa.Array:
    """Return an integer array, null where the value is `none`."""
    cast = numbers.astype(kind.to_pandas_dtype())
    return pa.array(cast, kind, mask=None if none is None else _mask(np.equal(numbers, none)))


def times(milliseconds: Numbers, kind: pa.DataType) -> pa.Array:
    """Return timestamps from milliseconds since 1970, null where negative or out of range."""
    none = (milliseconds < 0) | (milliseconds > np.iinfo(np.int64).max // 1000)
    micros = np.where(none, 0, milliseconds) * 1000
    return pa.array(micros, pa.int64(), mask=_mask(none)).view(kind)


def byte_strings(buffer: Bytes, starts: Numbers, ends: Numbers, null: Flags | None = None) -> pa.Array:
    """Return the byte strings at ascending ranges of the buffer, with nulls as given."""
    count = starts.size
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = offsets[-2] if count else 0
    # One array over the whole buffer, in which the ranges alternate with the gaps between them.
    both = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    wanted = pa.array(np.arange(0, 2 * count, 2), mask=None if null is None else _mask(null))
    return both.take(wanted)


def strings(cursor: BatchCursor, starts: Numbers, ends: Numbers, null: Flags | None, what: str) -> pa.Array:
    """Return the strings at these ranges; rows with invalid UTF-8 are rejected and have empty strings."""
    found = byte_strings(cursor.buffer, starts, ends, null)
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        bad = np.array([value is not None and not _is_utf8(value) for value in found.to_pylist()])
        cursor.refuse(bad, f"{what}: it is not UTF-8")
        return byte_strings(cursor.buffer, starts, np.where(bad, starts, ends), null).cast(pa.string())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def uuids(cursor: BatchCursor, starts: Numbers, *, none_if_zero: bool = False) -> pa.Array:
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
    if not none_if_zero:
        return array
    return array.take(pa.array(np.arange(size), mask=_mask(np.logical_not(padded.any(axis=1)))))


def lists(counts: Numbers, values: pa.Array) -> pa.Array:
    """Return lists of consecutive values, with these lengths."""
    offsets = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def structs(columns: Mapping[str, pa.Array], shape: pa.StructType, length: int) -> pa.Array:
    """Return structs of this type; fields without a column are null."""
    arrays = [
        columns[child.name] if child.name in columns else pa.nulls(length, child.type) for child in shape
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(shape))


def scatter(
    parts: list[tuple[Numbers, pa.Array]], length: int, kind: pa.DataType, wanted: Flags | None = None
) -> pa.Array:
    """Combine parts, each with the rows that it fills; other rows are null.

    Args:
        parts: For each part its rows, none of which another part has, and its values.
        length: How many rows there are.
        kind: What the values are.
        wanted: Rows that are to be null in any case are not.
    """
    parts = [part for part in parts if part[0].size]
    if not parts:
        return pa.nulls(length, kind)
    rows = np.concatenate([rows for rows, _ in parts])
    values = parts[0][1] if len(parts) == 1 else pa.concat_arrays([values for _, values in parts])
    in_order = rows.size == length and (rows[1:] > rows[:-1]).all()
    if in_order and (wanted is None or wanted.all()):
        return values
    places = np.full(length, -1, np.int64)
    places[rows] = np.arange(rows.size)
    if wanted is not None:
        places[~wanted] = -1
    return values.take(pa.array(places, mask=_mask(places < 0)))


def only(array: pa.Array, wanted: Flags) -> pa.Array:
    """Return the array with null outside the mask."""
    if wanted.all():
        return array
    if not wanted.any():
        return pa.nulls(len(array), array.type)
    return array.take(pa.array(np.arange(len(array)), mask=~wanted))


def _mask(flags: Flags) -> Flags | None:
    return flags if flags.any() else None
