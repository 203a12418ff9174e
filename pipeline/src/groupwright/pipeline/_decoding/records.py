"""Decoding of batches of `__consumer_offsets`: one row in, one row out."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Flags, Numbers
from groupwright.pipeline._decoding.group_metadata import with_consumer_protocol
from groupwright.pipeline._decoding.messages import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    RECORD_KINDS,
    STRING,
    RecordKind,
)
from groupwright.pipeline._decoding.schema import COLUMNS, COMMITS, DECODED
from groupwright.pipeline._decoding.structs import Struct
from groupwright.pipeline._decoding.types import TIMESTAMP

MALFORMED, UNKNOWN = "malformed", "unknown"

_NAMES = (*dict.fromkeys(kind.name for kind in RECORD_KINDS.values()), MALFORMED, UNKNOWN)
_KINDS = {_NAMES.index(kind.name): kind for kind in RECORD_KINDS.values()}
_NO_KIND = -1


@dataclass
class _Records:
    """A batch that is being decoded.

    Attributes:
        keys: Over the keys.
        values: Over the values; of a tombstone nothing is read.
        tombstones: Which values are null.
        unknown: Which records are refused because they are of a kind or version that is not known here.
        kinds: For each record its kind's place among the names, as far as its key's version and group could
            be read.
        versions: For each record that is no tombstone its value's version, if that could be read.
    """

    keys: BatchCursor
    values: BatchCursor
    tombstones: Flags
    unknown: Flags
    kinds: Numbers
    versions: Numbers

    @property
    def good(self) -> Flags:
        return self.keys.good & self.values.good

    @property
    def is_valued(self) -> Flags:
        """Whether each record has a value to decode."""
        return self.good & ~self.tombstones & ~self.unknown


def decode_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode raw records; `schema` has the columns of input and output.

    A record that cannot be decoded, or that nobody knows, has a row with the reason and its bytes. Nothing
    that bytes say raises, and the damage of one record changes no other row.

    Args:
        batch: Rows of `RAW`; other columns are not looked at.

    Returns:
        Rows of `DECODED`, in the same order.
    """
    records = _begin(batch)
    starts = records.keys.at, records.values.at
    named = _where(batch) | _read_heads(records)
    structs = _read_structs(records)
    good = records.good
    unusable = np.where(records.unknown, _NAMES.index(UNKNOWN), _NAMES.index(MALFORMED))
    named["record_kind"] = pa.array(_NAMES).take(pa.array(np.where(good, records.kinds, unusable)))
    named["tombstone"] = pa.array(records.tombstones)
    named["error"] = _errors(records, *starts)
    named["raw_key"] = arrays.only(batch.column("key"), ~good)
    named["raw_value"] = arrays.only(batch.column("value"), ~good)
    for name, shape in COLUMNS.items():
        parts = [structs[name]] if name in structs else []
        named[name] = arrays.scatter(parts, batch.num_rows, shape, good)
    return pa.RecordBatch.from_arrays([named[field.name] for field in DECODED], schema=DECODED)


def decode_commits_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode only committed offsets and their tombstones; malformed records are dropped too.

    Args:
        batch: As in `decode_batch`.

    Returns:
        Rows of `COMMITS`, in the same order.
    """
    records = _begin(batch)
    named = _where(batch) | _read_heads(records)
    is_commit = records.kinds == _NAMES.index(OFFSET_COMMIT)
    rows = np.flatnonzero(is_commit)
    structs = _read_structs(records, only=OFFSET_COMMIT)
    named["tombstone"] = pa.array(records.tombstones)
    if rows.size < len(is_commit):
        named = {name: column.take(pa.array(rows)) for name, column in named.items()}
    if structs:
        _, commits = structs[OFFSET_COMMIT]
        named |= dict(zip(COLUMNS[OFFSET_COMMIT].names, commits.flatten(), strict=True))
    else:
        named |= {field.name: pa.nulls(0, field.type) for field in COLUMNS[OFFSET_COMMIT]}
    made = pa.RecordBatch.from_arrays([named[field.name] for field in COMMITS], schema=COMMITS)
    good = records.good[rows]
    return made if good.all() else made.filter(pa.array(good))


def _begin(batch: pa.RecordBatch) -> _Records:
    key, value = batch.column("key"), batch.column("value")
    records = _Records(
        keys=BatchCursor.over(key),
        values=BatchCursor.over(value),
        tombstones=_nulls(value),
        unknown=np.zeros(batch.num_rows, np.bool_),
        kinds=np.full(batch.num_rows, _NO_KIND),
        versions=np.zeros(batch.num_rows, np.int64),
    )
    records.keys.refuse(_nulls(key), "key: it is null")
    return records


def _where(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {
        "log_partition": batch.column("partition"),
        "log_offset": batch.column("offset"),
        "log_time": batch.column("timestamp").cast(TIMESTAMP),
    }


def _read_heads(records: _Records) -> dict[str, pa.Array]:
    """Read the common start of all records: the key's version, the group, and the value's version."""
    keys, values = records.keys, records.values
    key_versions = keys.number(">i2", "key.version")
    has_version = keys.good.copy()
    kinds = _kinds_of(key_versions)
    _refuse_unknown(records, keys, kinds == _NO_KIND, "key.version: no kind of record that is known")
    groups = STRING.read(keys, "key.group_id")
    records.kinds = np.where(keys.good, kinds, _NO_KIND)
    rows = np.flatnonzero(keys.good & ~records.tombstones)
    valued = values.take(rows)
    records.versions[rows] = valued.number(">i2", "value.version")
    _put_back(values, valued, rows)
    has_value_version = np.zeros(len(keys), np.bool_)
    has_value_version[rows] = valued.good
    return {
        "key_version": pa.array(key_versions.astype(np.int32), mask=~has_version),
        "value_version": pa.array(records.versions.astype(np.int32), mask=~has_value_version),
        "group_id": arrays.only(groups, keys.good.copy()),
    }


def _kinds_of(key_versions: Numbers) -> Numbers:
    newest = max(RECORD_KINDS)
    by_version = np.full(newest + 2, _NO_KIND)
    for version, kind in RECORD_KINDS.items():
        by_version[version] = _NAMES.index(kind.name)
    kinds: npt.NDArray[np.int64] = by_version[
        np.where((key_versions < 0) | (key_versions > newest), newest + 1, key_versions)
    ]
    return kinds


def _read_structs(records: _Records, only: str | None = None) -> dict[str, tuple[Numbers, pa.Array]]:
    """Read the values by kind: the rows and structs of each. Structs of rejected rows are undefined.

    Args:
        records: The records.
        only: The one kind to read, if it is not all.
    """
    structs = {}
    present = np.bincount(records.kinds - _NO_KIND)[1:]
    for number in np.flatnonzero(present).tolist():
        kind = _KINDS[number]
        if kind.values is not None and only in {None, kind.name}:
            rows = np.flatnonzero(records.kinds == number)
            structs[kind.name] = (rows, _read_struct(records, kind, kind.values, rows))
    return structs


def _read_struct(
    records: _Records, kind: RecordKind, values: Mapping[int, Struct], rows: Numbers
) -> pa.Array:
    keys = records.keys.take(rows)
    columns = Struct(kind.key).columns(keys, "key")
    _put_back(records.keys, keys, rows)
    is_known = (records.versions[rows] >= 0) & (records.versions[rows] <= max(values))
    is_strange = np.zeros(len(records.keys), np.bool_)
    is_strange[rows] = records.is_valued[rows] & ~is_known
    reason = f"value.version: not one of {kind.name}'s, 0 to {max(values)}, that are known"
    _refuse_unknown(records, records.values, is_strange, reason)
    valued = records.is_valued[rows]
    parts = []
    for version, struct in values.items():
        chosen = np.flatnonzero(valued & (records.versions[rows] == version))
        if chosen.size:
            cursor = records.values.take(rows[chosen])
            of_value = struct.columns(cursor, "value")
            if kind.name == GROUP_METADATA:
                of_value["members"] = with_consumer_protocol(of_value)
            _put_back(records.values, cursor, rows[chosen])
            parts.append((chosen, of_value))
    shape = COLUMNS[kind.name]
    for child in shape:
        if child.name not in columns:
            of_field = [(chosen, part[child.name]) for chosen, part in parts if child.name in part]
            columns[child.name] = arrays.scatter(of_field, rows.size, child.type)
    return arrays.structs(columns, shape, rows.size)


def _put_back(cursor: BatchCursor, part: BatchCursor, rows: Numbers) -> None:
    """Advance the cursor to the positions of one over some of its rows."""
    cursor.refuse_with(part, rows)
    cursor.at = cursor.at.copy()
    cursor.at[rows] = part.at


def _refuse_unknown(records: _Records, cursor: BatchCursor, strange: Flags, reason: str) -> None:
    records.unknown |= strange & cursor.good
    cursor.refuse(strange, reason)


def _errors(records: _Records, key_starts: Numbers, value_starts: Numbers) -> pa.Array:
    if records.good.all():
        return pa.nulls(len(records.keys), pa.string())
    of_keys, of_values = records.keys.errors(key_starts), records.values.errors(value_starts)
    return pa.array([key or value for key, value in zip(of_keys, of_values, strict=True)], pa.string())


def _nulls(column: pa.Array) -> Flags:
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls
