"""Delta tables: repeated batches, jobs that die in the middle, two writers, and other readers."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import Batch, Tables, TablesError, open_tables
from groupwright.pipeline._tables import kept
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.lakehouse import DeltaTables, IcebergTables
from groupwright.pipeline.record_schemas import INT, STRING, Table, column, make_table, struct
from groupwright.pipeline.schemas import END_OFFSETS, LAG

FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 21)


def rows(spark: SparkSession, *offsets: int, day: date = FIRST) -> DataFrame:
    made = [
        {
            "topic": "orders",
            "partition": 0,
            "start_offset": 0,
            "end_offset": offset,
            "time": datetime(day.year, day.month, day.day, tzinfo=UTC),
            "topic_id": None,
            "date": day,
        }
        for offset in offsets
    ]
    return spark.createDataFrame(to_arrow(made, END_OFFSETS), END_OFFSETS.schema).coalesce(1)


def offsets(table: DataFrame) -> list[int]:
    return sorted(row.end_offset for row in table.collect())


def test_a_repeated_batch_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    tables = open_tables(spark, str(tmp_path))
    tables.add(END_OFFSETS, rows(spark, 1, 2), Batch("stream", 0))
    tables.add(END_OFFSETS, rows(spark, 3), Batch("stream", 1))
    tables.add(END_OFFSETS, rows(spark, 3), Batch("stream", 1))
    tables.add(END_OFFSETS, rows(spark, 4), Batch("another", 0))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2, 3, 4]
    assert tables.read(END_OFFSETS).schema.simpleString() == END_OFFSETS.schema.simpleString()


def test_readers_see_nothing_of_a_batch_that_a_crash_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """Its files are there, and no commit names them."""
    tables = open_tables(spark, str(tmp_path))
    tables.add(END_OFFSETS, rows(spark, 1), Batch("stream", 0))
    rows(spark, 2, 2, 2).drop("date").write.mode("append").parquet(
        str(tmp_path / END_OFFSETS.name / f"date={FIRST}")
    )
    assert offsets(tables.read(END_OFFSETS)) == [1]
    tables.add(END_OFFSETS, rows(spark, 2), Batch("stream", 1))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2]


def test_dates_are_replaced_whole(spark: SparkSession, tmp_path: Path) -> None:
    tables = open_tables(spark, str(tmp_path))
    tables.replace(END_OFFSETS, rows(spark, 1).union(rows(spark, 2, day=SECOND)), [FIRST, SECOND])
    tables.replace(END_OFFSETS, rows(spark, 7), [FIRST])
    assert offsets(tables.read(END_OFFSETS)) == [2, 7]
    assert offsets(tables.read(END_OFFSETS, since=SECOND)) == [2]
    assert offsets(tables.read(END_OFFSETS, until=FIRST)) == [7]
    with pytest.raises(PySparkException, match="DELTA_REPLACE_WHERE_MISMATCH"):
        tables.replace(END_OFFSETS, rows(spark, 1, day=SECOND), [FIRST])
    assert offsets(tables.read(END_OFFSETS)) == [2, 7]


def test_a_table_of_an_older_release_gets_new_columns_and_fields(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of the older release, which can still write, have nulls in them until they are replaced."""
    tables = open_tables(spark, str(tmp_path))
    value, former, added = struct(generation=INT), column("former", INT, ""), column("added", STRING, "")
    old = make_table("lag", "", column("value", value, ""), former, date="")
    new = make_table("lag", "", column("value", struct(generation=INT, epoch=INT), ""), added, date="")

    def frame(table: Table, *made: tuple[object, ...]) -> DataFrame:
        return spark.createDataFrame(made, table.schema).coalesce(1)

    def seen(table: Table) -> list[tuple[object, ...]]:
        read = tables.read(table)
        assert read.schema.simpleString() == table.schema.simpleString()
        return sorted((row.date, *row.value, row[1]) for row in read.collect())

    tables.add(old, frame(old, ((1,), 5, FIRST), ((2,), 5, SECOND)), Batch("stream", 0))
    assert seen(new) == [(FIRST, 1, None, None), (SECOND, 2, None, None)]
    stray = frame(new, ((3, 4), "new", SECOND)).withColumn("stray", F.lit(1))
    tables.replace(new, stray, [SECOND])
    tables.add(old, frame(old, ((5,), 6, SECOND)), Batch("stream", 1))
    assert seen(new) == [(FIRST, 1, None, None), (SECOND, 3, 4, "new"), (SECOND, 5, None, None)]
    assert seen(old) == [(FIRST, 1, 5), (SECOND, 3, None), (SECOND, 5, 6)]
    assert DeltaTable(str(tmp_path / "lag")).schema().to_arrow().names == ["value", "former", "date", "added"]


@pytest.mark.slow
def test_small_files_become_one_and_old_dates_go(spark: SparkSession, tmp_path: Path) -> None:
    tables = open_tables(spark, str(tmp_path))
    for number in range(3):
        tables.add(END_OFFSETS, rows(spark, number), Batch("stream", number))
    tables.compact(END_OFFSETS, [FIRST, SECOND])
    assert len(files := tables.read(END_OFFSETS).inputFiles()) == 1, files
    tables.add(END_OFFSETS, rows(spark, 2), Batch("stream", 2))
    assert offsets(tables.read(END_OFFSETS)) == [0, 1, 2], "still known, though it has other files now"
    tables.add(END_OFFSETS, rows(spark, 3, day=SECOND), Batch("stream", 3))
    tables.retain(END_OFFSETS, SECOND)
    tables.vacuum(END_OFFSETS)
    assert offsets(tables.read(END_OFFSETS)) == [3]


def test_kept_tables_are_read_once_and_again_after_each_of_their_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    others = open_tables(spark, str(tmp_path))
    with kept(others) as tables:
        assert offsets(tables.read(END_OFFSETS)) == []
        tables.add(END_OFFSETS, rows(spark, 1).union(rows(spark, 2, day=SECOND)), Batch("stream", 0))
        assert offsets(tables.read(END_OFFSETS)) == [1, 2]
        assert tables.read(END_OFFSETS).storageLevel.useMemory
        assert offsets(tables.read(END_OFFSETS, since=SECOND)) == [2]
        assert offsets(tables.read(END_OFFSETS, until=FIRST)) == [1]
        others.add(END_OFFSETS, rows(spark, 3), Batch("another", 0))
        assert offsets(tables.read(END_OFFSETS)) == [1, 2], "another program's rows"
        tables.replace(END_OFFSETS, rows(spark, 7), [FIRST])
        assert offsets(tables.read(END_OFFSETS)) == [2, 7]
        tables.replace(END_OFFSETS, tables.read(END_OFFSETS, until=FIRST), [FIRST])
        assert offsets(tables.read(END_OFFSETS)) == [2, 7], "rows of the table itself"
        tables.retain(END_OFFSETS, SECOND)
        assert offsets(tables.read(END_OFFSETS)) == [2]
    others.add(END_OFFSETS, rows(spark, 4), Batch("another", 1))
    assert not others.read(END_OFFSETS).storageLevel.useMemory
    assert offsets(others.read(END_OFFSETS)) == [2, 4]


def test_two_writers_at_once_keep_all_rows_and_a_batch_of_both_is_there_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As a job that was paused and replaced: both add the unfinished batch, then each one of its own."""
    open_tables(spark, str(tmp_path)).add(END_OFFSETS, rows(spark, 0), Batch("first", 0))
    both = threading.Barrier(2)
    refused: list[str] = []

    def write(name: str, offset: int) -> None:
        tables = open_tables(spark, str(tmp_path))
        both.wait()
        try:
            tables.add(END_OFFSETS, rows(spark, 1), Batch("unfinished", 0))
        except TablesError as error:
            refused.append(str(error))
        tables.add(END_OFFSETS, rows(spark, offset), Batch(name, 0))

    writers = [threading.Thread(target=write, args=(f"writer-{number}", number)) for number in (2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert offsets(open_tables(spark, str(tmp_path)).read(END_OFFSETS)) == [0, 1, 2, 3]
    assert all("another job has changed the table" in each for each in refused), refused


class LostLease:
    def check(self) -> None:
        raise TablesError("the job has lost its lease")


@pytest.mark.parametrize("tables", [DeltaTables, IcebergTables])
@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables.add(LAG, None, Batch("stream", 0)),
        lambda tables: tables.replace(LAG, None, [FIRST]),
        lambda tables: tables.compact(LAG, [FIRST]),
        lambda tables: tables.retain(LAG, FIRST),
        lambda tables: tables.vacuum(LAG),
    ],
)
def test_a_job_without_its_lease_does_not_change_tables(
    spark: SparkSession, tables: Callable[..., Tables], change: Callable[[Tables], None]
) -> None:
    with pytest.raises(TablesError, match="lost its lease"):
        change(tables(spark, "lake.groups", LostLease()))


def test_pandas_polars_and_duckdb_read_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    open_tables(spark, str(tmp_path)).add(END_OFFSETS, rows(spark, 1, 2), Batch("stream", 0))
    folder = str(tmp_path / END_OFFSETS.name)
    end_offsets = DeltaTable(folder).to_pyarrow_dataset()  # DuckDB finds it by its name
    counts = [
        int(DeltaTable(folder).to_pandas()["end_offset"].sum()),
        pl.read_delta(folder)["end_offset"].sum(),
        duckdb.execute("select sum(end_offset)::int from end_offsets").fetchall()[0][0],
    ]
    assert end_offsets.schema.names == list(END_OFFSETS.columns)
    assert counts == [3, 3, 3]


def test_a_folder_s_names_are_listed_whatever_they_contain(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "a, b"
    names = ["a,b.json", "date=2026-03-01", "{ü}", "}"]
    for name in names:
        (root / "some" / name).mkdir(parents=True)
    (root / "empty").mkdir()
    folder = Folder(spark, str(root))

    assert (folder / "some").names() == names
    assert (folder / "empty").names() == (folder / "missing").names() == []
    assert folder.names() == ["empty", "some"]


def test_a_file_is_created_by_one_alone_only_where_renames_are_atomic(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store's scheme: its file system is not among Spark's jars."""
    monkeypatch.setattr(Folder, "scheme", "s3a")
    folder = Folder(spark, str(tmp_path / "_lease"))
    with pytest.raises(TablesError, match="s3a has no atomic rename"):
        folder.write("1.json", "{}", replace=False)
    assert folder.write("1.json", "{}")
    assert folder.read("1.json") == "{}"


def test_a_format_without_its_jars_says_what_to_add(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TablesError, match=r"the format iceberg needs its jars.*spark\.jars\.packages="):
        open_tables(spark, str(tmp_path), "iceberg")


def test_an_unknown_format_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="unknown table format 'csv'; known formats: delta, iceberg"):
        open_tables(spark, str(tmp_path), "csv")
