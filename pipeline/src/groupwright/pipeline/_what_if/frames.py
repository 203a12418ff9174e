"""What-if studies on Spark: each group's history is replayed by one task."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.assignors import InvalidInputError
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.group_shape import Racks
from groupwright.pipeline._what_if.history import TopicMetadata
from groupwright.pipeline._what_if.loading import load_assignor
from groupwright.pipeline._what_if.replay import ACTUAL, replay_group
from groupwright.pipeline._what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

_TASKS_PER_CORE = 8
_RESULT_SCHEMA = (
    "group_id string, assignor string, generation int, time long, members int, partitions int, moved int, "
    "fewest_moves int, imbalance int, topic_spread double, far int, rounds int, seconds double, error string"
)
_MEMBER_COLUMNS = ("member_id", "instance_id", "rack", "subscribed", "assigned")
_RECORD_COLUMNS = ("group_id", "generation", "log_partition", "log_offset")


def run_what_if(
    generations: DataFrame,
    members: DataFrame,
    assignors: Sequence[str],
    *,
    topics: DataFrame | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """Return the rows of `what_if_generations`: the history of every group, replayed with each assignor.

    Each assignor has its own history: members own what it assigned in the previous generation, if they are
    still in the group. Static members are recognized by their instance id. A cooperative assignor is called
    until it no longer withholds partitions. No partition is owned at the start.

    The DataFrame is lazy and expensive: write or cache it before using it twice.

    Args:
        generations: `group_generations`. Protocol types other than `consumer` are skipped. A KIP-848 group is
            replayed if `members` has its members, with the same `log_partition` and `log_offset`.
        members: `group_members`.
        assignors: Names of built-in assignors (`range`, `roundrobin`, `sticky`, `cooperative-sticky`,
            `co-partitioned-sticky`), or import paths of custom ones, `package.module:Class`.
        topics: Topic metadata, sent to every worker: `topic`, `partitions`, and optionally `racks`, an array
            with the racks of each partition's replicas, or null. For a topic that is missing here, the number
            of partitions is derived from the assignments so far.
        tasks: Number of Spark tasks for the groups; by default 8 per core.

    Raises:
        AssignorError: An assignor cannot be loaded.
        InvalidInputError: No assignor is given, or one is given twice.
    """
    loaded = [load_assignor(name) for name in assignors]
    if not loaded:
        raise InvalidInputError("no assignor is given: name at least one")
    if len({assignor.name for assignor in loaded}) < len(loaded):
        raise InvalidInputError(f"an assignor is given more than once: {', '.join(assignors)}")
    tasks = tasks or _TASKS_PER_CORE * generations.sparkSession.sparkContext.defaultParallelism
    rows = _records(generations).unionByName(_members(members)).repartition(tasks, "group_id")
    replay = _replayer(tuple(assignors), _topic_metadata(topics))
    replayed = rows.groupBy("group_id").applyInArrow(replay, _RESULT_SCHEMA)
    timed = replayed.withColumn("time", F.timestamp_micros("time")).withColumn("date", F.to_date("time"))
    return timed.select(*WHAT_IF_GENERATIONS.columns)


def compare(what_if_generations: DataFrame) -> DataFrame:
    """Return the rows of `what_if`: totals by group and assignor.

    Args:
        what_if_generations: The result of `run_what_if`, or the table that it was written to.
    """
    failed = F.col("error").isNotNull()
    sums = what_if_generations.groupBy("group_id", "assignor").agg(
        F.count("generation").alias("rebalances"),
        F.sum("moved").alias("moved"),
        F.sum("fewest_moves").alias("fewest_moves"),
        F.avg("imbalance").alias("imbalance_mean"),
        F.max("imbalance").alias("imbalance_max"),
        F.avg("topic_spread").alias("topic_spread_mean"),
        F.avg("far").alias("far_mean"),
        F.sum("rounds").alias("rounds"),
        F.sum("seconds").alias("seconds"),
        F.sum(failed.cast("long")).alias("errors"),
        F.min("error").alias("error"),
        F.min("time").alias("since"),
        F.max("time").alias("until"),
    )
    actual = sums.where(F.col("assignor") == ACTUAL).select("group_id", F.col("moved").alias("moved_actual"))
    joined = sums.join(actual, "group_id", "left").withColumn("date", F.to_date("until"))
    return joined.select(*WHAT_IF.columns)


def _records(generations: DataFrame) -> DataFrame:
    """Return one row per record of `group_generations`, with null in the columns of members."""
    tombstone = F.coalesce(F.col("tombstone"), F.lit(col=False))
    is_consumer_group = F.coalesce(F.col("protocol_type"), F.lit("")).isin("consumer", "")
    is_empty = tombstone | F.coalesce(F.col("member_count") == 0, F.lit(col=False))
    no_member = [F.lit(None).alias(name) for name in _MEMBER_COLUMNS]
    kept = generations.where(tombstone | is_consumer_group)
    return kept.select(*_record_columns(), *no_member, is_empty.alias("is_empty"))


def _members(members: DataFrame) -> DataFrame:
    return members.where(F.col("member_id").isNotNull()).select(
        *_record_columns(), *_MEMBER_COLUMNS, F.lit(col=False).alias("is_empty")
    )


def _record_columns() -> list[Column]:
    return [*(F.col(name) for name in _RECORD_COLUMNS), F.unix_micros("log_time").alias("time")]


def _topic_metadata(topics: DataFrame | None) -> dict[str, TopicMetadata]:
    if topics is None:
        return {}
    has_racks = "racks" in topics.columns
    rows = topics.select("topic", "partitions", *(["racks"] if has_racks else [])).collect()
    return {
        row["topic"]: TopicMetadata(row["partitions"], _racks(row["racks"]) if has_racks else None)
        for row in rows
    }


def _racks(racks: Sequence[Sequence[str]] | None) -> Racks | None:
    return None if racks is None else tuple(tuple(sorted(set(of_one))) for of_one in racks)


def _replayer(
    assignors: tuple[str, ...], topic_metadata: dict[str, TopicMetadata]
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    cache = AssignmentCache()

    def replay(group: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        loaded = [load_assignor(name) for name in assignors]
        return replay_group(group[0].as_py(), rows, loaded, topic_metadata, cache)

    return replay
