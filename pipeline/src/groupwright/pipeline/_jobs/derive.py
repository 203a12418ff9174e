"""Derived tables, recomputed date by date."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs.positions import as_in_log, recreations, with_ascending_offsets
from groupwright.pipeline._side_by_side import side_by_side
from groupwright.pipeline._tables import Tables
from groupwright.pipeline._transforms import churn, group_epochs, group_states, lag, rebalances
from groupwright.pipeline.schemas import Table

_DAY = timedelta(days=1)
_EPOCH = ("group_id", "generation", "log_partition", "log_offset", "log_time")

_log = logging.getLogger("groupwright.pipeline")


def derive(tables: Tables, dates: Collection[date], *, lookback_days: int) -> None:
    """Recompute derived tables for dates and the day after each, whose first row depends on the day before.

    Args:
        tables: The base tables to read, and the derived tables to write.
        dates: The dates whose rows have changed.
        lookback_days: Days to look back for the generation that precedes a date's first one.
    """
    dates = [day for day in dates if day.year < date.max.year]  # a record of such a date is in quarantine
    if not dates:
        return
    days = {day + more for day in dates for more in (timedelta(0), _DAY)}
    days |= dates_that_follow(tables, dates, days)
    for first, last in _date_ranges(sorted(days)):
        _derive_range(tables, first, last, lookback_days)
        _log.info("rebalances, lag and churn are up to date from %s to %s", first, last)


def _derive_range(tables: Tables, first: date, last: date, lookback_days: int) -> None:
    states = _States.before(tables, first)
    earliest = first - timedelta(days=lookback_days)
    recreated = recreations(tables, None if states.since is None else min(states.since, earliest))

    def derive_lag() -> None:
        for day in _days(first, last):
            _derive_lag(tables, day, lookback_days, recreated)

    with side_by_side(states.rows.sparkSession) as start:
        start(derive_lag)
        names = _derive_rebalances(tables, first, last, lookback_days, states, recreated)
        _derive_states(tables, first, last, states, names, recreated)
        _derive_churn(tables, first, last, lookback_days, states)


def dates_that_follow(tables: Tables, dates: Collection[date], days: Collection[date]) -> set[date]:
    """Return the dates besides `days` whose states follow from records of groups on `dates`.

    Only dates with states count: a client event may have any date, and the dates between have no rows.
    """
    states = tables.read(schemas.GROUP_STATES, since=min(dates)).select("date").distinct()
    later = {row.date for row in states.collect()} - set(days)
    if not later:
        return later
    changed = {
        row.date
        for table in schemas.MEMBER_RECORDS
        for row in tables.read(table, since=min(dates), until=max(later)).select("date").distinct().collect()
    }
    first = min(changed & set(dates), default=date.max)
    return {day for day in later if day > first}


@dataclass(frozen=True, slots=True)
class _States:
    """States of groups before a range of dates.

    Attributes:
        rows: `group_states` of the newest date before the range; empty if there is none.
        since: The date from which records follow these states; None if all records are needed.
    """

    rows: DataFrame
    since: date | None

    @classmethod
    def before(cls, tables: Tables, first: date) -> Self:
        """Return the newest states before a date. Records of the dates between are read in addition."""
        until = first - _DAY
        known = tables.read(schemas.GROUP_STATES, until=until)
        day = known.agg(F.max("date").alias("date")).collect()[0].date
        if day is None:
            return cls(known, None)
        return cls(tables.read(schemas.GROUP_STATES, since=day, until=day), day + _DAY)


def group_history(tables: Tables) -> dict[str, DataFrame]:
    """Return `group_generations` and `group_members` by name, with the members of KIP-848 groups.

    Their `log_offset` is the order of each group's records (`with_ascending_offsets`).
    """
    recreated = recreations(tables, None)
    rows = {
        schemas.GROUP_GENERATIONS.name: tables.read(schemas.GROUP_GENERATIONS),
        schemas.GROUP_MEMBERS.name: _with_consumer_members(tables, recreated),
    }
    return {name: with_ascending_offsets(of_table, recreated) for name, of_table in rows.items()}


def _with_consumer_members(tables: Tables, recreated: Collection[int]) -> DataFrame:
    """Return `group_members`, including the members of KIP-848 groups.

    KIP-848 members have one row per stable epoch, with the log position of the epoch's record.
    """
    classic = tables.read(schemas.GROUP_MEMBERS)
    records = with_ascending_offsets(tables.read(schemas.CONSUMER_GROUP_RECORDS), recreated)
    if records.isEmpty():
        return classic
    names = rebalances.names_by_group(records, _names(tables, records, None))
    consumer = rebalances.consumer_members(records, names).withColumn(
        "log_offset", as_in_log(F.col("log_offset"))
    )
    # Records of KIP-848 groups are kept for longer than the generations.
    epochs = tables.read(schemas.GROUP_GENERATIONS).where("group_type = 'consumer'")
    return classic.unionByName(consumer.join(epochs, [*_EPOCH], "left_semi"))


def _derive_rebalances(
    tables: Tables, first: date, last: date, lookback_days: int, states: _States, recreated: Collection[int]
) -> DataFrame:
    """Derive rebalances, and return the names of topics, as `rebalances.names_by_group` does.

    Groups without a generation or record within the dates have no rebalance, and are skipped.
    """
    since = first - timedelta(days=lookback_days)

    def read(table: Table, since: date | None) -> DataFrame:
        return with_ascending_offsets(tables.read(table, since=since, until=last), recreated)

    records = read(schemas.CONSUMER_GROUP_RECORDS, states.since)
    generations = rebalances.recent_generations(read(schemas.GROUP_GENERATIONS, since), first)

    changed_states = rebalances.only_of_groups(states.rows, records)

    def read_changed(table: Table) -> DataFrame:
        # Events and rewinds after midnight can belong to the last rebalance before it.
        rows = with_ascending_offsets(tables.read(table, since=first - _DAY, until=last + _DAY), recreated)
        return rebalances.only_of_groups(rows, generations, records)

    histories = rebalances.histories(
        generations,
        read(schemas.GROUP_MEMBERS, since),
        records,
        read_changed(schemas.CLIENT_EVENTS),
        read_changed(schemas.OFFSET_COMMITS),
        changed_states,
    )
    names = rebalances.names_by_group(records, _names(tables, records, since), changed_states)
    # A healthy group can have its last generation before `since`.
    begins = tables.read(schemas.GROUP_GENERATIONS, until=since).isEmpty()
    rows = rebalances.rebalances(histories, names, begins=begins)
    _replace(tables, schemas.REBALANCES, rows, first, last)
    return names


def _derive_states(
    tables: Tables, first: date, last: date, states: _States, names: DataFrame, recreated: Collection[int]
) -> None:
    """Derive the states of groups, and the epochs of share and streams groups."""
    records, share, streams = (
        with_ascending_offsets(tables.read(table, since=states.since, until=last), recreated)
        for table in (
            schemas.CONSUMER_GROUP_RECORDS,
            schemas.SHARE_GROUP_RECORDS,
            schemas.STREAMS_GROUP_RECORDS,
        )
    )
    # Most clusters have no share and streams groups.
    has_other_records = not (share.isEmpty() and streams.isEmpty())
    has_others = has_other_records or not states.rows.where("group_type <> 'consumer'").isEmpty()
    days = _days(first, last)
    after = group_states.consumer_states(states.rows, records, names, days)
    if has_others:
        after = after.union(group_states.other_states(states.rows, share, streams, days))
    _replace(tables, schemas.GROUP_STATES, after, first, last)
    if has_other_records:
        epochs = group_epochs.group_epochs(share, streams, states.rows)
        _replace(tables, schemas.GROUP_EPOCHS, epochs, first, last)


def _derive_lag(tables: Tables, day: date, lookback_days: int, recreated: Collection[int]) -> None:
    """Derive one day's lag.

    The last commits before the day are included, because a group that no longer commits still has lag: those
    of the newest earlier date with lag and of later dates, or of `lookback_days` if none of these has lag.
    """
    if tables.read(schemas.END_OFFSETS, since=day, until=day).isEmpty():
        # The day after the last one: there is nothing to compare the commits with.
        if not tables.read(schemas.LAG, since=day, until=day).isEmpty():
            tables.replace(schemas.LAG, tables.read(schemas.LAG, since=date.max), [day])
        return
    yesterday, first = day - _DAY, day - timedelta(days=lookback_days)
    earlier = tables.read(schemas.LAG, since=first, until=yesterday)
    since = earlier.agg(F.max("date").alias("date")).collect()[0].date or first

    def read_commits(since: date, until: date) -> DataFrame:
        rows = tables.read(schemas.OFFSET_COMMITS, since=since, until=until)
        return with_ascending_offsets(rows, recreated)

    before = lag.last_commits(
        tables.read(schemas.LAG, since=since, until=since), read_commits(since, yesterday)
    )
    commits = read_commits(day, day).select(*before.columns)
    ends = tables.read(schemas.END_OFFSETS, since=first, until=day)
    _replace(tables, schemas.LAG, lag.lag(commits.union(before), ends, day), day, day)


def _derive_churn(tables: Tables, first: date, last: date, lookback_days: int, states: _States) -> None:
    records = tables.read(schemas.CONSUMER_GROUP_RECORDS, since=states.since, until=last)
    classic = tables.read(schemas.GROUP_MEMBERS, since=first - timedelta(days=lookback_days), until=last)
    clients = classic.select("group_id", "member_id", "client_id").unionByName(
        records.where("record_kind = 'consumer_member' and not tombstone").select(
            "group_id", "consumer_member.member_id", "consumer_member.client_id"
        )
    )
    rows = churn.churn(
        tables.read(schemas.REBALANCES, since=first - _DAY, until=last),
        tables.read(schemas.CLIENT_EVENTS, since=first, until=last),
        clients.unionByName(group_states.client_ids(states.rows)),
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
