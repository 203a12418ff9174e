"""What-if on Spark: each group's history is played by one worker."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.assignors import InvalidInputError
from groupwright.pipeline._what_if.group_shape import Racks
from groupwright.pipeline._what_if.history import KnownTopic
from groupwright.pipeline._what_if.loading import load_assignor
from groupwright.pipeline._what_if.plan_cache import PlanCache
from groupwright.pipeline._what_if.replay import ACTUAL, replay_group
from groupwright.pipeline._what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

_TASKS_PER_CORE = 8
_PLAYED = (
    "group_id string, assignor string, generation int, time long, members int, partitions int, moved int, "
    "fewest_moves int, imbalance int, topic_spread double, far int, rounds int, seconds double, error string"
)
_OF_MEMBERS = ("member_id", "instance_id", "rack", "subscribed", "assigned")
_WHERE = ("group_id", "generation", "log_partition", "log_offset")


def run_what_if(
    generations: DataFrame,
    members: DataFrame,
    assignors: Sequence[str],
    *,
    topics: DataFrame | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """Return the rows of `what_if_generations`: the history of every group, played by each assignor.

    Each assignor plays its own history: what it gave in one generation is what members own in the next, if they are
    still there (a static member is, under whatever member id). A cooperative assignor's generation is settled: it is
    asked until it withholds nothing. In a history's first generation nobody owns anything.

    It is lazy, as DataFrames are, and costs much: write it before it is used twice.

    Args:
        generations: `group_generations`. Records of other protocol types than `consumer` are left out. A KIP-848 group
            is played if `members` has its members, under the same `log_partition` and `log_offset`.
        members: `group_members`.
        assignors: Names of ours (`range`, `roundrobin`, `sticky`, `cooperative-sticky`), or import paths
            `package.module:Class` of one's own.
        topics: What is known of topics: `topic`, `partitions`, and if it likes `racks`, an array of each partition's
            replicas' racks, or null. A topic that is not there has as many partitions as were assigned until then. It is
            sent to every worker.
        tasks: Into how many tasks the groups are cut; by default 8 a core.

    Raises:
        AssignorError: An assignor cannot be had; the message says why.
        InvalidInputError: No assignor is given, or one twice.
    """
    loaded = [load_assignor(name) for name in assignors]
    if not loaded:
        raise InvalidInputError("no assignor is given to play the history with")
    if len({assignor.name for assignor in loaded}) < len(loaded):
        raise InvalidInputError(f"an assignor is given more than once: {', '.join(assignors)}")
    tasks = tasks or _TASKS_PER_CORE * generations.sparkSession.sparkContext.defaultParallelism
    rows = _records(generations).unionByName(_members(members)).repartition(tasks, "group_id")
    played = rows.groupBy("group_id").applyInArrow(_replayer(tuple(assignors), _known(topics)), _PLAYED)
    time = F.timestamp_micros("time")
    return _shaped(
        played.withColumn("time", time).withColumn("date", F.to_date("time")), WHAT_IF_GENERATIONS.columns
    )


def compare(what_if_generations: DataFrame) -> DataFrame:
    """Return the rows of `what_if`: by group and assignor, its generations taken together.

    Args:
        what_if_generations: As `run_what_if` returns it, or read from where it was written.
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
    return _shaped(joined, WHAT_IF.columns)


def _shaped(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    return rows.select(*columns)


def _records(generations: DataFrame) -> DataFrame:
    """Return a row a record, without a member."""
    tombstone = F.coalesce(F.col("tombstone"), F.lit(col=False))
    of_consumers = F.coalesce(F.col("protocol_type"), F.lit("")).isin("consumer", "")
    is_empty = tombstone | F.coalesce(F.col("member_count") == 0, F.lit(col=False))
    nothing = [F.lit(None).alias(name) for name in _OF_MEMBERS]
    return generations.where(tombstone | of_consumers).select(*_where(), *nothing, is_empty.alias("is_empty"))


def _members(members: DataFrame) -> DataFrame:
    subscribed_to_something = F.col("member_id").isNotNull()
    return members.where(subscribed_to_something).select(
        *_where(), *_OF_MEMBERS, F.lit(col=False).alias("is_empty")
    )


def _where() -> list[Column]:
    return [*(F.col(name) for name in _WHERE), F.unix_micros("log_time").alias("time")]


def _known(topics: DataFrame | None) -> dict[str, KnownTopic]:
    if topics is None:
        return {}
    has_racks = "racks" in topics.columns
    rows = topics.select("topic", "partitions", *(["racks"] if has_racks else [])).collect()
    return {
        row["topic"]: KnownTopic(row["partitions"], _racks(row["racks"]) if has_racks else None)
        for row in rows
    }


def _racks(racks: Sequence[Sequence[str]] | None) -> Racks | None:
    return None if racks is None else tuple(tuple(sorted(set(of_one))) for of_one in racks)


def _replayer(
    assignors: tuple[str, ...], known: dict[str, KnownTopic]
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    plans = PlanCache()

    def play(group: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        loaded = [load_assignor(name) for name in assignors]
        return replay_group(group[0].as_py(), rows, loaded, known, plans)

    return play
