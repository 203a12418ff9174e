"""Baseline: a plain Python loop with `struct` that decodes committed offsets of value version 3."""

import struct
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_HEAD = struct.Struct(">hqi").unpack_from
_INT64 = struct.Struct(">q").unpack_from
_HEAD_BYTES = 14


class Commit(NamedTuple):
    """A committed offset, or a tombstone (`offset` is None)."""

    group: str
    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    commit_time: int | None


def decode(records: Iterable[tuple[bytes, bytes | None]]) -> list[Commit]:
    """Decode records, all of them offsets of value version 3."""
    decoded = []
    for key, value in records:
        (size,) = _INT16(key, 2)
        at = 4 + size
        group = key[4:at].decode()
        (size,) = _INT16(key, at)
        end = at + 2 + size
        topic = key[at + 2 : end].decode()
        (partition,) = _INT32(key, end)
        if value is None:
            decoded.append(Commit(group, topic, partition, None, None, None, None))
            continue
        _, offset, epoch = _HEAD(value)
        (size,) = _INT16(value, _HEAD_BYTES)
        end = _HEAD_BYTES + 2 + size
        metadata = value[_HEAD_BYTES + 2 : end].decode()
        decoded.append(Commit(group, topic, partition, offset, epoch, metadata, _INT64(value, end)[0]))
    return decoded


def decode_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode from columns to columns, as Spark requires, record by record."""
    records = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
    columns = zip(*decode(records), strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(Commit._fields))
