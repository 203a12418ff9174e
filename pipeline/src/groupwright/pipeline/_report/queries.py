"""Queries for the page's data. Every query aggregates on Spark before it collects rows."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._report.columns import micros, only_row, time_of
from groupwright.pipeline._report.detail_queries import query_details
from groupwright.pipeline._report.facts import (
    Alternative,
    Churn,
    Comparison,
    DeployStudy,
    Facts,
    FlappingClient,
    GroupChange,
    IndexRow,
    Limits,
    Totals,
)
from groupwright.pipeline._report.group_facts import Detail
from groupwright.pipeline._report.index_queries import query_index, sums
from groupwright.pipeline._report.lag_queries import peak_lag, query_lag
from groupwright.pipeline._report.ranges import Compared, TimeRange
from groupwright.pipeline._report.rebalance_events import rebalance_events, with_epochs
from groupwright.pipeline._side_by_side import side_by_side
from groupwright.pipeline._what_if.replay import ACTUAL
from groupwright.pipeline._what_if.summary import cost, total

_FLAPPING_CLIENTS = 8
_INTERVALS = (60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400)
"""Lengths of the intervals of the churn chart, in seconds."""
_NUMBERS = (
    "rebalances",
    "stopped",
    "stopped_actual",
    "partition_seconds",
    "partition_seconds_actual",
    "moved",
    "moved_actual",
    "min_moves",
    "rounds",
    "errors",
)


def query_facts(
    tables: Mapping[str, DataFrame],
    limits: Limits,
    groups: Sequence[str],
    shown: TimeRange,
    compared: Compared | None,
    deploys: DeployStudy | None,
    what_if: Callable[[], DataFrame] | None,
) -> Facts:
    """Return the page's data.

    Args:
        tables: Tables by name; all are optional.
        limits: Limits of the page's size.
        groups: Groups with a section of their own; by default those with the most rebalances.
        shown: The range of time to show.
        compared: Two ranges to compare.
        deploys: Simulated deploys.
        what_if: Returns the table `what_if`, if it is not among the tables.
    """
    if not tables:
        return Facts(None, [], 0, [], [*groups], None, None, [], None, deploys)
    spark = next(iter(tables.values())).sparkSession
    unrestricted, tables = tables, shown.restrict(tables)
    rebalances = tables.get("rebalances")
    events = None if rebalances is None else rebalance_events(rebalances).persist()
    with side_by_side(spark) as start:
        alternatives = start(lambda: _alternatives(what_if() if what_if else tables.get("what_if")))
        comparison = start(partial(_comparison, unrestricted, compared, limits))
        whole = start(partial(_whole, events, tables.get("churn"), shown, limits))
        index, groups_in_all, details = _of_groups(tables, events, groups, limits)
        sections = [detail.timeline.group for detail in details]
        lag = query_lag(tables.get("lag"), sections, limits)
    totals, churn = whole.result()
    if events is not None:
        events.unpersist()
    return Facts(
        totals,
        index,
        groups_in_all,
        details,
        [group for group in groups if group not in sections],
        lag,
        churn,
        alternatives.result(),
        comparison.result(),
        deploys,
    )


def _of_groups(
    tables: Mapping[str, DataFrame], events: DataFrame | None, groups: Sequence[str], limits: Limits
) -> tuple[list[IndexRow], int, list[Detail]]:
    """Return the index, the number of all groups, and the sections of single groups."""
    if events is None:
        return [], 0, []
    all_events = with_epochs(events, tables)
    index, groups_in_all = query_index(tables, all_events, limits)
    busiest = sorted(index, key=lambda one: (-one.rebalances, one.group))[: limits.details]
    wanted = groups or [one.group for one in busiest if one.rebalances]
    return index, groups_in_all, query_details(tables, all_events, wanted, limits)


def _whole(
    events: DataFrame | None, churn: DataFrame | None, shown: TimeRange, limits: Limits
) -> tuple[Totals | None, Churn | None]:
    """Return the totals and the churn of all groups."""
    if events is None:
        return None, None
    totals = _totals(events, shown)
    return totals, None if totals is None else _churn(events, churn, totals, limits)


def _totals(events: DataFrame, shown: TimeRange) -> Totals | None:
    """Return the totals; None without rebalances, unless the range has both ends."""
    row = only_row(
        events.agg(
            *sums(),
            F.count_distinct("group_id").alias("groups"),
            micros(F.min("completed")).alias("since"),
            micros(F.max("completed")).alias("until"),
        )
    )
    since, until = shown.since, shown.until
    if row["since"] is not None:
        since, until = since or time_of(row["since"]), until or time_of(row["until"])
    if since is None or until is None or (row["since"] is None and not (shown.since and shown.until)):
        return None
    return Totals(
        row["rebalances"],
        row["handovers"] or 0,
        row["groups"],
        row["moved"],
        row["fewest"],
        row["counted"],
        row["seconds"],
        row["longest"],
        row["timed"],
        row["reprocessed"],
        since,
        until,
    )


def _churn(events: DataFrame, churn: DataFrame | None, totals: Totals, limits: Limits) -> Churn | None:
    if not totals.rebalances:
        return None
    span = max(1.0, (totals.until - totals.since).total_seconds())
    length = next((each for each in _INTERVALS if span / each < limits.points), 0)
    length = length or ceil(span / limits.points / 86400) * 86400
    start = int(totals.since.timestamp()) // length * length
    intervals = int(totals.until.timestamp() - start) // length + 1
    interval = F.floor((F.unix_seconds("completed") - start) / length).alias("interval")
    busiest = (
        events.groupBy("group_id")
        .agg(F.count("*").alias("total"))
        .orderBy(F.desc("total"), "group_id")
        .limit(limits.groups)
    )
    rows = (
        events.join(F.broadcast(busiest), "group_id")
        .groupBy("group_id", "total", interval)
        .agg(F.count("*").alias("rebalances"), F.max("storm").alias("storm"))
        .collect()
    )
    order = sorted({(-row["total"], row["group_id"]) for row in rows})
    cells = {(row["group_id"], row["interval"]): row["rebalances"] for row in rows}
    return Churn(
        time_of(start * 1_000_000),
        length,
        {group: [cells.get((group, n), 0) for n in range(intervals)] for _, group in order},
        {
            group: frozenset(row["interval"] for row in rows if row["group_id"] == group and row["storm"])
            for _, group in order
        },
        totals.groups,
        [] if churn is None else _flapping_clients(churn),
    )


def _flapping_clients(churn: DataFrame) -> list[FlappingClient]:
    rows = (
        churn.where(F.col("member_id").isNotNull() & F.col("flapping"))
        .groupBy("group_id", F.coalesce("client_id", "member_id").alias("client"))
        .agg(F.sum("rebalances").alias("times"))
        .orderBy(F.desc("times"), "group_id", "client")
        .limit(_FLAPPING_CLIENTS)
        .collect()
    )
    return [FlappingClient(row["group_id"], row["client"], row["times"]) for row in rows]


def _alternatives(what_if: DataFrame | None) -> list[Alternative]:
    """Return the assignors: the recorded one first, then those that cost least."""
    if what_if is None:
        return []

    def mean(name: str) -> Column:
        weight = F.when(F.col(name).isNotNull(), F.col("rebalances"))
        return (F.sum(F.col(name) * weight) / F.sum(weight)).alias(name)

    rows = (
        what_if.groupBy("assignor")
        .agg(
            *(total(name) for name in _NUMBERS),
            *(
                mean(name)
                for name in ("imbalance_mean", "topic_spread_mean", "rack_mismatches_mean", "peak_load_mean")
            ),
            F.max("imbalance_max").alias("imbalance_max"),
            F.min("error").alias("error"),
        )
        .collect()
    )
    found = [
        Alternative(
            row["assignor"],
            row["assignor"] == ACTUAL,
            {name: row[name] for name in _NUMBERS},
            row["imbalance_mean"],
            row["imbalance_max"],
            row["peak_load_mean"],
            row["topic_spread_mean"],
            row["rack_mismatches_mean"],
            row["error"],
        )
        for row in rows
    ]
    return sorted(
        found,
        key=lambda one: (not one.actual, bool(one.numbers["errors"]), *cost(one.numbers), one.assignor),
    )


def _comparison(
    tables: Mapping[str, DataFrame],
    compared: Compared | None,
    limits: Limits,
) -> Comparison | None:
    """Return both ranges; None if one has no rebalances and no end."""
    if compared is None or "rebalances" not in tables:
        return None
    totals, lags, of_groups = [], [], []
    for each in (compared.before, compared.after):
        restricted = each.restrict(tables)
        events = rebalance_events(restricted["rebalances"])
        totals.append(_totals(events, each))
        lags.append(peak_lag(restricted.get("lag")))
        of_groups.append({row["group_id"]: row for row in events.groupBy("group_id").agg(*sums()).collect()})
    before, after = totals
    if before is None or after is None:
        return None
    first, second = of_groups

    def change(group: str) -> GroupChange:
        rows = [side.get(group) for side in of_groups]
        counts, moved, lengths = (
            tuple(0 if row is None else row[name] for row in rows)
            for name in ("rebalances", "moved", "seconds")
        )
        return GroupChange(group, (counts[0], counts[1]), (moved[0], moved[1]), (lengths[0], lengths[1]))

    hours = [max(each.hours, 1e-9) for each in (before, after)]
    changes = [change(group) for group in sorted({*first, *second})]
    changes.sort(key=lambda one: -abs(one.rebalances[1] / hours[1] - one.rebalances[0] / hours[0]))
    return Comparison(before, after, (lags[0], lags[1]), changes[: limits.groups], compared.deploy)
