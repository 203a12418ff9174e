"""Queries of lag."""

from collections.abc import Sequence
from math import ceil

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._report.columns import micros, only_row, time_of
from groupwright.pipeline._report.facts import Lag, LagSeries, Limits

_LARGEST = 6


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


def peak_lag(lag: DataFrame | None) -> int | None:
    """Return the largest lag of a group at one time; None without samples."""
    if lag is None:
        return None
    by_time = lag.groupBy("group_id", "time").agg(F.sum("lag_messages").alias("messages"))
    peak: int | None = only_row(by_time.agg(F.max("messages").alias("peak")))["peak"]
    return peak
