"""Tables whose rows Spark keeps in memory or on its disks."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date

from pyspark.sql import DataFrame

from groupwright.pipeline._tables.lakehouse import of_dates
from groupwright.pipeline._tables.protocol import Batch, Tables
from groupwright.pipeline.schemas import Table


@contextmanager
def kept(tables: Tables) -> Iterator[Tables]:
    """Yield tables that are read once, and again after each change by them; not after another program's.

    For few rows: each query of a Delta table lists its files by a job, which takes longer than to read them.
    """
    keeping = _KeptTables(tables)
    try:
        yield keeping
    finally:
        keeping.release()


class _KeptTables:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._kept: dict[str, DataFrame] = {}

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """See `Tables.add`."""
        self._tables.add(table, rows, batch)
        self._forget(table)

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        self._tables.replace(table, rows, dates)
        self._forget(table)

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """See `Tables.read`."""
        rows = self._kept.get(table.name)
        if rows is None:
            rows = self._tables.read(table)
            # Spark's optimizer removes a table without rows from a query, unless it is to keep the table.
            rows = self._kept[table.name] = rows if rows.isLocal() else rows.persist()
        return of_dates(rows, since, until)

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """See `Tables.compact`."""
        self._tables.compact(table, dates)

    def retain(self, table: Table, since: date) -> None:
        """See `Tables.retain`."""
        self._tables.retain(table, since)
        self._forget(table)

    def vacuum(self, table: Table) -> None:
        """See `Tables.vacuum`."""
        self._tables.vacuum(table)

    def release(self) -> None:
        """Keep no rows any more: the session would give them to other queries of the same tables."""
        for rows in self._kept.values():
            rows.unpersist()
        self._kept.clear()

    def _forget(self, table: Table) -> None:
        rows = self._kept.pop(table.name, None)
        if rows is not None:
            rows.unpersist()
