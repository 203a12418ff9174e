"""Cursor over the bytes of many records: reads one field of all records at once.

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
"""Zero bytes after the last row: numbers can be read at any position before the bounds are checked."""

_VARINT_BYTES = 5
_VARINT_BITS = 7
_CONTINUATION = 0x80
"""Bit of a varint's byte that another byte follows."""


@dataclass
class BatchCursor:
    """One position in each of many rows.

    Attributes:
        buffer: The bytes of all rows, followed by `MARGIN` zeros.
        at: `(rows,) int64`, the current position of each row in the buffer, ascending, at most the row's end.
        ends: `(rows,) int64`, the end of each row in the buffer.
        valid: `(rows,) bool`, whether all bytes read so far were valid.
        reasons: The reasons for rejected rows; shared with all cursors derived from this one.
        reason_of: `(rows,) int64`, index into `reasons`; undefined for valid rows.
        error_at: `(rows,) int64`, position of the error in the buffer; undefined for valid rows.
    """

    buffer: Bytes
    at: Numbers
    ends: Numbers
    reasons: list[str] = field(default_factory=list)
    valid: Flags = field(init=False)
    reason_of: Numbers = field(init=False)
    error_at: Numbers = field(init=False)

    def __post_init__(self) -> None:
        """Start with all rows valid."""
        self.valid = np.ones(self.at.size, np.bool_)
        self.reason_of = np.zeros(self.at.size, np.int64)
        self.error_at = np.zeros(self.at.size, np.int64)

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
        if column.null_count:  # Arrow allows bytes in the slots of nulls
            ends = np.where(column.is_null().to_numpy(zero_copy_only=False), starts, ends)
        return cls(buffer, starts, ends)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.at.size

    def take(self, rows: Numbers) -> "BatchCursor":
        """Return an independent cursor over some of the rows, all valid, at their current positions."""
        return self.sub_cursor(self.at[rows], self.ends[rows])

    def sub_cursor(self, at: Numbers, ends: Numbers) -> "BatchCursor":
        """Return a cursor over other ranges of the same buffer."""
        return BatchCursor(self.buffer, at, ends, self.reasons)

    def reject(self, bad: Flags, reason: str) -> None:
        """Reject rows; the first reason is kept."""
        bad = bad & self.valid
        if bad.any():
            self.reason_of[bad] = self._number_of(reason)
            self.error_at[bad] = self.at[bad]
            self.valid &= ~bad

    def merge_rejections(self, inner: "BatchCursor", rows: Numbers) -> None:
        """Reject the rows of which `inner` has rejected a part, with the reason for the first one.

        Args:
            inner: A cursor over parts of this cursor's rows.
            rows: `(parts,) int64`, the row of each part.
        """
        if inner.valid.all():
            return
        bad = np.flatnonzero(~inner.valid)[::-1]  # the first part is written last, so its reason is kept
        bad = bad[self.valid[rows[bad]]]
        self.reason_of[rows[bad]] = inner.reason_of[bad]
        self.error_at[rows[bad]] = inner.error_at[bad]
        self.valid[rows[bad]] = False

    def _number_of(self, reason: str) -> int:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason)

    def errors(self, starts: Numbers) -> list[str | None]:
        """Return the reason for each rejected row, with the byte offset in the row; None for valid rows."""
        errors: list[str | None] = [None] * len(self)
        bad = np.flatnonzero(~self.valid)
        offsets = (self.error_at - starts)[bad]
        reasons = [self.reasons[index] for index in self.reason_of[bad].tolist()]
        for row, reason, offset in zip(bad.tolist(), reasons, offsets.tolist(), strict=True):
            errors[row] = f"{reason}, at byte {offset}"
        return errors

    def integer(self, dtype: str, path: str) -> Numbers:
        """Read an integer of each row.

        Args:
            dtype: NumPy's name of the encoding, such as `>i4` for INT32.
            path: The field, such as `key.group_id`, for the reason if a row is rejected.
        """
        view = self.view(dtype)
        numbers = view[self.at].astype(np.int64)
        self.skip(view.itemsize, path)
        return numbers

    def view(self, dtype: str) -> npt.NDArray[Any]:
        """Return the buffer as overlapping numbers: element i starts at byte i."""
        type_ = np.dtype(dtype)
        return np.ndarray(self.buffer.size - type_.itemsize + 1, type_, self.buffer, strides=(1,))

    def varint(self, path: str) -> Numbers:
        """Read an UNSIGNED_VARINT of at most 5 bytes."""
        byte = self.buffer[self.at].astype(np.int64)
        if not (byte >= _CONTINUATION).any():
            self.skip(1, path)
            return byte
        numbers, sizes = byte & ~_CONTINUATION, np.ones(self.at.size, np.int64)
        more = byte >= _CONTINUATION
        for index in range(1, _VARINT_BYTES):
            byte = self.buffer[np.minimum(self.at + index, self.buffer.size - 1)].astype(np.int64)
            numbers += np.where(more, (byte & ~_CONTINUATION) << (_VARINT_BITS * index), 0)
            sizes += more
            more &= byte >= _CONTINUATION
        self.reject(more, f"{path}: a varint of more than {_VARINT_BYTES} bytes")
        self.skip(sizes, path)
        return numbers

    def skip(self, sizes: Numbers | int, path: str) -> None:
        """Skip `sizes` bytes of each row; rows with too few bytes are rejected, and keep their position."""
        at = self.at + sizes
        beyond = at > self.ends
        if beyond.any():
            self.reject(beyond, f"{path}: it goes beyond the end")
            at = np.where(beyond, self.at, at)
        self.at = at

    def span(self, sizes: Numbers, path: str) -> tuple[Numbers, Numbers]:
        """Skip `sizes` bytes of each row; return their starts and ends, which are equal for rejected rows."""
        starts = self.at
        self.reject(sizes < 0, f"{path}: a negative length")
        self.skip(np.maximum(sizes, 0), path)
        return starts, self.at

    def checked_counts(self, counts: Numbers, min_size: int, path: str) -> Numbers:
        """Return the counts, 0 for rejected rows: those too short for elements of `min_size` bytes."""
        self.reject(counts < 0, f"{path}: a negative count")
        self.reject(counts * min_size > self.ends - self.at, f"{path}: a count beyond the end")
        return np.where(self.valid, counts, 0)
