"""Queries for the index of all groups: those with rebalances or epochs, and those that have ended."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._report.columns import micros, time_of
from groupwright.pipeline._report.facts import GroupEnd, IndexRow, Limits


def sums() -> list[Column]:
    """Return totals over the rebalances for which each is known; null if it is known for none."""
    is_counted = F.col("moved").isNotNull() & F.col("min_moves").isNotNull()
    return [
        F.count("*").alias("rebalances"),
        F.sum("handovers").alias("handovers"),
        F.sum(F.when(is_counted, F.col("moved"))).alias("moved"),
        F.sum(F.when(is_counted, F.col("min_moves"))).alias("fewest"),
        F.count_if(is_counted).alias("counted"),
        F.sum("duration_seconds").alias("seconds"),
        F.max("duration_seconds").alias("longest"),
        F.count("duration_seconds").alias("timed"),
        F.sum("messages_reprocessed").alias("reprocessed"),
    ]


def query_index(
    tables: Mapping[str, DataFrame], events: DataFrame, limits: Limits
) -> tuple[list[IndexRow], int]:
    """Return the groups, those with the most avoidable moves first, and the number of all groups.

    Args:
        tables: Tables by name; all are optional.
        events: The result of `with_epochs`.
        limits: Limits of the page's size.
    """
    groups = events.select("group_id")
    if "group_generations" in tables:
        groups = groups.union(tables["group_generations"].select("group_id"))
    shown = _shown(events, groups.distinct(), limits)
    rows = shown.collect()

    def of_shown(table: DataFrame) -> DataFrame:
        return table.join(F.broadcast(shown.select("group_id")), "group_id", "left_semi")

    causes = _causes(of_shown(events))
    lag = _last_lag(of_shown(tables["lag"])) if "lag" in tables else {}
    generations = tables.get("group_generations")
    recorded = {} if generations is None else _last_records(of_shown(generations))
    return [_row(row, causes, lag, recorded.get(row["group_id"])) for row in rows], groups.distinct().count()


def _shown(events: DataFrame, groups: DataFrame, limits: Limits) -> DataFrame:
    last = F.struct("completed", "generation")
    of_events = events.groupBy("group_id").agg(
        *sums(),
        F.max_by("group_type", last).alias("group_type"),
        F.max_by("protocol", last).alias("protocol"),
        F.max_by("members_after", last).alias("members"),
        micros(F.max("completed")).alias("last"),
    )
    order = (F.desc_nulls_last(F.col("moved") - F.col("fewest")), F.desc_nulls_last("rebalances"), "group_id")
    return groups.join(of_events, "group_id", "left").orderBy(*order).limit(limits.index)


def _causes(events: DataFrame) -> Mapping[str, Mapping[str, int]]:
    """Return the number of rebalances by group and cause, the most frequent first."""
    causes: dict[str, dict[str, int]] = defaultdict(dict)
    for row in (
        events.groupBy("group_id", F.coalesce("cause", F.lit("unknown")).alias("cause"))
        .agg(F.count("*").alias("times"))
        .orderBy(F.desc("times"), "cause")
        .collect()
    ):
        causes[row["group_id"]][row["cause"]] = row["times"]
    return causes


def _last_lag(lag: DataFrame) -> dict[str, int]:
    """Return the lag of each group at its last sample."""
    by_time = lag.groupBy("group_id", "time").agg(F.sum("lag_messages").alias("messages"))
    rows = by_time.groupBy("group_id").agg(F.max_by("messages", "time").alias("messages")).collect()
    return {row["group_id"]: row["messages"] for row in rows}


@dataclass(frozen=True, slots=True)
class _LastRecord:
    """The last record of a group in `group_generations`."""

    group_type: str | None
    members: int | None
    end: GroupEnd | None


def _last_records(generations: DataFrame) -> dict[str, _LastRecord]:
    at = F.struct("log_time", "log_offset")
    is_alive = ~F.col("tombstone")
    rows = (
        generations.groupBy("group_id")
        .agg(
            *(F.max_by(name, at).alias(name) for name in ("tombstone", "group_type", "member_count")),
            micros(F.max("log_time")).alias("last"),
            micros(F.max(F.when(is_alive, F.col("log_time")))).alias("before"),
        )
        .collect()
    )
    return {row["group_id"]: _LastRecord(row["group_type"], row["member_count"], _end(row)) for row in rows}


def _end(row: Any) -> GroupEnd | None:
    if not row["tombstone"]:
        return None
    idle = None if row["before"] is None else timedelta(microseconds=row["last"] - row["before"])
    return GroupEnd(time_of(row["last"]), idle)


def _row(
    row: Any, causes: Mapping[str, Mapping[str, int]], lag: Mapping[str, int], recorded: _LastRecord | None
) -> IndexRow:
    group = row["group_id"]
    members = row["members"]
    if members is None and recorded:
        members = recorded.members
    return IndexRow(
        group,
        row["group_type"] or (recorded.group_type if recorded else None),
        row["protocol"],
        members,
        recorded.end if recorded else None,
        row["rebalances"] or 0,
        row["handovers"] or 0,
        row["moved"],
        row["fewest"],
        row["seconds"],
        row["longest"],
        row["reprocessed"],
        causes.get(group, {}),
        None if row["last"] is None else time_of(row["last"]),
        lag.get(group),
    )
