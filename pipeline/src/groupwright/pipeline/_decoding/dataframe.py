"""The decoder on Spark."""

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.pandas.types import from_arrow_schema

from groupwright.pipeline._decoding.records import decode_commits_batch, decode_compact_batch
from groupwright.pipeline._decoding.schema import COMMITS, COMPACT, DECODED, OTHERS, RAW


def decode(records: DataFrame) -> DataFrame:
    """Decode records of `__consumer_offsets`: one row per record, in any order.

    Works on batch and streaming DataFrames. A record that cannot be decoded has a row with `error`, `raw_key`
    and `raw_value`. This package's README describes the columns.

    Args:
        records: Columns `key`, `value` (null for a tombstone), `partition`, `offset` and `timestamp` of
            Spark's Kafka source; other columns are ignored.
    """
    compact = _decoded(records, decode_compact_batch, COMPACT)
    other = F.get(OTHERS, F.lit(0))
    return compact.select(
        *(
            F.col(name) if name in COMPACT.names else other.getField(name).alias(name)
            for name in DECODED.names
        )
    )


def decode_offset_commits(records: DataFrame) -> DataFrame:
    """Decode only committed offsets and their tombstones, which is faster than `decode`.

    All other records are dropped, including malformed ones.

    Args:
        records: As in `decode`.

    Returns:
        Columns `log_partition`, `log_offset`, `log_time`, `group_id`, `tombstone` and those of
        `offset_commit`.
    """
    return _decoded(records, decode_commits_batch, COMMITS)


def _decoded(
    records: DataFrame, decode_one: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema
) -> DataFrame:
    def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return map(decode_one, batches)

    return records.select(*RAW.names).mapInArrow(decode_batches, from_arrow_schema(schema))
