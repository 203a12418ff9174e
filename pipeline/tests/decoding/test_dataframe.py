"""The decoder on Spark gives what it gives without, in rows of the schema that it promises."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline._decoding import COMMITS, DECODED, decode, decode_batch, decode_offset_commits


@pytest.mark.slow
def test_spark_rows_are_those_of_the_batches(
    spark: SparkSession, golden_records: list[Any], batch: Callable[..., pa.RecordBatch]
) -> None:
    made = batch([(record.key, record.value) for record in golden_records] + [(b"\0", None), (None, b"\xff")])
    raw = spark.createDataFrame(pa.Table.from_batches([made]))
    decoded = decode(raw)
    assert to_arrow_schema(decoded.schema).equals(DECODED)
    rows = decoded.orderBy("log_offset").toArrow()
    assert rows.cast(DECODED).equals(pa.Table.from_batches([decode_batch(made)]))
    commits = decode_offset_commits(raw).orderBy("log_offset").toArrow().cast(COMMITS).to_pylist()
    of_all = [row for row in rows.to_pylist() if row["record_kind"] == "offset_commit"]
    heads = ("log_partition", "log_offset", "log_time", "group_id", "tombstone")
    assert commits == [{name: row[name] for name in heads} | row["offset_commit"] for row in of_all]
    nothing = raw.where("offset < 0")
    assert decode(nothing).count() == decode_offset_commits(nothing).count() == 0
