"""Partitions as numpy arrays: their types, how they are checked, and what is asked of slices of them."""

from collections.abc import Iterable
from reprlib import repr as brief

import numpy as np
import numpy.typing as npt

from groupwright.assignors.errors import InvalidInputError

PartitionArray = npt.NDArray[np.int32]
"""Numbers of partitions, of one topic or of several on end."""

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
IntegerArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

Offsets = npt.NDArray[np.int64]
"""Where the slices of an array start, and, last, where the last one ends."""

TopicNumbers = npt.NDArray[np.int32]
"""Topics, as places in a tuple of names."""

_INT32 = np.iinfo(np.int32)


def partition_array(partitions: Iterable[int]) -> PartitionArray:
    """Return the numbers as a new array, in the order given.

    Raises:
        InvalidInputError: One of them is not an integer of 32 bits.
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
    """Return 0, 1, 2 and so on for each slice, on end."""
    return (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)


def ascend_in_slices(starts: Offsets, partitions: PartitionArray) -> bool:
    """Tell whether no slice is empty, and each is strictly ascending."""
    if (starts[1:] == starts[:-1]).any():
        return False
    ascends = partitions[1:] > partitions[:-1]
    ascends[starts[1:-1] - 1] = True
    return bool(ascends.all())


def ascending(topic: str, partitions: Iterable[int]) -> PartitionArray:
    """Return the numbers as a new array, ascending and each once.

    Raises:
        InvalidInputError: One of them is not an integer of 32 bits; the message names the topic.
    """
    try:
        return np.unique(partition_array(partitions))
    except InvalidInputError as error:
        raise InvalidInputError(f"topic {topic!r}: {error}") from error
