"""Decoding of batches of `__consumer_offsets`: one row in, one row out."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Flags, Numbers
from groupwright.pipeline._decoding.group_metadata import member_errors, with_consumer_protocol
from groupwright.pipeline._decoding.messages import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    OTHER_KINDS,
    RECORD_KINDS,
    STRING,
    RecordKind,
)
from groupwright.pipeline._decoding.schema import COLUMNS, COMMITS, COMPACT, DECODED, OTHERS
from groupwright.pipeline._decoding.structs import Struct
from groupwright.pipeline._decoding.types import TIMESTAMP

MALFORMED, UNKNOWN = "malformed", "unknown"

_NAMES = (*dict.fromkeys(kind.name for kind in RECORD_KINDS.values()), MALFORMED, UNKNOWN)
_KINDS = {_NAMES.index(kind.name): kind for kind in RECORD_KINDS.values()}
_NO_KIND = -1

_Structs = dict[str, list[tuple[Numbers, pa.Array]]]
"""By column of `COLUMNS`: the rows and structs of each kind of record."""


@dataclass
class _Records:
    """A batch during decoding, one row per record.

    Attributes:
        keys: Cursor over the keys.
        values: Cursor over the values; nothing is read from tombstones.
        tombstones: `(rows,) bool`, whether the value is null.
        unknown: `(rows,) bool`, whether the record was rejected for an unknown kind or version.
        kinds: `(rows,) int64`, index of the kind in `_NAMES`; `_NO_KIND` if the key's version or group id is
            invalid.
        versions: `(rows,) int64`, the value's version; 0 if there is no valid one.
        member_errors: By row, the first error in a subscription or assignment of a classic group's member.
    """

    keys: BatchCursor
    values: BatchCursor
    tombstones: Flags
    unknown: Flags
    kinds: Numbers
    versions: Numbers
    member_errors: dict[int, str] = field(default_factory=dict)

    @property
    def valid(self) -> Flags:
        return self.keys.valid & self.values.valid

    @property
    def has_value(self) -> Flags:
        """True if each record has a value to decode."""
        return self.valid & ~self.tombstones & ~self.unknown


def decode_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode raw records; `schema` has the columns of input and output.

    A record that is malformed or of an unknown kind has a row with the reason and its bytes. So has a
    generation in which only the subscription or assignment of a member is malformed, beside its columns.
    Invalid bytes never raise, and never affect other rows.

    Args:
        batch: Rows of `RAW`; other columns are ignored.

    Returns:
        Rows of `DECODED`, in the same order.
    """
    records, columns, structs = _decode(batch)
    valid = records.valid
    for name, arrow_type in COLUMNS.items():
        columns[name] = arrays.scatter(structs.get(name, []), batch.num_rows, arrow_type, valid)
    return pa.RecordBatch.from_arrays([columns[field.name] for field in DECODED], schema=DECODED)


def decode_compact_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode raw records as `decode_batch` does, to the columns that Python sends to Spark.

    Args:
        batch: As in `decode_batch`.

    Returns:
        Rows of `COMPACT`, in the same order.
    """
    records, columns, structs = _decode(batch)
    valid = records.valid
    commits = structs.pop(OFFSET_COMMIT, [])
    columns[OFFSET_COMMIT] = arrays.scatter(commits, batch.num_rows, COLUMNS[OFFSET_COMMIT], valid)
    is_other = valid & (records.kinds != _NAMES.index(OFFSET_COMMIT))
    count = int(np.count_nonzero(is_other))
    positions = np.cumsum(is_other) - 1
    others = {}
    for name, parts in structs.items():
        kept = [(rows, values, valid[rows]) for rows, values in parts]
        moved = [(positions[rows[keep]], values.filter(pa.array(keep))) for rows, values, keep in kept]
        others[name] = arrays.scatter(moved, count, COLUMNS[name])
    columns[OTHERS] = arrays.lists(
        is_other, arrays.structs(others, COMPACT.field(OTHERS).type.value_type, count)
    )
    return pa.RecordBatch.from_arrays([columns[field.name] for field in COMPACT], schema=COMPACT)


def decode_commits_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode only committed offsets and their tombstones; malformed records are dropped too.

    Args:
        batch: As in `decode_batch`.

    Returns:
        Rows of `COMMITS`, in the same order.
    """
    records = _start(batch)
    columns = _log_positions(batch) | _read_headers(records)
    is_commit = records.kinds == _NAMES.index(OFFSET_COMMIT)
    rows = np.flatnonzero(is_commit)
    structs = _read_structs(records, only=OFFSET_COMMIT)
    columns["tombstone"] = pa.array(records.tombstones)
    if rows.size < len(is_commit):
        columns = {name: column.take(pa.array(rows)) for name, column in columns.items()}
    if structs:
        ((_, commits),) = structs[OFFSET_COMMIT]
        columns |= dict(zip(COLUMNS[OFFSET_COMMIT].names, commits.flatten(), strict=True))
    else:
        columns |= {field.name: pa.nulls(0, field.type) for field in COLUMNS[OFFSET_COMMIT]}
    decoded = pa.RecordBatch.from_arrays([columns[field.name] for field in COMMITS], schema=COMMITS)
    valid = records.valid[rows]
    return decoded if valid.all() else decoded.filter(pa.array(valid))


def _decode(batch: pa.RecordBatch) -> tuple[_Records, dict[str, pa.Array], _Structs]:
    """Return the decoded records, the columns that all kinds have, and the structs of `_read_structs`."""
    records = _start(batch)
    starts = records.keys.at, records.values.at
    columns = _log_positions(batch) | _read_headers(records)
    structs = _read_structs(records)
    unusable = np.where(records.unknown, _NAMES.index(UNKNOWN), _NAMES.index(MALFORMED))
    columns["record_kind"] = pa.array(_NAMES).take(pa.array(np.where(records.valid, records.kinds, unusable)))
    columns["tombstone"] = pa.array(records.tombstones)
    columns["error"] = _errors(records, *starts)
    has_error = columns["error"].is_valid().to_numpy(zero_copy_only=False)
    columns["raw_key"] = arrays.null_unless(batch.column("key"), has_error)
    columns["raw_value"] = arrays.null_unless(batch.column("value"), has_error)
    return records, columns, structs


def _start(batch: pa.RecordBatch) -> _Records:
    key, value = batch.column("key"), batch.column("value")
    records = _Records(
        keys=BatchCursor.over(key),
        values=BatchCursor.over(value),
        tombstones=_nulls(value),
        unknown=np.zeros(batch.num_rows, np.bool_),
        kinds=np.full(batch.num_rows, _NO_KIND),
        versions=np.zeros(batch.num_rows, np.int64),
    )
    records.keys.reject(_nulls(key), "key: it is null")
    return records


def _log_positions(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the columns with each record's partition, offset and time."""
    return {
        "log_partition": batch.column("partition"),
        "log_offset": batch.column("offset"),
        "log_time": batch.column("timestamp").cast(TIMESTAMP),
    }


def _read_headers(records: _Records) -> dict[str, pa.Array]:
    """Read the beginning of all records: version and group id of the key, and version of the value."""
    keys, values = records.keys, records.values
    key_versions = keys.integer(">i2", "key.version")
    has_version = keys.valid.copy()
    kinds = _kinds_of(key_versions)
    for version, name in OTHER_KINDS.items():
        reason = f"key.version: records of the kind {name} are not decoded"
        _reject_unknown(records, keys, key_versions == version, reason)
    _reject_unknown(records, keys, kinds == _NO_KIND, "key.version: unknown kind of record")
    groups = STRING.read(keys, "key.group_id")
    records.kinds = np.where(keys.valid, kinds, _NO_KIND)
    rows = np.flatnonzero(keys.valid & ~records.tombstones)
    with_value = values.take(rows)
    records.versions[rows] = with_value.integer(">i2", "value.version")
    _advance(values, with_value, rows)
    has_value_version = np.zeros(len(keys), np.bool_)
    has_value_version[rows] = with_value.valid
    return {
        "key_version": pa.array(key_versions.astype(np.int32), mask=~has_version),
        "value_version": pa.array(records.versions.astype(np.int32), mask=~has_value_version),
        "group_id": arrays.null_unless(groups, keys.valid.copy()),
    }


def _kinds_of(key_versions: Numbers) -> Numbers:
    newest = max(RECORD_KINDS)
    by_version = np.full(newest + 2, _NO_KIND)  # the last element is for all versions out of range
    for version, kind in RECORD_KINDS.items():
        by_version[version] = _NAMES.index(kind.name)
    kinds: npt.NDArray[np.int64] = by_version[
        np.where((key_versions < 0) | (key_versions > newest), newest + 1, key_versions)
    ]
    return kinds


def _read_structs(records: _Records, only: str | None = None) -> _Structs:
    """Read the values by column: the rows and structs of each kind. Structs of rejected rows are undefined.

    Args:
        records: The records.
        only: The only kind to read; None for all.
    """
    structs: _Structs = {}
    present = np.bincount(records.kinds - _NO_KIND)[1:]
    for number in np.flatnonzero(present).tolist():
        kind = _KINDS[number]
        if only in {None, kind.name}:
            rows = np.flatnonzero(records.kinds == number)
            structs.setdefault(kind.column, []).append((rows, _read_struct(records, kind, rows)))
    return structs


def _read_struct(records: _Records, kind: RecordKind, rows: Numbers) -> pa.Array:
    keys = records.keys.take(rows)
    columns = Struct(kind.key).columns(keys, "key")
    _advance(records.keys, keys, rows)
    is_known = (records.versions[rows] >= 0) & (records.versions[rows] <= kind.newest)
    has_unknown_version = np.zeros(len(records.keys), np.bool_)
    has_unknown_version[rows] = records.has_value[rows] & ~is_known
    reason = f"value.version: unknown; the known versions of {kind.name} are 0 to {kind.newest}"
    _reject_unknown(records, records.values, has_unknown_version, reason)
    with_value = records.has_value[rows]
    parts = []
    for version, struct in kind.values.items():
        chosen = np.flatnonzero(with_value & (records.versions[rows] == version))
        if chosen.size:
            cursor = records.values.take(rows[chosen])
            of_value = struct.columns(cursor, "value")
            if kind.name == GROUP_METADATA:
                of_value["members"] = with_consumer_protocol(of_value)
                errors = member_errors(of_value["members"])
                records.member_errors |= {int(rows[chosen[row]]): error for row, error in errors.items()}
            _advance(records.values, cursor, rows[chosen])
            parts.append((chosen, of_value))
    arrow_type = COLUMNS[kind.column]
    for child in arrow_type:
        if child.name not in columns:
            of_field = [(chosen, part[child.name]) for chosen, part in parts if child.name in part]
            columns[child.name] = arrays.scatter(of_field, rows.size, child.type)
    return arrays.structs(columns, arrow_type, rows.size)


def _advance(cursor: BatchCursor, part: BatchCursor, rows: Numbers) -> None:
    """Advance some rows of the cursor to the positions of `part`, a cursor over these rows."""
    cursor.merge_rejections(part, rows)
    cursor.at = cursor.at.copy()
    cursor.at[rows] = part.at


def _reject_unknown(records: _Records, cursor: BatchCursor, is_unknown: Flags, reason: str) -> None:
    records.unknown |= is_unknown & cursor.valid
    cursor.reject(is_unknown, reason)


def _errors(records: _Records, key_starts: Numbers, value_starts: Numbers) -> pa.Array:
    of_members = records.member_errors
    if records.valid.all() and not of_members:
        return pa.nulls(len(records.keys), pa.string())
    of_keys, of_values = records.keys.errors(key_starts), records.values.errors(value_starts)
    errors = [
        key or value or of_members.get(row)
        for row, (key, value) in enumerate(zip(of_keys, of_values, strict=True))
    ]
    return pa.array(errors, pa.string())


def _nulls(column: pa.Array) -> Flags:
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls
