"""Delta and Iceberg tables: transactions, history, compaction and deletion of old files are theirs."""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._tables.arrow import empty_frame
from groupwright.pipeline._tables.java import java_class
from groupwright.pipeline._tables.protocol import Batch, WriteLease
from groupwright.pipeline.errors import TablesError
from groupwright.pipeline.schemas import PARTITION_COLUMN, Table

_BATCH = "groupwright.batch"
_CONFLICT = "[DELTA_CONCURRENT_"
"""Start of Delta's errors of a commit that another one has preceded."""
_EVOLVE = {"mergeSchema": "true"}
"""Option of both formats: a write adds the columns, and fields of structs, that the table lacks."""
_KEPT_SNAPSHOTS = timedelta(days=7)


class DeltaTables:
    """Delta tables under a folder. Delta's transactions record each writer's last batch."""

    def __init__(self, spark: SparkSession, root: str, lease: WriteLease | None = None) -> None:
        """Open the tables.

        Args:
            spark: A session with Delta's jars and extension.
            root: The folder of all tables.
            lease: The right to write, checked before each change; None for readers and single programs.
        """
        self._spark = spark
        self._lease = lease
        self._root = root.rstrip("/")
        # By Java: Delta's Python package is not needed, and SQL would create a folder for Spark's catalog.
        self._class = java_class(spark._jvm, "io.delta.tables.DeltaTable")  # noqa: SLF001 - Spark has no other way
        self._session = spark._jsparkSession  # noqa: SLF001 - as above

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """See `Tables.add`."""
        _check(self._lease)
        identity = {"txnAppId": batch.writer, "txnVersion": str(batch.number)}
        self._save(table, rows, "append", identity)

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        _check(self._lease)
        self._save(table, rows, "overwrite", {"replaceWhere": _date_in(dates)})

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """See `Tables.read`."""
        if not self._exists(table):
            return empty_frame(self._spark, table)
        return _select(self._spark.read.format("delta").load(self._path(table)), table, since, until)

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """See `Tables.compact`."""
        _check(self._lease)
        if dates and self._exists(table):
            self._delta(table).optimize().where(_date_in(dates)).executeCompaction()

    def retain(self, table: Table, since: date) -> None:
        """See `Tables.retain`."""
        _check(self._lease)
        if self._exists(table):
            self._delta(table).delete(_before(since))

    def vacuum(self, table: Table) -> None:
        """See `Tables.vacuum`. Delta keeps replaced files for 7 days, unless the table sets another time."""
        _check(self._lease)
        if self._exists(table):
            self._delta(table).vacuum()

    def _save(self, table: Table, rows: DataFrame, mode: str, options: Mapping[str, str]) -> None:
        writer = rows.select(*table.columns).write.format("delta").mode(mode).partitionBy(PARTITION_COLUMN)
        try:
            writer.options(**options, **_EVOLVE).save(self._path(table))
        except (PySparkException, Py4JError) as error:
            if _CONFLICT not in str(error):
                raise
            raise TablesError(
                f"{self._path(table)}: another job has changed the table meanwhile, and only one job at a "
                "time may write. Restart this one when the other has ended; no rows are lost or duplicated"
            ) from error

    def _path(self, table: Table) -> str:
        return f"{self._root}/{table.name}"

    def _exists(self, table: Table) -> bool:
        return bool(self._class.isDeltaTable(self._session, self._path(table)))

    def _delta(self, table: Table) -> Any:
        return self._class.forPath(self._session, self._path(table))


class IcebergTables:
    """Iceberg tables in a namespace of a catalog. Each snapshot records the batch that it added."""

    def __init__(self, spark: SparkSession, root: str, lease: WriteLease | None = None) -> None:
        """Open the tables.

        Args:
            spark: A session with Iceberg's jars and extension, and the catalog's settings.
            root: `catalog.namespace`.
            lease: As for `DeltaTables`.
        """
        self._spark = spark
        self._lease = lease
        self._root = root

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """See `Tables.add`."""
        _check(self._lease)
        self._create(table)
        id_ = f"{batch.writer}-{batch.number:012d}"
        snapshots = self._spark.table(f"{self._name(table)}.snapshots")
        if snapshots.where(F.col("summary")[_BATCH] == id_).isEmpty():
            self._writer(table, rows).option(f"snapshot-property.{_BATCH}", id_).append()

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        _check(self._lease)
        self._create(table)
        self._writer(table, rows).overwrite(F.col(PARTITION_COLUMN).isin(*dates))

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """See `Tables.read`."""
        self._create(table)
        return _select(self._spark.table(self._name(table)), table, since, until)

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """See `Tables.compact`."""
        _check(self._lease)
        catalog = self._root.partition(".")[0]
        if dates:
            arguments = f"table => '{self._name(table)}', where => \"{_date_in(dates)}\""
            self._spark.sql(f"CALL {catalog}.system.rewrite_data_files({arguments})")

    def retain(self, table: Table, since: date) -> None:
        """See `Tables.retain`."""
        _check(self._lease)
        self._create(table)
        self._spark.sql(f"DELETE FROM {self._name(table)} WHERE {_before(since)}")  # noqa: S608 - no input

    def vacuum(self, table: Table) -> None:
        """See `Tables.vacuum`. Snapshots expire after 7 days."""
        _check(self._lease)
        self._create(table)
        catalog = self._root.partition(".")[0]
        time = (datetime.now(UTC) - _KEPT_SNAPSHOTS).strftime("%Y-%m-%d %H:%M:%S")
        arguments = f"table => '{self._name(table)}', older_than => TIMESTAMP '{time}'"
        for procedure in ("expire_snapshots", "remove_orphan_files"):
            self._spark.sql(f"CALL {catalog}.system.{procedure}({arguments})")

    def _create(self, table: Table) -> None:
        if not self._spark.catalog.tableExists(self._name(table)):
            writer = empty_frame(self._spark, table).writeTo(self._name(table)).using("iceberg")
            # Spark would reject rows with new columns before Iceberg can add these to the table.
            writer = writer.tableProperty("write.spark.accept-any-schema", "true")
            writer.partitionedBy(F.col(PARTITION_COLUMN)).create()

    def _writer(self, table: Table, rows: DataFrame) -> DataFrameWriterV2:
        # A new column comes last in the table, but not in the rows.
        options = {**_EVOLVE, "check-ordering": "false"}
        return rows.select(*table.columns).writeTo(self._name(table)).options(**options)

    def _name(self, table: Table) -> str:
        return f"{self._root}.{table.name}"


def _check(lease: WriteLease | None) -> None:
    if lease:
        lease.check()


def of_dates(rows: DataFrame, since: date | None, until: date | None) -> DataFrame:
    """Return a table's rows between two dates, both inclusive; None for no limit."""
    if since is not None:
        rows = rows.where(F.col(PARTITION_COLUMN) >= F.lit(since))
    if until is not None:
        rows = rows.where(F.col(PARTITION_COLUMN) <= F.lit(until))
    return rows


def _select(rows: DataFrame, table: Table, since: date | None, until: date | None) -> DataFrame:
    # Columns, and fields of structs, that a table of an older release lacks become nulls of their types.
    return of_dates(rows, since, until).to(table.schema)


def _before(since: date) -> str:
    return f"{PARTITION_COLUMN} < DATE'{since.isoformat()}'"


def _date_in(dates: Collection[date]) -> str:
    days = ", ".join(f"DATE'{day.isoformat()}'" for day in sorted(dates))
    return f"{PARTITION_COLUMN} IN ({days})"
