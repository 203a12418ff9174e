"""Synthetic records of committed offsets, vectorized; record `i` does not depend on its batch."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.pipeline.synthetic.fleet import Fleet, Numbers
from groupwright.pipeline._decoding.schema import RAW

Bytes = npt.NDArray[np.uint8]

LOG_END = 2**60
"""Upper bound of log offsets, which have gaps as in a compacted topic."""

_DIGITS = 7
_RATE = 100
_EPOCH = 7
_HASHES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))


def commit_batch(fleet: Fleet, numbers: Numbers) -> pa.RecordBatch:
    """Return the raw records with these numbers, below `fleet.commits`, as rows of `RAW`.

    Groups and their partitions commit in turn. Keys have version 1, and values version 3, as brokers write
    them.
    """
    turns, slots = np.divmod(numbers, fleet.groups * fleet.topics * fleet.partitions)
    groups, slots = np.divmod(slots, fleet.topics * fleet.partitions)
    topics, partitions = np.divmod(slots, fleet.partitions)
    chances = _chances(numbers, fleet.seed)
    micros = fleet.start_micros + (numbers * (fleet.length_micros / max(fleet.commits, 1))).astype(np.int64)
    offsets = (turns + 1) * _RATE + groups % _RATE
    offsets -= np.where(chances > 1 - fleet.back, _RATE + _RATE // 2, 0)
    names = _text(b"group-", groups)
    key = _pack(
        _integers(np.full(numbers.size, 1), ">i2"),
        _string(names),
        _string(_text(b"topic-", (groups + topics) % (fleet.cluster_topics or fleet.groups))),
        _integers(partitions, ">i4"),
    )
    value = _pack(
        _integers(np.full(numbers.size, 3), ">i2"),
        _integers(np.maximum(offsets, 0), ">i8"),
        _integers(np.full(numbers.size, _EPOCH), ">i4"),
        _integers(np.zeros(numbers.size, np.int64), ">i2"),
        _integers(micros // 1000, ">i8"),
    )
    return raw_batch(
        _binary(key),
        _without(_binary(value), chances < fleet.tombstones),
        log_partitions(names, fleet.log_partitions),
        numbers * (LOG_END // max(fleet.commits, 1)),
        micros,
    )


def raw_batch(
    key: pa.Array, value: pa.Array, partition: Numbers, offset: Numbers, micros: Numbers
) -> pa.RecordBatch:
    """Return rows of `RAW`."""
    times = pa.array(micros, pa.int64()).view(RAW.field("timestamp").type)
    columns = [key, value, pa.array(partition.astype(np.int32)), pa.array(offset), times]
    return pa.RecordBatch.from_arrays(columns, schema=RAW)


def log_partitions(names: Bytes, count: int) -> Numbers:
    """Return the partition of `__consumer_offsets` for each group name, by its Java hash code."""
    hashes = np.zeros(len(names), np.uint32)
    for column in names.T:
        hashes = hashes * np.uint32(31) + column
    signed = hashes.view(np.int32).astype(np.int64)
    return np.where(signed == np.iinfo(np.int32).min, 0, np.abs(signed)) % count


def _chances(numbers: Numbers, seed: int) -> npt.NDArray[np.float64]:
    """Return a pseudo-random number from 0 to 1 for each number (splitmix64)."""
    mixed = (numbers.astype(np.uint64) + np.uint64(seed + 1)) * _HASHES[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _HASHES[1]
    mixed ^= mixed >> np.uint64(31)
    chances: npt.NDArray[np.float64] = (mixed >> np.uint64(11)).astype(np.float64) / 2**53
    return chances


def _text(head: bytes, numbers: Numbers) -> Bytes:
    """Return names made of a prefix and seven digits, one per row."""
    made = np.empty((numbers.size, len(head) + _DIGITS), np.uint8)
    made[:, : len(head)] = np.frombuffer(head, np.uint8)
    for place in range(_DIGITS):
        made[:, -1 - place] = ord("0") + numbers // 10**place % 10
    return made


def _integers(numbers: Numbers, kind: str) -> Bytes:
    return numbers.astype(kind).view(np.uint8).reshape(numbers.size, -1)


def _string(texts: Bytes) -> Bytes:
    sizes = np.full(len(texts), texts.shape[1])
    return _pack(_integers(sizes, ">i2"), texts)


def _pack(*parts: Bytes) -> Bytes:
    return np.hstack(parts)


def _binary(rows: Bytes) -> pa.Array:
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _without(values: pa.Array, gone: npt.NDArray[np.bool_]) -> pa.Array:
    return values.take(pa.array(np.arange(len(values)), mask=gone)) if gone.any() else values
