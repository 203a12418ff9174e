"""Array types of partitions and indexes, and the checks of arrays from applications."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import repr as brief

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

_INT32 = np.iinfo(np.int32)


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


def ascending(topic: str, partitions: Iterable[int]) -> PartitionArray:
    """Return the partitions as a new array, ascending and without duplicates.

    Raises:
        InvalidInputError: A partition is not a 32-bit integer; the message names the topic.
    """
    try:
        return np.unique(partition_array(partitions))
    except InvalidInputError as error:
        raise InvalidInputError(f"topic {topic!r}: {error}") from error
