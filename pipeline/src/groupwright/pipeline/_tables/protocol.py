"""What tables of any format do."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from pyspark.sql import DataFrame

from groupwright.pipeline.schemas import Table


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch is known by: added again, it changes nothing.

    Attributes:
        writer: Who adds: one stream, by the id that its checkpoint keeps, or one run of a batch job.
        number: Which of its batches this is; they come in ascending order.
    """

    writer: str
    number: int


class Tables(Protocol):
    """All tables of one root. One job writes to them at a time; any number read."""

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Add rows, unless the batch is there already. Readers see all of them or none.

        Raises:
            TablesError: Another job has written in between.
        """

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """Put rows, all of them of the dates, in the place of what the table has of these. Readers see one or the other.

        Raises:
            TablesError: Another job has written in between.
        """

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """Return a table's rows, as they are now; of the dates, both included. A table without any is empty."""

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """Put each date's rows into few files."""
