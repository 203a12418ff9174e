"""The command that writes plain Parquet."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, open_tables, schemas
from groupwright.pipeline._tables.arrow import to_arrow

TIME = datetime(2026, 11, 20, 8, tzinfo=UTC)
ROW = {
    "topic": "orders",
    "partition": 0,
    "start_offset": 0,
    "end_offset": 7,
    "time": TIME,
    "topic_id": None,
    "date": date(2026, 11, 20),
}


def test_parquet_has_the_rows_of_the_tables(
    run_job: Callable[..., str], spark: SparkSession, tmp_path: Path
) -> None:
    table = schemas.END_OFFSETS
    rows = spark.createDataFrame(to_arrow([ROW], table), table.schema)
    open_tables(spark, str(tmp_path / "tables")).add(table, rows, Batch("test", 0))
    command = ("export", f"tables={tmp_path / 'tables'}", f"--out={tmp_path / 'out'}", "--table")

    run_job(*command, "end_offsets")

    (row,) = pq.read_table(tmp_path / "out" / "end_offsets").to_pylist()
    assert row | {"time": row["time"].replace(tzinfo=UTC)} == ROW | {"date": "2026-11-20"}
    assert "already exists" in run_job(*command, "end_offsets", exit_code=1)
    assert "no table ends; the tables are" in run_job(*command, "ends", exit_code=2)
