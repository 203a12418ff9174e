"""Positions in the bytes of many records, for reading a value of each of them at once.

A cursor holds one position per row, in a buffer that all rows share. Reading a field reads it in every row
and advances every position, so a batch costs a few dozen array operations and no Python object per record.
Every length is checked against the remaining bytes before it is used. Invalid bytes never raise: the row is
rejected, with the reason and position, and values read from it afterwards are undefined.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

MARGIN = 16
"""Zero bytes after the last row, so that a number can be read at any position without a bounds check."""

_VARINT_BYTES = 5
_VARINT_BITS = 7
_MORE = 0x80


@dataclass
class BatchCursor:
    """One position in each of many rows.

    Attributes:
        buffer: The bytes of all rows, followed by `MARGIN` zeros.
        at: `(rows,) int64`, the current position of each row in the buffer, ascending, at most the row's end.
        ends: `(rows,) int64`, the end of each row in the buffer.
        good: `(rows,) bool`, whether the row has been valid so far.
        reasons: The reasons for rejected rows; shared with all cursors derived from this one.
        why: `(rows,) int64`, index of the reason, for rejected rows.
        where: `(rows,) int64`, the position in the buffer, for rejected rows.
    """

    buffer: Bytes
    at: Numbers
    ends: Numbers
    reasons: list[str] = field(default_factory=list)
    good: Flags = field(init=False)
    why: Numbers = field(init=False)
    where: Numbers = field(init=False)

    def __post_init__(self) -> None:
        """Start with all rows valid."""
        self.good = np.ones(self.at.size, np.bool_)
        self.why = np.zeros(self.at.size, np.int64)
        self.where = np.zeros(self.at.size, np.int64)

    @classmethod
    def over(cls, column: pa.Array) -> "BatchCursor":
        """Return a cursor at the start of each byte string; null counts as empty."""
        if not pa.types.is_binary(column.type):
            column = column.cast(pa.binary())
        _, offsets, data = column.buffers()
        places = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        first, last = int(places[0]), int(places[-1])
        buffer = np.zeros(last - first + MARGIN, np.uint8)
        if data is not None:
            buffer[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
        starts, ends = places[:-1] - first, places[1:] - first
        if column.null_count:  # whose slots may have bytes all the same
            ends = np.where(column.is_null().to_numpy(zero_copy_only=False), starts, ends)
        return cls(buffer, starts, ends)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.at.size

    def take(self, rows: Numbers) -> "BatchCursor":
        """Return an independent cursor over some of the rows, all valid, at their current positions."""
        return self.within(self.at[rows], self.ends[rows])

    def within(self, at: Numbers, ends: Numbers) -> "BatchCursor":
        """Return a cursor over other ranges of the same buffer."""
        return BatchCursor(self.buffer, at, ends, self.reasons)

    def refuse(self, bad: Flags, reason: str) -> None:
        """Reject rows; the first reason is kept."""
        bad = bad & self.good
        if bad.any():
            self.why[bad] = self._number_of(reason)
            self.where[bad] = self.at[bad]
            self.good &= ~bad

    def refuse_with(self, inner: "BatchCursor", rows: Numbers) -> None:
        """Refuse the rows of which a part was refused.

        Args:
            inner: The cursor over the parts.
            rows: For each part, its row here.
        """
        if inner.good.all():
            return
        bad = np.flatnonzero(~inner.good)[::-1]  # of several parts the first counts, which is written last
        bad = bad[self.good[rows[bad]]]
        self.why[rows[bad]] = inner.why[bad]
        self.where[rows[bad]] = inner.where[bad]
        self.good[rows[bad]] = False

    def _number_of(self, reason: str) -> int:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason)

    def errors(self, starts: Numbers) -> list[str | None]:
        """Return the reason for each rejected row, with the byte offset in the row; None for valid rows."""
        errors: list[str | None] = [None] * len(self)
        bad = np.flatnonzero(~self.good)
        places = (self.where - starts)[bad]
        for row, why, place in zip(bad.tolist(), self.why[bad].tolist(), places.tolist(), strict=True):
            errors[row] = f"{self.reasons[why]}, at byte {place}"
        return errors

    def number(self, kind: str, what: str) -> Numbers:
        """Read a number of a NumPy type, such as `>i4`."""
        view = self.view(kind)
        numbers = view[self.at].astype(np.int64)
        self.go_on(view.itemsize, what)
        return numbers

    def view(self, kind: str) -> npt.NDArray[Any]:
        """Return the buffer as overlapping numbers: element i starts at byte i."""
        dtype = np.dtype(kind)
        return np.ndarray(self.buffer.size - dtype.itemsize + 1, dtype, self.buffer, strides=(1,))

    def varint(self, what: str) -> Numbers:
        """Read an UNSIGNED_VARINT of at most 5 bytes."""
        byte = self.buffer[self.at].astype(np.int64)
        if not (byte >= _MORE).any():
            self.go_on(1, what)
            return byte
        numbers, sizes = byte & ~_MORE, np.ones(self.at.size, np.int64)
        more = byte >= _MORE
        for turn in range(1, _VARINT_BYTES):
            byte = self.buffer[np.minimum(self.at + turn, self.buffer.size - 1)].astype(np.int64)
            numbers += np.where(more, (byte & ~_MORE) << (_VARINT_BITS * turn), 0)
            sizes += more
            more &= byte >= _MORE
        self.refuse(more, f"{what}: a varint of more than {_VARINT_BYTES} bytes")
        self.go_on(sizes, what)
        return numbers

    def go_on(self, sizes: Numbers | int, what: str) -> None:
        """Skip bytes of each row; rows with too few bytes are rejected, and keep their position."""
        at = self.at + sizes
        beyond = at > self.ends
        if beyond.any():
            self.refuse(beyond, f"{what}: it goes beyond the end")
            at = np.where(beyond, self.at, at)
        self.at = at

    def span(self, sizes: Numbers, what: str) -> tuple[Numbers, Numbers]:
        """Skip bytes of each row, and return their ranges, which are empty for rejected rows."""
        starts = self.at
        self.refuse(sizes < 0, f"{what}: a negative length")
        self.go_on(np.maximum(sizes, 0), what)
        return starts, self.at

    def counts(self, counts: Numbers, least: int, what: str) -> Numbers:
        """Return list lengths, or 0 for rows too short for that many elements of the given minimum size."""
        self.refuse(counts < 0, f"{what}: a negative count")
        self.refuse(counts * least > self.ends - self.at, f"{what}: a count beyond the end")
        return np.where(self.good, counts, 0)
