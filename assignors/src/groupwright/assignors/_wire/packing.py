"""Many members' partitions as bytes, written in arrays: no Python object is made for a partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import Int32Array, Int64Array, Offsets, PartitionArray, UInt64Array
from groupwright.assignors._wire import primitives

_WORD = 8
_CHUNK = 2**14  # runs at a time, so that what is computed of them stays in the processor's cache


def pack_assignments(
    topics: Sequence[str],
    list_starts: Offsets,
    run_topics: Int32Array,
    run_starts: Offsets,
    partitions: PartitionArray,
    *,
    head: bytes = b"",
    tail: bytes = b"",
) -> tuple[memoryview, Offsets]:
    """Write arrays of runs, each a topic and the array of its partitions, on end.

    Args:
        topics: The names.
        list_starts: Where among the runs those of each array start, and, last, end.
        run_topics: For each run, the place of its topic.
        run_starts: Where in `partitions` each run starts, and, last, ends; no run is empty.
        partitions: The partitions of all runs.
        head: What stands before each array.
        tail: What stands behind each.

    Returns:
        The bytes, and where in them each head starts, and, last, the last tail ends.
    """
    names = [primitives.string(topic, "topic") for topic in topics]
    words = -(-max(map(len, names), default=0) // _WORD)
    padded = np.frombuffer(b"".join(name.ljust(words * _WORD, b"\0") for name in names), np.uint64)
    name_words = padded.reshape(len(names), words)
    name_sizes = np.array([len(name) for name in names], np.int64)
    counts, lists = np.diff(run_starts), np.diff(list_starts)
    sizes = name_sizes[run_topics] + 4 + 4 * counts
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    frame = len(head) + 4 + len(tail)
    bounds = ends[list_starts] + frame * np.arange(list_starts.size)
    at = ends[:-1] + np.repeat(frame * np.arange(lists.size) + len(head) + 4, lists)
    packed = np.empty(bounds[-1], np.uint8)
    for first in range(0, counts.size, _CHUNK):
        runs = slice(first, min(first + _CHUNK, counts.size))
        of = run_topics[runs]
        _pack_names(packed, at[runs], name_sizes[of], name_words, of)
        numbers = partitions[run_starts[runs.start] : run_starts[runs.stop]]
        _pack_counted(packed, at[runs] + name_sizes[of], counts[runs], numbers)
    _pack_bytes(packed, bounds[:-1], head)
    unaligned_view(packed, ">i4")[bounds[:-1] + len(head)] = lists
    _pack_bytes(packed, bounds[1:] - len(tail), tail)
    return packed.data, bounds


def _pack_bytes(packed: npt.NDArray[np.uint8], at: Int64Array, data: bytes) -> None:
    for offset, byte in enumerate(data):
        packed[at + offset] = byte


def _pack_names(
    packed: npt.NDArray[np.uint8],
    at: Int64Array,
    sizes: Int64Array,
    words: UInt64Array,
    topics: Int32Array,
) -> None:
    """Write names in words of 8 bytes.

    The last word of a name may reach beyond it, but not beyond the count and the first partition behind, which
    are written later.
    """
    places = unaligned_view(packed, "u8")
    for word in range(words.shape[1]):
        reaching = np.flatnonzero(sizes > word * _WORD)
        places[at[reaching] + word * _WORD] = words[topics[reaching], word]


def _pack_counted(
    packed: npt.NDArray[np.uint8],
    at: Int64Array,
    counts: Int64Array,
    partitions: PartitionArray,
) -> None:
    """Write counts, each followed by so many partitions."""
    places = unaligned_view(packed, ">i4")
    places[at] = counts
    before = np.cumsum(counts) - counts
    places[np.repeat(at + 4 - 4 * before, counts) + 4 * np.arange(partitions.size)] = partitions


def unaligned_view(buffer: bytes | npt.NDArray[np.uint8], kind: str) -> npt.NDArray[Any]:
    """Return a view of the buffer in which element i is the number that starts at byte i."""
    dtype = np.dtype(kind)
    return np.ndarray(max(0, len(buffer) - dtype.itemsize + 1), dtype, buffer, strides=(1,))
