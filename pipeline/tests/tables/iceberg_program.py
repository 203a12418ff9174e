"""Run by `test_iceberg.py` on a separate Spark with Iceberg's jars: tests of `Tables`."""

import json
import sys
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline import Batch, Tables, open_tables
from groupwright.pipeline.jobs import local_session
from groupwright.pipeline.schemas import END_OFFSETS

FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 21)


def rows(spark: SparkSession, *offsets: int, day: date = FIRST) -> DataFrame:
    time = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return spark.createDataFrame(
        [("orders", 0, 0, offset, time, None, day) for offset in offsets], END_OFFSETS.schema
    )


def offsets(table: DataFrame) -> list[int]:
    return sorted(row.end_offset for row in table.collect())


def check(spark: SparkSession, tables: Tables) -> None:
    assert tables.read(END_OFFSETS).isEmpty()
    tables.add(END_OFFSETS, rows(spark, 1, 2), Batch("stream", 0))
    tables.add(END_OFFSETS, rows(spark, 3, day=SECOND), Batch("stream", 1))
    tables.add(END_OFFSETS, rows(spark, 3, day=SECOND), Batch("stream", 1))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2, 3], "played again, it is there once"
    tables.replace(END_OFFSETS, rows(spark, 7), [FIRST])
    assert offsets(tables.read(END_OFFSETS)) == [3, 7]
    assert offsets(tables.read(END_OFFSETS, since=SECOND)) == [3]
    tables.compact(END_OFFSETS, [FIRST])
    assert offsets(tables.read(END_OFFSETS)) == [3, 7]
    tables.retain(END_OFFSETS, SECOND)
    tables.vacuum(END_OFFSETS)
    assert offsets(tables.read(END_OFFSETS)) == [3]


def main(folder: str, settings: str) -> None:
    with local_session(
        "iceberg",
        format_="iceberg",
        settings={
            **json.loads(settings),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": f"{folder}/iceberg",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        },
    ) as spark:
        check(spark, open_tables(spark, "lake.groups", "iceberg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
