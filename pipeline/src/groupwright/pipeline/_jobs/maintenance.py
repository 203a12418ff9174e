"""Maintenance of the tables: compaction, retention, and deletion of files that no reader needs."""

import logging
from datetime import UTC, date, datetime, timedelta
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import State
from groupwright.pipeline._side_by_side import side_by_side
from groupwright.pipeline._tables import Tables

_log = logging.getLogger("groupwright.pipeline")


def is_due(state: State, last_date: date) -> bool:
    """Return whether no job has maintained the tables up to this date: once a day suffices.

    A date of the future is that of a clock that was ahead.
    """
    done = state.maintained()
    return done is None or done < last_date or done > datetime.now(UTC).date()


def maintain(spark: SparkSession, tables: Tables, settings: Settings, state: State, last_date: date) -> None:
    """Compact dates, delete those that `retention_days` has passed, and files that are no longer valid.

    Args:
        spark: The session.
        tables: The tables.
        settings: The job's settings.
        state: The jobs' state.
        last_date: The last date to compact; `lookback_days` dates up to it are compacted.
    """
    # New tables have no files that are old enough, and the next maintenance compacts the same dates.
    if state.maintained():
        _compact(spark, tables, settings, last_date)
        _retain(tables, schemas.GROUP_STATES, last_date - timedelta(days=settings.lookback_days))
        for table in schemas.TABLES.values():
            tables.vacuum(table)
    if settings.retention_days:
        first = _newest_date(tables) - timedelta(days=settings.retention_days)
        for table in schemas.TABLES.values():
            if table not in (*schemas.MEMBER_RECORDS, schemas.GROUP_STATES):
                _retain(tables, table, first)
        _log.info("Dates before %s were deleted", first)
    state.mark_maintained(last_date)


def _newest_date(tables: Tables) -> date:
    """Return today, or the date of the newest record of a group if that is earlier.

    A clock that is a year ahead would have all dates deleted. These records have the dates of the brokers.
    """
    today = datetime.now(UTC).date()
    newest = [
        tables.read(table).agg(F.max(schemas.PARTITION_COLUMN).alias("date")).collect()[0].date
        for table in (schemas.OFFSET_COMMITS, schemas.GROUP_GENERATIONS)
    ]
    return min(today, max(filter(None, newest), default=today))


def _compact(spark: SparkSession, tables: Tables, settings: Settings, last_date: date) -> None:
    dates = [last_date - timedelta(days=number) for number in range(settings.lookback_days)]
    with side_by_side(spark) as start:
        for table in schemas.BASE_TABLES:
            start(partial(tables.compact, table, dates))


def _retain(tables: Tables, table: schemas.Table, first: date) -> None:
    """Delete the rows of dates before the first: of positions and states, at most those before the newest."""
    if table in (schemas.READ_POSITIONS, schemas.GROUP_STATES):
        day = F.col(schemas.PARTITION_COLUMN)
        dates = tables.read(table).agg(F.min(day).alias("oldest"), F.max(day).alias("newest")).collect()[0]
        if dates.oldest is None or dates.oldest >= first:
            return
        first = min(first, dates.newest)
    tables.retain(table, first)
