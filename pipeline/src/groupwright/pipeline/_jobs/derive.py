"""Derived tables, recomputed date by date."""

import logging
from collections.abc import Collection
from datetime import date, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._tables import Tables
from groupwright.pipeline._transforms import churn, lag, rebalances
from groupwright.pipeline.schemas import Table

_DAY = timedelta(days=1)
_LOG_POSITION = ("log_partition", "log_offset", "log_time")

_log = logging.getLogger("groupwright.pipeline")


def derive(tables: Tables, dates: Collection[date], *, lookback_days: int) -> None:
    """Recompute derived tables for dates and the day after each, whose first row depends on the day before.

    Args:
        tables: The base tables to read, and the derived tables to write.
        dates: The dates whose rows have changed.
        lookback_days: Days to look back for the generation that precedes a date's first one.
    """
    days = sorted({day + more for day in dates for more in (timedelta(0), _DAY)})
    for first, last in _date_ranges(days):
        _derive_rebalances(tables, first, last, lookback_days)
        for day in _days(first, last):
            _derive_lag(tables, day, lookback_days)
        _derive_churn(tables, first, last, lookback_days)
        _log.info("rebalances, lag and churn are up to date from %s to %s", first, last)


def with_consumer_members(
    tables: Tables, *, since: date | None = None, until: date | None = None
) -> DataFrame:
    """Return `group_members`, including the members of KIP-848 groups.

    KIP-848 members have one row per stable epoch, with the log position of the epoch's record.
    """
    records = tables.read(schemas.CONSUMER_GROUP_RECORDS, until=until)
    names = rebalances.names_by_group(records, _names(tables, records, since))
    consumer = rebalances.consumer_members(records, names).drop(*_LOG_POSITION, "date")
    epochs = (
        tables.read(schemas.GROUP_GENERATIONS, since=since, until=until)
        .where("group_type = 'consumer'")
        .groupBy("group_id", "generation")
        .agg(F.max_by(F.struct(*_LOG_POSITION, "date"), "log_time").alias("epoch"))
        .select("group_id", "generation", "epoch.*")
    )
    classic = tables.read(schemas.GROUP_MEMBERS, since=since, until=until)
    return classic.unionByName(consumer.join(epochs, ["group_id", "generation"]))


def _derive_rebalances(tables: Tables, first: date, last: date, lookback_days: int) -> None:
    since = first - timedelta(days=lookback_days)

    def read(table: Table, since: date | None) -> DataFrame:
        return tables.read(table, since=since, until=last)

    # All of them, because a KIP-848 member's last record may be older than the lookback.
    records = read(schemas.CONSUMER_GROUP_RECORDS, None)
    histories = rebalances.histories(
        read(schemas.GROUP_GENERATIONS, since),
        read(schemas.GROUP_MEMBERS, since),
        records,
        read(schemas.CLIENT_EVENTS, first - _DAY),
        read(schemas.OFFSET_COMMITS, first - _DAY),
    )
    names = rebalances.names_by_group(records, _names(tables, records, since))
    rows = rebalances.rebalances(histories, names)
    _replace(tables, schemas.REBALANCES, rows, first, last)


def _derive_lag(tables: Tables, day: date, lookback_days: int) -> None:
    """Derive one day's lag.

    The last commits of the day before are included, because a group that no longer commits still has lag.
    """
    of_group = Window.partitionBy("group_id", "topic", "partition").orderBy(F.col("time").desc())
    before = (
        tables.read(schemas.LAG, since=day - _DAY, until=day - _DAY)
        .withColumn("rank", F.row_number().over(of_group))
        .where("rank = 1")
        .select("group_id", "topic", "partition", "committed_offset", F.col("time").alias("log_time"))
        .withColumns({"log_offset": F.lit(-1), "tombstone": F.lit(False)})  # noqa: FBT003 - a value of the table
    )
    commits = tables.read(schemas.OFFSET_COMMITS, since=day, until=day).select(*before.columns)
    ends = tables.read(schemas.END_OFFSETS, since=day - timedelta(days=lookback_days), until=day)
    _replace(tables, schemas.LAG, lag.lag(commits.union(before), ends), day, day)


def _derive_churn(tables: Tables, first: date, last: date, lookback_days: int) -> None:
    rows = churn.churn(
        tables.read(schemas.REBALANCES, since=first - _DAY, until=last),
        tables.read(schemas.CLIENT_EVENTS, since=first, until=last),
        with_consumer_members(tables, since=first - timedelta(days=lookback_days), until=last),
    )
    _replace(tables, schemas.CHURN, rows, first, last)


def _replace(tables: Tables, table: Table, rows: DataFrame, first: date, last: date) -> None:
    within = rows.where(F.col("date").between(F.lit(first), F.lit(last)))
    # Adaptive execution merges small partitions of this shuffle: few files, and no less work for the cluster.
    tables.replace(table, within.repartition("date", "group_id"), _days(first, last))


def _names(tables: Tables, records: DataFrame, since: date | None) -> DataFrame:
    return rebalances.topic_names(
        records,
        tables.read(schemas.OFFSET_COMMITS, since=since),
        tables.read(schemas.END_OFFSETS, since=since),
    )


def _date_ranges(days: list[date]) -> list[tuple[date, date]]:
    """Return runs of consecutive dates, as first and last date."""
    ranges: list[tuple[date, date]] = []
    for day in days:
        if ranges and day - ranges[-1][1] <= _DAY:
            ranges[-1] = (ranges[-1][0], day)
        else:
            ranges.append((day, day))
    return ranges


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
