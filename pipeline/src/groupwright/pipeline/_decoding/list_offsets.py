"""Offsets of list elements: each element ends where the next starts, so they are located in turn.

The first elements of all lists are found at once, then all second ones, and so on; few long lists that remain
are walked alone. Either way the work is bounded by the bytes: an element has at least one.
"""

from typing import Protocol

import numpy as np

from groupwright.pipeline._decoding.cursors import MARGIN, BatchCursor, Numbers

_FEW = 24
"""Number of lists at which one vectorized step costs as much as one step in each list alone."""

_VARINT_SHIFTS = range(0, 35, 7)


class ShortError(ValueError):
    """The bytes are too short for a value, or do not start with a valid one."""


class Skippable(Protocol):
    """Type of a list's elements."""

    def skip(self, cursor: BatchCursor, what: str) -> None:
        """Skip one element in each row."""

    def skip_one(self, data: bytes, at: int, end: int) -> int:
        """Return the end of the element at this position, or raise a `ShortError`."""


def locate_elements(
    cursor: BatchCursor, counts: Numbers, element: Skippable, what: str
) -> tuple[Numbers, Numbers]:
    """Go past lists of so many elements in each row.

    Rows with an element that is not one are refused.

    Returns:
        For each element of the rows that are good, its row, ascending, and the place where it begins.
    """
    rows, starts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    left = np.flatnonzero(counts > 0)
    cursor.at = cursor.at.copy()  # whoever asked for a place before keeps it
    turn = 0
    while left.size > _FEW:
        part = cursor.take(left)
        rows.append(left)
        starts.append(part.at)
        element.skip(part, what)
        cursor.refuse_with(part, left)
        cursor.at[left] = part.at
        turn += 1
        left = left[part.good & (counts[left] > turn)]
    if left.size:
        data = cursor.buffer[: cursor.buffer.size - MARGIN].tobytes()
        for row in left.tolist():
            found = _locate_one_list(cursor, row, int(counts[row]) - turn, element, data, what)
            rows.append(np.full(len(found), row))
            starts.append(np.array(found, np.int64))
    of, at = np.concatenate(rows), np.concatenate(starts)
    order = np.argsort(of, kind="stable")
    order = order[cursor.good[of[order]]]
    return of[order], at[order]


def _locate_one_list(
    cursor: BatchCursor, row: int, count: int, element: Skippable, data: bytes, what: str
) -> list[int]:
    at, end = int(cursor.at[row]), int(cursor.ends[row])
    found = []
    try:
        for _ in range(count):
            found.append(at)
            at = element.skip_one(data, at, end)
    except ShortError as error:
        is_row = np.zeros(len(cursor), np.bool_)
        is_row[row] = True
        cursor.at[row] = at
        cursor.refuse(is_row, f"{what}: {error}")
    cursor.at[row] = at
    return found


def within(at: int, end: int) -> int:
    """Return the place, unless it is behind the end.

    Raises:
        ShortError: It is.
    """
    if at > end:
        raise ShortError("it goes beyond the end")
    return at


def length_at(data: bytes, at: int, end: int, width: int) -> tuple[int, int]:
    """Return the length at a place, and where what has it begins.

    Args:
        data: The bytes.
        at: The place.
        end: Where they end.
        width: How many bytes the length has; 0 if it is a varint, and one more than the length.

    Raises:
        ShortError: It goes beyond the end.
    """
    if not width:
        number, at = varint_at(data, at, end)
        return number - 1, at
    within(at + width, end)
    return int.from_bytes(data[at : at + width], "big", signed=True), at + width


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the varint at a place, and where it ends.

    Raises:
        ShortError: It goes beyond the end, or has more than five bytes.
    """
    number = 0
    for shift in _VARINT_SHIFTS:
        within(at + 1, end)
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return number, at
    raise ShortError("a varint of more than 5 bytes")
