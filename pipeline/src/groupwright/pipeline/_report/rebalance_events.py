"""Rebalances with their handovers, and the epochs of share and streams groups in the same form.

The second rebalance of a cooperative assignor is part of the first.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline._transforms.churn import STORM_REBALANCES, STORM_SECONDS

_OF_EPOCHS = (
    "group_id",
    "group_type",
    "cause",
    "generation",
    "joined",
    "left",
    "started",
    "completed",
    "duration_seconds",
    "members_after",
)
_OF_MEMBERS = ("group_id", "generation", "member_id", "client_id", "assigned", "log_partition", "log_offset")


def rebalance_events(rebalances: DataFrame) -> DataFrame:
    """Return one row for each rebalance with the handovers that followed it.

    The columns are those of `rebalances` that the report shows, `handovers`, their number, and `storm`, which
    is set if it was at least the fifth of the group within 10 minutes. The duration is that from the first
    start to the last end, since members may measure both rebalances as one. Moves and reprocessed messages
    are totals, or null if one of them is unknown; `generation` and `cause` are those of the rebalance that
    caused the handovers.
    """
    of_group = Window.partitionBy("group_id").orderBy("completed", "generation")
    is_handover = F.coalesce(F.col("cause") == "handover", F.lit(False))  # noqa: FBT003 - a value
    numbered = rebalances.withColumn("event", F.sum((~is_handover).cast("int")).over(of_group))
    first = {
        name: F.min_by(name, F.struct("completed", "generation"))
        for name in ("group_type", "protocol", "cause", "generation", "joined", "left")
    }
    sums = ("moved", "min_moves", "messages_reprocessed")
    started = F.unix_micros("started")
    ended = started + (F.col("duration_seconds") * 1e6).cast("long")
    events = numbered.groupBy("group_id", "event").agg(
        *(column.alias(name) for name, column in first.items()),
        *(F.when(F.count(name) == F.count("*"), F.sum(name)).alias(name) for name in sums),
        F.min("started").alias("started"),
        ((F.max(ended) - F.min(F.when(ended.isNotNull(), started))) / 1e6).alias("duration_seconds"),
        F.min("error").alias("error"),
        F.min("completed").alias("completed"),
        F.max_by("members_after", F.struct("completed", "generation")).alias("members_after"),
        (F.count("*") - 1).alias("handovers"),
    )
    recent = (
        Window.partitionBy("group_id")
        .orderBy(F.col("completed").cast("bigint"))
        .rangeBetween(-STORM_SECONDS, Window.currentRow)
    )
    return events.withColumn("storm", F.count("*").over(recent) >= STORM_REBALANCES)


def with_epochs(events: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Return the result of `rebalance_events` with `group_epochs`, whose moves are null."""
    if "group_epochs" not in tables:
        return events
    epochs = tables["group_epochs"].select(*_OF_EPOCHS, F.lit(0).cast("bigint").alias("handovers"))
    return events.unionByName(epochs, allowMissingColumns=True)


def with_epoch_members(tables: Mapping[str, DataFrame]) -> DataFrame | None:
    """Return `group_members` with the members of `group_epochs`; None without both.

    Epochs have no log position: their time is in its place, since a recreated group repeats epochs.
    """
    members, epochs = tables.get("group_members"), tables.get("group_epochs")
    if epochs is None:
        return members
    position = {"log_partition": F.lit(0), "log_offset": F.unix_micros("log_time")}
    unknown = {name: F.lit(None).cast("int") for name in ("session_timeout_ms", "rebalance_timeout_ms")}
    of_epochs = epochs.select(
        "group_id", "generation", F.col("completed").alias("log_time"), F.explode("members").alias("member")
    ).select("*", "member.member_id", "member.client_id", "member.assigned")
    rows = of_epochs.withColumns(position | unknown).select(*_OF_MEMBERS, *unknown, "log_time")
    return rows if members is None else members.unionByName(rows, allowMissingColumns=True)
