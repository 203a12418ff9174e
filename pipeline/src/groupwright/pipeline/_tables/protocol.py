"""Interface of the tables, common to all formats."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from pyspark.sql import DataFrame

from groupwright.pipeline.schemas import Table


@dataclass(frozen=True, slots=True)
class Batch:
    """Identity of a batch: a batch that is added again changes nothing.

    Attributes:
        writer: Id of the writer: an id of a run of a stream, or of one part of a batch job.
        number: Number of the batch, ascending per writer.
    """

    writer: str
    number: int


class WriteLease(Protocol):
    """The right to write tables, which a job can lose to a later one."""

    def check(self) -> None:
        """Raise a `TablesError` if the lease has been lost."""


class Tables(Protocol):
    """The tables under one root. Only one job may write at a time; any number may read.

    All methods but `read` raise a `TablesError` if the job has lost its lease. Columns that a table of an
    older release lacks are read as null, and added by the next `add` or `replace`.
    """

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Append rows, unless the batch has been added before. Readers see all of the rows or none."""

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """Replace the rows of the dates by `rows`, all of these dates. Readers see it atomically."""

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """Return a table's current rows between two dates, both inclusive. A missing table is empty."""

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """Rewrite each date's rows into fewer files. The rows do not change."""

    def retain(self, table: Table, since: date) -> None:
        """Delete the rows of dates before this one."""

    def vacuum(self, table: Table) -> None:
        """Delete files of interrupted batches, and those that are no longer valid for any reader."""
