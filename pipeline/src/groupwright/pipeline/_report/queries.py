"""Queries for the page's data. Every query aggregates on Spark before it collects rows."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.window import Window

from groupwright.pipeline._report.facts import (
    Alternative,
    Churn,
    Facts,
    FlappingClient,
    Lag,
    LagSeries,
    Limits,
    MemberEvent,
    Offender,
    Ownership,
    Rebalance,
    Timeline,
    Totals,
)
from groupwright.pipeline._what_if.replay import ACTUAL

_LAG_SERIES = 6
_FLAPPING_CLIENTS = 8
_HOUR = 3600
_UNKNOWN = "(unknown)"


def query_facts(tables: Mapping[str, DataFrame], limits: Limits, group: str | None) -> Facts:
    """Return the page's data.

    Args:
        tables: Tables by name; all are optional.
        limits: Limits of the page's size.
        group: The group of the timeline and the ownership map; by default the one with the most rebalances.
    """
    totals = _totals(tables.get("rebalances"))
    offenders = _offenders(tables["rebalances"], limits) if totals else []
    focus = group or _busiest(tables)
    timeline = _timeline(tables, focus, limits) if totals and focus else None
    ownership = _ownership(tables.get("group_members"), focus, limits) if focus else None
    return Facts(
        totals,
        offenders,
        timeline,
        ownership,
        _lag(tables.get("lag"), limits),
        _churn(tables.get("churn"), limits),
        _alternatives(tables.get("what_if")),
    )


def _totals(rebalances: DataFrame | None) -> Totals | None:
    if rebalances is None:
        return None
    row = _first(
        rebalances.agg(
            F.count("*").alias("rebalances"),
            F.count_distinct("group_id").alias("groups"),
            F.sum("moved").alias("moved"),
            F.sum("fewest_moves").alias("fewest"),
            F.sum("duration_seconds").alias("seconds"),
            F.count("duration_seconds").alias("timed"),
            _micros(F.min("completed")).alias("since"),
            _micros(F.max("completed")).alias("until"),
        )
    )
    if not row["rebalances"] or row["since"] is None:
        return None
    return Totals(
        row["rebalances"],
        row["groups"],
        row["moved"] or 0,
        row["fewest"] or 0,
        row["seconds"],
        row["timed"],
        _time(row["since"]),
        _time(row["until"]),
    )


def _offenders(rebalances: DataFrame, limits: Limits) -> list[Offender]:
    rows = (
        rebalances.groupBy("group_id")
        .agg(
            F.count("*").alias("rebalances"),
            F.coalesce(F.sum("moved"), F.lit(0)).alias("moved"),
            F.coalesce(F.sum("fewest_moves"), F.lit(0)).alias("fewest"),
            F.sum("duration_seconds").alias("seconds"),
            F.max("duration_seconds").alias("longest"),
            F.coalesce(F.sum("messages_reprocessed"), F.lit(0)).alias("reprocessed"),
            F.mode("trigger", deterministic=True).alias("trigger"),
        )
        .orderBy(F.desc(F.col("moved") - F.col("fewest")), F.desc("rebalances"), "group_id")
        .limit(limits.groups)
        .collect()
    )
    return [
        Offender(
            row["group_id"],
            row["rebalances"],
            row["moved"],
            row["fewest"],
            row["seconds"],
            row["longest"],
            row["reprocessed"],
            row["trigger"] or "unknown",
        )
        for row in rows
    ]


def _busiest(tables: Mapping[str, DataFrame]) -> str | None:
    """Return the group with the most rebalances, or with the most generations if there are no rebalances."""
    for name in ("rebalances", "group_members"):
        if name in tables:
            counted = tables[name].groupBy("group_id").agg(F.count_distinct("generation").alias("count"))
            row = counted.orderBy(F.desc("count"), "group_id").first()
            if row is not None:
                return str(row["group_id"])
    return None


def _timeline(tables: Mapping[str, DataFrame], group: str, limits: Limits) -> Timeline | None:
    of_group = tables["rebalances"].where(F.col("group_id") == group)
    total = of_group.count()
    rows = (
        of_group.withColumn("at", _micros("completed"))
        .orderBy(F.desc("at"))
        .limit(limits.rebalances)
        .collect()
    )
    if not rows:
        return None
    events = _events(tables.get("client_events"), group, [row["generation"] for row in rows], limits)
    return Timeline(
        group,
        total,
        [
            Rebalance(
                row["generation"],
                _time(row["at"]),
                row["trigger"] or "unknown",
                row["duration_seconds"],
                row["moved"] or 0,
                row["joined"] or (),
                row["left"] or (),
                events.get(row["generation"], ()),
            )
            for row in reversed(rows)
        ],
    )


def _events(
    events: DataFrame | None, group: str, generations: list[int], limits: Limits
) -> dict[int, list[MemberEvent]]:
    if events is None:
        return {}
    of_generations = events.where((F.col("group_id") == group) & F.col("generation").isin(generations))
    first = Window.partitionBy("generation").orderBy("started_at", "member_id", "id")
    rows = (
        of_generations.withColumn("rank", F.row_number().over(first))
        .where(F.col("rank") <= 4 * limits.lanes)
        .withColumn("start", _micros("started_at"))
        .withColumn("end", _micros("ended_at"))
        .collect()
    )
    by_generation: dict[int, list[MemberEvent]] = {}
    for row in rows:
        phases = {
            name: max(0.0, seconds) for name, seconds in (row["phases"] or {}).items() if seconds is not None
        }
        if row["end"] is None and row["start"] is None:
            continue
        start = row["start"] if row["start"] is not None else row["end"] - int(sum(phases.values()) * 1e6)
        by_generation.setdefault(row["generation"], []).append(
            MemberEvent(
                row["member_id"] or _UNKNOWN,
                row["client_id"] or row["member_id"] or _UNKNOWN,
                _time(start),
                phases,
                row["outcome"] or "completed",
                row["error"],
            )
        )
    return by_generation


def _ownership(members: DataFrame | None, group: str, limits: Limits) -> Ownership | None:
    if members is None:
        return None
    of_group = members.where(F.col("group_id") == group)
    recorded = of_group.groupBy("generation").agg(
        F.max(F.struct("log_partition", "log_offset")).alias("last"), _micros(F.max("log_time")).alias("at")
    )
    total = recorded.count()
    kept = recorded.orderBy(F.desc("generation")).limit(limits.generations)
    size = F.aggregate("assigned", F.lit(0), lambda total, topic: total + F.size(topic["partitions"]))
    rows = (
        of_group.join(F.broadcast(kept), "generation")
        .where(F.struct("log_partition", "log_offset") == F.col("last"))
        .select("generation", "at", "member_id", "client_id", F.coalesce(size, F.lit(0)).alias("count"))
        .collect()
    )
    if not rows:
        return None
    times = {row["generation"]: row["at"] for row in rows}
    numbers = sorted(times)
    seen: dict[str, list[Any]] = {}
    for row in rows:
        seen.setdefault(row["member_id"] or _UNKNOWN, []).append(row)
    most_present = sorted(seen, key=lambda id_: (-len(seen[id_]), id_))[: limits.lanes]
    shown = sorted(most_present, key=lambda id_: (min(row["generation"] for row in seen[id_]), id_))
    counts = {id_: {row["generation"]: row["count"] for row in seen[id_]} for id_ in shown}
    return Ownership(
        group,
        [(number, _time(times[number])) for number in numbers],
        total,
        [(id_, seen[id_][0]["client_id"] or id_) for id_ in shown],
        [[counts[id_].get(number) for number in numbers] for id_ in shown],
        sorted(row["count"] for row in rows if row["generation"] == numbers[-1]),
        len(seen) - len(shown),
    )


def _lag(lag: DataFrame | None, limits: Limits) -> Lag | None:
    if lag is None:
        return None
    bounds = _first(
        lag.agg(
            _micros(F.min("time")).alias("since"),
            _micros(F.max("time")).alias("until"),
            F.count_distinct("group_id").alias("groups"),
        )
    )
    if bounds["since"] is None:
        return None
    width = max(1, ceil((bounds["until"] - bounds["since"] + 1) / limits.points))
    by_time = lag.groupBy("group_id", _micros("time").alias("at")).agg(
        F.sum("lag_messages").alias("messages"), F.max("lag_seconds").alias("seconds")
    )
    bucket = F.floor((F.col("at") - bounds["since"]) / width).alias("bucket")
    buckets = by_time.groupBy("group_id", bucket).agg(
        F.max("messages").alias("messages"), F.max("seconds").alias("seconds")
    )
    worst = (
        by_time.groupBy("group_id")
        .agg(F.max("messages").alias("peak"))
        .orderBy(F.desc("peak"), "group_id")
        .limit(_LAG_SERIES)
    )
    rows = buckets.join(F.broadcast(worst), "group_id").collect()
    points = (bounds["until"] - bounds["since"]) // width + 1
    series = []
    for group in sorted({row["group_id"] for row in rows}):
        mine = {row["bucket"]: row for row in rows if row["group_id"] == group}
        seconds = [row["seconds"] for row in mine.values() if row["seconds"] is not None]
        messages = [mine[place]["messages"] if place in mine else None for place in range(points)]
        series.append(LagSeries(group, messages, max(seconds, default=None)))
    series.sort(key=lambda one: (-one.peak, one.group))
    return Lag(_time(bounds["since"]), _time(bounds["until"]), series, bounds["groups"])


def _churn(churn: DataFrame | None, limits: Limits) -> Churn | None:
    if churn is None:
        return None
    groups = churn.where(F.col("member_id").isNull()).withColumn("at", F.unix_seconds("hour"))
    bounds = _first(
        groups.agg(
            F.min("at").alias("since"),
            F.max("at").alias("until"),
            F.count_distinct("group_id").alias("groups"),
        )
    )
    if bounds["since"] is None:
        return None
    hours = ceil(((bounds["until"] - bounds["since"]) // _HOUR + 1) / limits.points)
    intervals = (bounds["until"] - bounds["since"]) // (_HOUR * hours) + 1
    busiest = (
        groups.groupBy("group_id")
        .agg(F.sum("rebalances").alias("total"))
        .orderBy(F.desc("total"), "group_id")
        .limit(limits.groups)
    )
    rows = (
        groups.join(F.broadcast(busiest), "group_id")
        .groupBy(
            "group_id", "total", F.floor((F.col("at") - bounds["since"]) / (_HOUR * hours)).alias("interval")
        )
        .agg(F.sum("rebalances").alias("rebalances"), F.max("storm").alias("storm"))
        .collect()
    )
    order = sorted({(-row["total"], row["group_id"]) for row in rows})
    cells = {(row["group_id"], row["interval"]): row for row in rows}
    return Churn(
        datetime.fromtimestamp(bounds["since"], UTC),
        hours,
        {
            group: [cells[group, n]["rebalances"] if (group, n) in cells else 0 for n in range(intervals)]
            for _, group in order
        },
        {
            group: frozenset(row["interval"] for row in rows if row["group_id"] == group and row["storm"])
            for _, group in order
        },
        bounds["groups"],
        _flapping_clients(churn),
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
    if what_if is None:
        return []

    def mean(name: str) -> Any:
        weight = F.when(F.col(name).isNotNull(), F.col("rebalances"))
        return (F.sum(F.col(name) * weight) / F.sum(weight)).alias(name)

    rows = (
        what_if.groupBy("assignor")
        .agg(
            *(
                F.sum(name).alias(name)
                for name in ("rebalances", "moved", "fewest_moves", "moved_actual", "rounds", "errors")
            ),
            *(mean(name) for name in ("imbalance_mean", "topic_spread_mean", "far_mean")),
            F.max("imbalance_max").alias("imbalance_max"),
            F.min("error").alias("error"),
        )
        .collect()
    )
    found = [
        Alternative(
            row["assignor"],
            row["assignor"] == ACTUAL,
            row["rebalances"],
            row["moved"] or 0,
            row["fewest_moves"] or 0,
            row["moved_actual"] or 0,
            row["imbalance_mean"],
            row["imbalance_max"],
            row["topic_spread_mean"],
            row["far_mean"],
            row["rounds"] or 0,
            row["errors"] or 0,
            row["error"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (not one.actual, one.errors > 0, one.moved, one.assignor))


def _first(rows: DataFrame) -> Any:
    return rows.collect()[0]


def _micros(column: Any) -> Any:
    return F.unix_micros(column)


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
