"""Queries for the sections of single groups. All groups are queried at once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.window import Window

from groupwright.pipeline._report.columns import micros, time_of
from groupwright.pipeline._report.facts import Limits
from groupwright.pipeline._report.group_facts import (
    Detail,
    LagAfter,
    Loss,
    MemberEvent,
    Ownership,
    Rebalance,
    Timeline,
    has_moves,
)
from groupwright.pipeline._report.lag_queries import Span, query_lag_after
from groupwright.pipeline._report.rebalance_events import with_epoch_members

_UNKNOWN = "(unknown)"


def query_details(
    tables: Mapping[str, DataFrame], events: DataFrame, groups: Sequence[str], limits: Limits
) -> list[Detail]:
    """Return the sections of groups, in their order; groups without rebalances have none.

    Args:
        tables: Tables by name; all are optional.
        events: The result of `with_epochs`.
        groups: The groups.
        limits: Limits of the page's size.
    """
    of_groups = events.where(F.col("group_id").isin(list(groups)))
    recent = Window.partitionBy("group_id").orderBy(F.desc("completed"), F.desc("generation"))
    by_group: dict[str, list[Any]] = defaultdict(list)
    for row in (
        of_groups.withColumn("rank", F.row_number().over(recent))
        .withColumn("total", F.count("*").over(Window.partitionBy("group_id")))
        .where(F.col("rank") <= limits.rebalances)
        .withColumn("at", micros("completed"))
        .withColumn("start", micros("started"))
        .orderBy("group_id", F.desc("rank"))
        .collect()
    ):
        by_group[row["group_id"]].append(row)
    members = with_epoch_members(tables)
    known = _Members(members, by_group)
    reported = _Reported(tables.get("client_events"), by_group, limits)
    ownership = _ownership(members, list(by_group), limits)
    lag = query_lag_after(tables.get("lag"), _spans(by_group), limits)
    return [
        Detail(
            Timeline(
                group,
                by_group[group][-1]["total"],
                [_rebalance(row, known, reported, lag) for row in by_group[group]],
            ),
            ownership.get(group),
            by_group[group][-1]["members_after"],
            by_group[group][-1]["group_type"],
        )
        for group in groups
        if group in by_group
    ]


def _spans(by_group: Mapping[str, Sequence[Any]]) -> list[Span]:
    return [
        Span(
            row["group_id"],
            _began(row),
            max(row["at"], _began(row) + int((row["duration_seconds"] or 0) * 1e6)),
            _began(after) if after else None,
        )
        for rows in by_group.values()
        for row, after in zip_longest(rows, rows[1:])
    ]


def _began(row: Any) -> int:
    """Return the start of a rebalance in microseconds, or its completion if the start is unknown."""
    began: int = row["at"] if row["start"] is None else row["start"]
    return began


def _rebalance(
    row: Any, known: "_Members", reported: "_Reported", lag: Mapping[tuple[str, int], LagAfter]
) -> Rebalance:
    group, left = row["group_id"], row["left"] or ()
    joined = row["joined"] or ()
    return Rebalance(
        row["generation"],
        time_of(row["at"]),
        None if row["start"] is None else time_of(row["start"]),
        row["cause"] or "unknown",
        row["duration_seconds"],
        row["moved"],
        row["min_moves"],
        row["handovers"],
        row["messages_reprocessed"] or 0,
        joined,
        left,
        {id_: known.clients[group, id_] for id_ in (*joined, *left) if (group, id_) in known.clients},
        {id_: known.timeouts[group, id_] for id_ in left if (group, id_) in known.timeouts},
        [loss for loss in reported.losses[group] if 0 <= _loss_delay(loss, row) <= _MAX_LOSS_DELAY],
        group in reported.groups,
        [
            event
            for number in _generations(row)
            for event in reported.events.get((group, number, row["at"]), ())
        ],
        row["error"],
        has_moves(row["group_type"]),
        lag.get((group, _began(row))),
    )


def _generations(row: Any) -> range:
    """Return the generations of a rebalance and its handovers; members report both with the last one."""
    return range(row["generation"], row["generation"] + row["handovers"] + 1)


_MAX_EVENT_DISTANCE = 3_600_000_000
"""Maximum time in microseconds between a rebalance and a member's event of it."""
_MAX_LOSS_DELAY = 3600.0
"""Maximum time in seconds until a removed member reports its loss."""


def _loss_delay(loss: Loss, row: Any) -> float:
    """Return the seconds from the start of a rebalance to the report of a loss."""
    return (loss.reported - time_of(_began(row))).total_seconds()


class _Members:
    """Client ids and timeouts of the members that joined or left, by group and member id."""

    def __init__(self, members: DataFrame | None, by_group: Mapping[str, Sequence[Any]]) -> None:
        self.clients: dict[tuple[str, str], str] = {}
        self.timeouts: dict[tuple[str, str], tuple[float | None, float | None]] = {}
        ids = {
            id_
            for rows in by_group.values()
            for row in rows
            for id_ in (*(row["joined"] or ()), *(row["left"] or ()))
        }
        if members is None or not ids:
            return
        found = members.where(F.col("group_id").isin(list(by_group)) & F.col("member_id").isin(sorted(ids)))
        for row in (
            found.groupBy("group_id", "member_id")
            .agg(
                F.max("client_id").alias("client"),
                F.max("session_timeout_ms").alias("session"),
                F.max("rebalance_timeout_ms").alias("max_poll"),
            )
            .collect()
        ):
            key = row["group_id"], row["member_id"]
            if row["client"]:
                self.clients[key] = row["client"]
            self.timeouts[key] = _seconds(row["session"]), _seconds(row["max_poll"])


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


class _Reported:
    """The members' events of these rebalances, and their reports of lost partitions.

    A group that was deleted and created again has the same generations, so an event is one of the rebalance
    with its generation that is nearest in time.

    Attributes:
        events: The events by group, generation and completion of the rebalance in microseconds.
        losses: The reports of lost partitions by group.
        groups: The groups with events.
    """

    def __init__(
        self, events: DataFrame | None, by_group: Mapping[str, Sequence[Any]], limits: Limits
    ) -> None:
        self.events: dict[tuple[str, int, int], list[MemberEvent]] = defaultdict(list)
        self.losses: dict[str, list[Loss]] = defaultdict(list)
        self.groups: set[str] = set()
        if events is None or not by_group:
            return
        earliest = min(_began(row) for rows in by_group.values() for row in rows)
        is_loss = (F.col("outcome") == "lost") & (micros("ended_at") >= earliest)
        newest = Window.partitionBy("group_id", is_loss).orderBy(F.desc("ended_at"), "id")
        of_groups = events.where(F.col("group_id").isin(list(by_group))).dropDuplicates(["id"])
        first = Window.partitionBy("group_id", "generation", "at").orderBy("started_at", "member_id", "id")
        rows = (
            _with_rebalance(of_groups, by_group)
            .withColumn("rank", F.row_number().over(first))
            .withColumn("age", F.row_number().over(newest))
            .where(
                (F.col("at").isNotNull() & (F.col("rank") <= 4 * limits.lanes))
                | (is_loss & (F.col("age") <= limits.rebalances * limits.lanes))
            )
            .orderBy("end", "id")
            .collect()
        )
        for row in rows:
            self._add(row)
        self.groups |= {row["group_id"] for row in of_groups.select("group_id").distinct().collect()}

    def _add(self, row: Any) -> None:
        phases = {
            name: max(0.0, length) for name, length in (row["phases"] or {}).items() if length is not None
        }
        if row["end"] is None and row["start"] is None:
            return
        start = row["start"] if row["start"] is not None else row["end"] - int(sum(phases.values()) * 1e6)
        client = row["client_id"] or row["member_id"] or _UNKNOWN
        if row["outcome"] == "lost":
            self.losses[row["group_id"]].append(Loss(client, time_of(start), row["reason"]))
        if row["at"] is None:
            return
        self.events[row["group_id"], row["generation"], row["at"]].append(
            MemberEvent(
                row["member_id"] or _UNKNOWN,
                client,
                time_of(start),
                phases,
                row["outcome"] or "completed",
                row["error"],
            )
        )


def _with_rebalance(events: DataFrame, by_group: Mapping[str, Sequence[Any]]) -> DataFrame:
    """Return the events with `start` and `end` in microseconds, and with `at`, their rebalance's completion.

    `at` is null for an event of no shown rebalance.
    """
    shown = [
        (group, number, row["at"])
        for group, rows in by_group.items()
        for row in rows
        for number in _generations(row)
    ]
    rebalances = events.sparkSession.createDataFrame(shown, "group_id string, generation int, at long")
    timed = events.withColumns({"start": micros("started_at"), "end": micros("ended_at")}).alias("of")
    distance = F.abs(F.coalesce("of.end", "of.start") - F.col("to.at"))
    is_same = (
        (F.col("of.group_id") == F.col("to.group_id"))
        & (F.col("of.generation") == F.col("to.generation"))
        & (distance <= _MAX_EVENT_DISTANCE)
    )
    nearest = Window.partitionBy("of.id").orderBy(distance)
    return (
        timed.join(F.broadcast(rebalances).alias("to"), is_same, "left")
        .withColumn("nearest", F.row_number().over(nearest))
        .where(F.col("nearest") == 1)
        .select("of.*", "to.at")
    )


def _ownership(members: DataFrame | None, groups: Sequence[str], limits: Limits) -> dict[str, Ownership]:
    """Return the ownership maps by group."""
    if members is None or not groups:
        return {}
    of_groups = members.where(F.col("group_id").isin(list(groups)))
    recorded = of_groups.groupBy("group_id", "generation").agg(
        F.max(F.struct("log_partition", "log_offset")).alias("last"), micros(F.max("log_time")).alias("at")
    )
    newest = Window.partitionBy("group_id").orderBy(F.desc("at"), F.desc("generation"))
    kept = (
        recorded.withColumn("rank", F.row_number().over(newest))
        .withColumn("total", F.count("*").over(Window.partitionBy("group_id")))
        .where(F.col("rank") <= limits.generations)
    )
    size = F.aggregate("assigned", F.lit(0), lambda total, topic: total + F.size(topic["partitions"]))
    rows = (
        of_groups.join(F.broadcast(kept), ["group_id", "generation"])
        .where(F.struct("log_partition", "log_offset").eqNullSafe(F.col("last")))
        .select(
            "group_id",
            "generation",
            "at",
            "total",
            "member_id",
            "client_id",
            F.coalesce(size, F.lit(0)).alias("count"),
        )
        .collect()
    )
    by_group: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_group[row["group_id"]].append(row)
    return {group: _ownership_map(group, of_group, limits) for group, of_group in by_group.items()}


def _ownership_map(group: str, rows: Sequence[Any], limits: Limits) -> Ownership:
    times = {row["generation"]: row["at"] for row in rows}
    numbers = sorted(times, key=lambda number: (times[number], number))
    place = {number: index for index, number in enumerate(numbers)}
    seen: dict[str, list[Any]] = {}
    for row in rows:
        seen.setdefault(row["member_id"] or _UNKNOWN, []).append(row)
    most_present = sorted(seen, key=lambda id_: (-len(seen[id_]), id_))[: limits.lanes]
    shown = sorted(most_present, key=lambda id_: (min(place[row["generation"]] for row in seen[id_]), id_))
    counts = {id_: {row["generation"]: row["count"] for row in seen[id_]} for id_ in shown}
    return Ownership(
        group,
        [(number, time_of(times[number])) for number in numbers],
        rows[0]["total"],
        [(id_, seen[id_][0]["client_id"] or id_) for id_ in shown],
        [[counts[id_].get(number) for number in numbers] for id_ in shown],
        sorted(row["count"] for row in rows if row["generation"] == numbers[-1]),
        len(seen) - len(shown),
    )
