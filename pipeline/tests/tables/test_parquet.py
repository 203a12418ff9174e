"""Batches that are played again, jobs that die in the middle, and readers beside them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline import Batch, TablesError, open_tables
from groupwright.pipeline._jobs.lease import hold_lease
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.parquet import GRACE_SECONDS, ParquetTables
from groupwright.pipeline.schemas import END_OFFSETS

FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 21)


def rows(spark: SparkSession, *offsets: int, day: date = FIRST) -> DataFrame:
    time = datetime(day.year, day.month, day.day, tzinfo=UTC)
    made = [
        {"topic": "orders", "partition": 0, "end_offset": offset, "time": time, "date": day}
        for offset in offsets
    ]
    table = pa.Table.from_pylist(made, to_arrow_schema(END_OFFSETS.schema))
    return spark.createDataFrame(table, END_OFFSETS.schema).coalesce(1)


def offsets(table: DataFrame) -> list[int]:
    return sorted(row.end_offset for row in table.collect())


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def test_a_batch_that_is_played_again_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    tables = ParquetTables(spark, str(tmp_path))
    tables.add(END_OFFSETS, rows(spark, 1, 2), Batch("stream", 0))
    tables.add(END_OFFSETS, rows(spark, 3), Batch("stream", 1))
    tables.add(END_OFFSETS, rows(spark, 3), Batch("stream", 1))
    tables.add(END_OFFSETS, rows(spark, 4), Batch("another", 0))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2, 3, 4]
    assert tables.read(END_OFFSETS).schema.simpleString() == END_OFFSETS.schema.simpleString()


def test_readers_see_nothing_of_a_batch_that_a_crash_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """Its files are there, and no manifest names them; played again, it overwrites them."""
    tables = ParquetTables(spark, str(tmp_path))
    tables.add(END_OFFSETS, rows(spark, 1), Batch("stream", 0))
    half = tmp_path / END_OFFSETS.name / "batch=stream-000000000001"
    rows(spark, 2, 2, 2).write.partitionBy("date").parquet(str(half))
    assert offsets(tables.read(END_OFFSETS)) == [1]
    tables.add(END_OFFSETS, rows(spark, 2), Batch("stream", 1))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2]


def test_dates_are_replaced_whole_and_what_was_there_goes_after_a_while(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock = Clock()
    tables = ParquetTables(spark, str(tmp_path), clock)
    both = rows(spark, 1).union(rows(spark, 2, day=SECOND))
    tables.add(END_OFFSETS, both, Batch("stream", 0))
    reader = tables.read(END_OFFSETS)
    tables.replace(END_OFFSETS, rows(spark, 7), [FIRST])
    assert offsets(reader) == [1, 2], "a reader that had begun"
    assert offsets(tables.read(END_OFFSETS)) == [2, 7]
    assert offsets(tables.read(END_OFFSETS, since=SECOND)) == [2]
    assert offsets(tables.read(END_OFFSETS, until=FIRST)) == [7]
    (old,) = (tmp_path / END_OFFSETS.name).glob(f"batch=stream-{0:012d}.*/date={FIRST}")
    assert old.is_dir()
    clock.now += GRACE_SECONDS
    tables.replace(END_OFFSETS, rows(spark), [SECOND])
    assert not old.exists()
    assert offsets(tables.read(END_OFFSETS)) == [7]


def test_what_replaces_a_date_is_of_that_date(spark: SparkSession, tmp_path: Path) -> None:
    tables = ParquetTables(spark, str(tmp_path))
    with pytest.raises(TablesError, match="2026-11-21 cannot replace those of 2026-11-20"):
        tables.replace(END_OFFSETS, rows(spark, 1, day=SECOND), [FIRST])
    assert tables.read(END_OFFSETS).isEmpty()


def test_many_small_batches_become_one_file_a_date(spark: SparkSession, tmp_path: Path) -> None:
    tables = ParquetTables(spark, str(tmp_path))
    for number in range(3):
        tables.add(END_OFFSETS, rows(spark, number), Batch("stream", number))
    tables.compact(END_OFFSETS, [FIRST, SECOND])
    assert [len(folders) for folders in tables.manifest(END_OFFSETS).folders.values()] == [1]
    assert offsets(tables.read(END_OFFSETS)) == [0, 1, 2]
    tables.add(END_OFFSETS, rows(spark, 2), Batch("stream", 2))
    assert offsets(tables.read(END_OFFSETS)) == [0, 1, 2], "still known, though it has other files now"


def test_old_dates_are_deleted_and_so_are_files_that_a_crash_has_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock = Clock()
    tables = ParquetTables(spark, str(tmp_path), clock)
    tables.add(END_OFFSETS, rows(spark, 1).union(rows(spark, 2, day=SECOND)), Batch("stream", 0))
    tables.retain(END_OFFSETS, SECOND)
    assert offsets(tables.read(END_OFFSETS)) == [2]
    left = tmp_path / END_OFFSETS.name / "batch=stream-000000000001.0"
    rows(spark, 3).write.partitionBy("date").parquet(str(left))
    clock.now = left.stat().st_mtime + 3600
    tables.vacuum(END_OFFSETS)
    assert left.is_dir(), "it may be that of a running batch"
    clock.now += 86400
    tables.vacuum(END_OFFSETS)
    assert not left.exists()
    assert offsets(tables.read(END_OFFSETS)) == [2]


def test_of_two_writers_that_publish_at_once_both_keep_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one writes a version between this one's reading of the manifest and its writing."""
    tables, other = ParquetTables(spark, str(tmp_path)), ParquetTables(spark, str(tmp_path))
    tables.add(END_OFFSETS, rows(spark, 1), Batch("one", 0))
    write = Folder.write

    def write_after_the_other(self: Folder, name: str, text: str, *, replace: bool = True) -> bool:
        monkeypatch.setattr(Folder, "write", write)
        other.add(END_OFFSETS, rows(spark, 3), Batch("another", 0))
        return write(self, name, text, replace=replace)

    monkeypatch.setattr(Folder, "write", write_after_the_other)
    tables.add(END_OFFSETS, rows(spark, 2), Batch("one", 1))
    assert offsets(tables.read(END_OFFSETS)) == [1, 2, 3]
    assert tables.manifest(END_OFFSETS).written == {"one": 1, "another": 0}
    leftovers = [each.name for each in (tmp_path / END_OFFSETS.name / "_manifest").iterdir()]
    assert all(name.endswith((".json", ".crc")) for name in leftovers), leftovers


def test_a_job_that_has_lost_its_lease_is_fenced_off(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path / "_lease"))
    with hold_lease(folder, "stream") as lease:
        paused = ParquetTables(spark, str(tmp_path), lease=lease)
        paused.add(END_OFFSETS, rows(spark, 1), Batch("stream", 0))
        later = ParquetTables(spark, str(tmp_path), lease=TakenOver(lease.number + 1))
        later.add(END_OFFSETS, rows(spark, 2), Batch("batch", 0))
        with pytest.raises(TablesError, match="another job has taken over"):
            paused.add(END_OFFSETS, rows(spark, 3), Batch("stream", 1))
    assert offsets(later.read(END_OFFSETS)) == [1, 2]


@dataclass(frozen=True)
class TakenOver:
    number: int

    def check(self) -> None:
        """Held."""


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


def test_parquet_is_refused_where_renames_are_not_atomic(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store's scheme: its file system is not among Spark's jars."""
    monkeypatch.setattr(Folder, "scheme", "s3a")
    with pytest.raises(TablesError, match=r"s3a has none\. Set format=delta or format=iceberg"):
        open_tables(spark, str(tmp_path), lease=TakenOver(1))
    folder = Folder(spark, str(tmp_path / "_lease"))
    with pytest.raises(TablesError, match="s3a has no atomic rename"):
        folder.write("1.json", "{}", replace=False)
    assert folder.write("1.json", "{}")
    assert folder.read("1.json") == "{}"


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_format_without_its_jars_says_what_to_add(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    with pytest.raises(TablesError, match=rf"the format {format_} needs its jars.*spark\.jars\.packages="):
        open_tables(spark, str(tmp_path), format_)


def test_a_format_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        TablesError, match="unknown table format 'csv'; known formats: parquet, delta, iceberg"
    ):
        open_tables(spark, str(tmp_path), "csv")
