"""Run by `test_iceberg.py` on a separate Spark with Iceberg's jars: tests of `Tables`."""

import json
import sys
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline import Batch, Tables, open_tables
from groupwright.pipeline.jobs import local_session
from groupwright.pipeline.record_schemas import INT, STRING, Table, column, make_table, struct
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


def check_new_columns(spark: SparkSession, tables: Tables) -> None:
    value, former, added = struct(generation=INT), column("former", INT, ""), column("added", STRING, "")
    old = make_table("lag", "", column("value", value, ""), former, date="")
    new = make_table("lag", "", column("value", struct(generation=INT, epoch=INT), ""), added, date="")

    def frame(table: Table, *made: tuple[object, ...]) -> DataFrame:
        return spark.createDataFrame(made, table.schema)

    def seen(table: Table) -> list[tuple[object, ...]]:
        read = tables.read(table)
        assert read.schema.simpleString() == table.schema.simpleString()
        return sorted((row.date, *row.value, row[1]) for row in read.collect())

    tables.add(old, frame(old, ((1,), 5, FIRST), ((2,), 5, SECOND)), Batch("stream", 0))
    assert seen(new) == [(FIRST, 1, None, None), (SECOND, 2, None, None)]
    tables.replace(new, frame(new, ((3, 4), "new", SECOND)), [SECOND])
    tables.add(old, frame(old, ((5,), 6, SECOND)), Batch("stream", 1))
    assert seen(new) == [(FIRST, 1, None, None), (SECOND, 3, 4, "new"), (SECOND, 5, None, None)]
    assert seen(old) == [(FIRST, 1, 5), (SECOND, 3, None), (SECOND, 5, 6)]


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
        tables = open_tables(spark, "lake.groups", "iceberg")
        check(spark, tables)
        check_new_columns(spark, tables)


if __name__ == "__main__":
    main(*sys.argv[1:])
