"""Array types of partitions and indexes, their checks, operations on slices, and a look-up of pairs."""

from collections.abc import Iterable
from reprlib import repr as brief
from typing import Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors.errors import InvalidInputError

PartitionArray = npt.NDArray[np.int32]
"""`(partitions,) int32`: partition numbers, of one topic or of several concatenated."""

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
IntegerArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

Offsets = npt.NDArray[np.int64]
"""`(slices + 1,) int64`: the starts of the slices of an array, and the end of the last slice."""

TopicNumbers = npt.NDArray[np.int32]
"""`(topics,) int32`: topics as indexes into a tuple of names."""

NOT_FOUND = -1
"""Index of a pair that is not in a `PairTable`."""

_INT32 = np.iinfo(np.int32)
_MAX_TABLE_SIZE = 2**22  # of a look-up table at a time


def partition_array(partitions: Iterable[int]) -> PartitionArray:
    """Return the partitions as a new array, in the same order.

    Raises:
        InvalidInputError: A partition is not a 32-bit integer.
    """
    try:
        array = np.asarray(partitions if isinstance(partitions, np.ndarray) else list(partitions))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"partitions must be a sequence of integers, not {brief(partitions)}"
        ) from error
    if array.size == 0:
        return np.empty(0, np.int32)
    if (
        array.ndim != 1
        or array.dtype.kind not in "iu"
        or array.min() < _INT32.min
        or array.max() > _INT32.max
    ):
        raise InvalidInputError(f"partitions must be a sequence of 32-bit integers, not {brief(partitions)}")
    return array.astype(np.int32)


def numbers_in_slices(starts: Offsets) -> PartitionArray:
    """Return `(elements,) int32`: 0, 1, 2 and so on within each slice."""
    return (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)


def ascend_in_slices(starts: Offsets, partitions: PartitionArray) -> bool:
    """Return whether every slice is strictly ascending and not empty."""
    if (starts[1:] == starts[:-1]).any():
        return False
    ascends = partitions[1:] > partitions[:-1]
    ascends[starts[1:-1] - 1] = True
    return bool(ascends.all())


def ascending(topic: str, partitions: Iterable[int]) -> PartitionArray:
    """Return the partitions as a new array, ascending and without duplicates.

    Raises:
        InvalidInputError: A partition is not a 32-bit integer; the message names the topic.
    """
    try:
        return np.unique(partition_array(partitions))
    except InvalidInputError as error:
        raise InvalidInputError(f"topic {topic!r}: {error}") from error


def unaligned_view(buffer: bytes | npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """Return a view of the buffer whose element `i` is the number that starts at byte `i`, aligned or not.

    Args:
        buffer: The bytes.
        dtype: The type of the numbers, such as `>i4`.
    """
    parsed = np.dtype(dtype)
    return np.ndarray(max(0, len(buffer) - parsed.itemsize + 1), parsed, buffer, strides=(1,))


class PairTable:
    """Finds pairs of numbers in a table of pairs, many at a time."""

    def __init__(self, first: IntegerArray, second: IntegerArray, bound: int) -> None:
        """Create the table of these pairs.

        Args:
            first: `(pairs,)` integers: the first numbers, ascending.
            second: `(pairs,)` integers: the second numbers.
            bound: An upper bound of the second numbers, exclusive.
        """
        self._first = first
        self._second = second
        self._bound = bound

    def find(self, first: IntegerArray, second: IntegerArray) -> Int32Array:
        """Return `(pairs,) int32`: the index of each of these pairs in the table, or `NOT_FOUND`.

        The look-up uses a dense array of all possible pairs, built for part of the first numbers at a time so
        that its size is bounded.
        """
        found = np.full(first.size, NOT_FOUND, np.int32)
        firsts = int(self._first[-1]) + 1 if self._first.size else 0
        at_once = max(1, _MAX_TABLE_SIZE // self._bound)
        for start in range(0, firsts, at_once):
            end = min(start + at_once, firsts)
            is_all = end - start == firsts and (not first.size or int(first.max()) < end)
            chosen = slice(None) if is_all else slice(*np.searchsorted(self._first, [start, end]))
            indexes = np.arange(self._first.size, dtype=np.int32)[chosen]
            table = np.full((end - start) * self._bound, NOT_FOUND, np.int32)
            table[(self._first[chosen] - start).astype(np.int64) * self._bound + self._second[chosen]] = (
                indexes
            )
            asked = slice(None) if is_all else np.flatnonzero((first >= start) & (first < end))
            found[asked] = table[(first[asked] - start).astype(np.int64) * self._bound + second[asked]]
        return found
