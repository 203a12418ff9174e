"""Offsets of list elements: each element ends where the next starts, so they are located in turn.

One vectorized step locates the first elements of all lists, the next one all second elements, and so on. The
last `_FEW` lists are read one by one, in Python. The work is linear in the number of bytes, since an element
has at least one byte.
"""

from typing import Protocol

import numpy as np

from groupwright.pipeline._decoding.cursors import MARGIN, BatchCursor, Numbers

_FEW = 24
"""Number of lists at which one vectorized step costs as much as one step in each list alone."""

_VARINT_SHIFTS = range(0, 35, 7)


class MalformedError(ValueError):
    """The bytes are too few for a value, or not a valid one."""


class Skippable(Protocol):
    """Type of a list's elements."""

    def skip(self, cursor: BatchCursor, path: str) -> None:
        """Skip one element in each row."""

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """Return the end of the element at this position, or raise a `MalformedError`."""


def locate_elements(
    cursor: BatchCursor, counts: Numbers, element: Skippable, path: str
) -> tuple[Numbers, Numbers]:
    """Skip one list in each row, and locate its elements. Rows with an invalid element are rejected.

    Args:
        cursor: Positions of the first elements; moved behind the lists.
        counts: `(rows,) int64`, the number of elements of each list.
        element: Type of the elements.
        path: The field, for the reason if a row is rejected.

    Returns:
        `(elements,) int64` twice, for all elements of valid rows: row, ascending, and position in the buffer.
    """
    rows, starts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    remaining = np.flatnonzero(counts > 0)
    cursor.at = cursor.at.copy()  # it is modified below, and callers may hold the previous array
    index = 0
    while remaining.size > _FEW:
        part = cursor.take(remaining)
        rows.append(remaining)
        starts.append(part.at)
        element.skip(part, path)
        cursor.merge_rejections(part, remaining)
        cursor.at[remaining] = part.at
        index += 1
        remaining = remaining[part.valid & (counts[remaining] > index)]
    if remaining.size:
        data = cursor.buffer[: cursor.buffer.size - MARGIN].tobytes()
        for row in remaining.tolist():
            found = _locate_one_list(cursor, row, int(counts[row]) - index, element, data, path)
            rows.append(np.full(len(found), row))
            starts.append(np.array(found, np.int64))
    row_of, at = np.concatenate(rows), np.concatenate(starts)
    order = np.argsort(row_of, kind="stable")
    order = order[cursor.valid[row_of[order]]]
    return row_of[order], at[order]


def _locate_one_list(
    cursor: BatchCursor, row: int, count: int, element: Skippable, data: bytes, path: str
) -> list[int]:
    at, end = int(cursor.at[row]), int(cursor.ends[row])
    found = []
    try:
        for _ in range(count):
            found.append(at)
            at = element.skip_one(data, at, end)
    except MalformedError as error:
        is_row = np.zeros(len(cursor), np.bool_)
        is_row[row] = True
        cursor.at[row] = at
        cursor.reject(is_row, f"{path}: {error}")
    cursor.at[row] = at
    return found


def checked_end(at: int, end: int) -> int:
    """Return the position.

    Raises:
        MalformedError: The position is behind the end.
    """
    if at > end:
        raise MalformedError("it goes beyond the end")
    return at


def length_at(data: bytes, at: int, end: int, width: int) -> tuple[int, int]:
    """Read a length, and return it with the position after it.

    Args:
        data: The bytes.
        at: Position of the length.
        end: End of the row.
        width: Size of the length in bytes; 0 for an UNSIGNED_VARINT of the length + 1, as in COMPACT_STRING.

    Raises:
        MalformedError: The length goes beyond the end, or is a varint of more than 5 bytes.
    """
    if not width:
        number, at = varint_at(data, at, end)
        return number - 1, at
    checked_end(at + width, end)
    return int.from_bytes(data[at : at + width], "big", signed=True), at + width


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read an UNSIGNED_VARINT, and return it with the position after it.

    Raises:
        MalformedError: The varint goes beyond the end, or has more than 5 bytes.
    """
    number = 0
    for shift in _VARINT_SHIFTS:
        checked_end(at + 1, end)
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return number, at
    raise MalformedError("a varint of more than 5 bytes")
