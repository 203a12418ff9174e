"""The tables as reports and what-if studies read them."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs.derive import group_history
from groupwright.pipeline._jobs.session import has_few_rows
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._side_by_side import side_by_side
from groupwright.pipeline._tables import kept, open_tables

_READ = (
    schemas.REBALANCES,
    schemas.GROUP_EPOCHS,
    schemas.CLIENT_EVENTS,
    schemas.END_OFFSETS,
    schemas.LAG,
    schemas.CHURN,
)
"""The tables that reports and what-if studies read, besides those of `group_history`."""


@contextmanager
def read_history(spark: SparkSession, settings: Settings) -> Iterator[dict[str, DataFrame]]:
    """Yield the tables that reports and studies read by name, with those of `group_history`.

    Few rows are kept until the end, as they are now.

    Args:
        spark: The session.
        settings: Where the tables are.

    Raises:
        TablesError: The tables cannot be opened.
    """
    tables = open_tables(spark, settings.tables, settings.format)
    with kept(tables) if has_few_rows(settings) else nullcontext(tables) as tables:
        with side_by_side(spark) as start:
            found = {table.name: start(partial(tables.read, table)) for table in _READ}
            history = group_history(tables)
        yield {name: rows.result() for name, rows in found.items()} | history
