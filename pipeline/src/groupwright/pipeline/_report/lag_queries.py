"""Queries of lag."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.window import Window

from groupwright.pipeline._report.columns import micros, only_row, time_of
from groupwright.pipeline._report.facts import Lag, LagSeries, Limits
from groupwright.pipeline._report.group_facts import LagAfter, LagSample

_LARGEST = 6
_MAX_AGE = 3600.0
"""Maximum age in seconds of the last sample before a rebalance, to be compared with those after it."""


def query_lag(lag: DataFrame | None, groups: Sequence[str], limits: Limits) -> Lag | None:
    """Return the lag of the groups with the most, and of given ones; None without samples.

    Args:
        lag: The table `lag`.
        groups: Groups to include.
        limits: Limits of the page's size.
    """
    if lag is None:
        return None
    by_time = lag.groupBy("group_id", micros("time").alias("at")).agg(
        F.sum("lag_messages").alias("messages"),
        F.max(F.when(F.col("lag_messages") > 0, F.col("lag_seconds"))).alias("seconds"),
        F.bool_or((F.col("lag_messages") > 0) & F.col("lag_seconds").isNull()).alias("is_partial"),
    )
    bounds = only_row(
        by_time.agg(
            F.min("at").alias("since"),
            F.max("at").alias("until"),
            F.count_distinct("group_id").alias("groups"),
            F.count_distinct("at").alias("samples"),
        )
    )
    if bounds["since"] is None:
        return None
    since, until = bounds["since"], bounds["until"]
    width = max(1, ceil((until - since + 1) / min(limits.points, bounds["samples"])))
    bucket = F.floor((F.col("at") - since) / width).alias("bucket")
    buckets = by_time.groupBy("group_id", bucket).agg(
        F.max("messages").alias("messages"),
        F.max("seconds").alias("seconds"),
        F.max("is_partial").alias("is_partial"),
    )
    peaks = by_time.groupBy("group_id").agg(F.max("messages").alias("peak"))
    largest = peaks.orderBy(F.desc("peak"), "group_id").limit(_LARGEST)
    wanted = largest.union(peaks.where(F.col("group_id").isin(list(groups)))).select("group_id").distinct()
    rows = buckets.join(F.broadcast(wanted), "group_id").collect()
    points = (until - since) // width + 1
    series = []
    for group in sorted({row["group_id"] for row in rows}):
        mine = {row["bucket"]: row for row in rows if row["group_id"] == group}
        seconds = [row["seconds"] for row in mine.values() if row["seconds"] is not None]
        messages = [mine[place]["messages"] if place in mine else None for place in range(points)]
        is_partial = any(row["is_partial"] for row in mine.values())
        series.append(LagSeries(group, messages, max(seconds, default=None), is_partial))
    series.sort(key=lambda one: (-one.peak, one.group))
    return Lag(time_of(since), time_of(until), series, bounds["groups"], min(_LARGEST, len(series)))


@dataclass(frozen=True, slots=True)
class Span:
    """A rebalance, for the lag after it. Times are microseconds since 1970.

    Attributes:
        group: The group.
        started: Its start.
        ended: Its end.
        until: Start of the group's next rebalance; None for the last one.
    """

    group: str
    started: int
    ended: int
    until: int | None


def query_lag_after(
    lag: DataFrame | None, spans: Sequence[Span], limits: Limits
) -> dict[tuple[str, int], LagAfter]:
    """Return the lag after rebalances, by group and start; unknown ones are missing.

    A generation would not do: a group that was deleted and created again has the same ones.

    Args:
        lag: The table `lag`.
        spans: The rebalances.
        limits: Limits of the page's size.
    """
    if lag is None or not spans:
        return {}
    schema = "group_id string, started long, until long"
    wanted = [(each.group, each.started, each.until) for each in spans]
    by_time = (
        lag.where(F.col("group_id").isin(sorted({each.group for each in spans})))
        .groupBy("group_id", micros("time").alias("at"))
        .agg(F.sum("lag_messages").alias("messages"))
        .where(F.col("messages").isNotNull())
    )
    is_before = F.col("at") <= F.col("started")
    nearest = Window.partitionBy("group_id", "started", is_before).orderBy(
        F.abs(F.col("at") - F.col("started"))
    )
    rows = (
        by_time.join(F.broadcast(lag.sparkSession.createDataFrame(wanted, schema)), "group_id")
        .where(F.col("until").isNull() | (F.col("at") < F.col("until")))
        .where(F.col("started") - F.col("at") <= int(_MAX_AGE * 1e6))
        .withColumn("rank", F.row_number().over(nearest))
        .where(F.col("rank") <= F.when(is_before, 1).otherwise(limits.samples))
        .orderBy("at")
        .collect()
    )
    samples: dict[tuple[str, int], list[LagSample]] = defaultdict(list)
    for row in rows:
        samples[row["group_id"], row["started"]].append((time_of(row["at"]), row["messages"]))
    found = {
        (each.group, each.started): LagAfter.of(
            samples[each.group, each.started], time_of(each.started), time_of(each.ended)
        )
        for each in spans
    }
    return {key: after for key, after in found.items() if after}


def peak_lag(lag: DataFrame | None) -> int | None:
    """Return the largest lag of a group at one time; None without samples."""
    if lag is None:
        return None
    by_time = lag.groupBy("group_id", "time").agg(F.sum("lag_messages").alias("messages"))
    peak: int | None = only_row(by_time.agg(F.max("messages").alias("peak")))["peak"]
    return peak
