"""What-if studies on Spark: each group's history is replayed by one task."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.assignors import InvalidInputError
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.group_shape import Racks
from groupwright.pipeline._what_if.history import TopicMetadata
from groupwright.pipeline._what_if.java_assignor import PREFIX, java_assignor
from groupwright.pipeline._what_if.loading import LoadedAssignor, load_assignor
from groupwright.pipeline._what_if.replay import ACTUAL, RESULT, replay_group
from groupwright.pipeline._what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

_TASKS_PER_CORE = 8
_RESULT_SCHEMA = (
    "group_id string, assignor string, generation int, time long, members int, partitions int, stopped int, "
    "partition_seconds double, moved int, min_moves int, imbalance int, held_seconds double, "
    "peak_load double, topic_spread double, rack_mismatches int, rounds int, seconds double, error string"
)
_PACKED_SCHEMA = "group_id string, rows binary"
_MEMBER_COLUMNS = ("member_id", "instance_id", "rack", "subscribed", "assigned")
_RECORD_COLUMNS = ("group_id", "generation", "log_partition", "log_offset")


def run_what_if(
    generations: DataFrame,
    members: DataFrame,
    assignors: Sequence[str],
    *,
    rebalances: DataFrame | None = None,
    topics: DataFrame | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """Return the rows of `what_if_generations`: the history of every group, replayed with each assignor.

    Each assignor has its own history: members own what it assigned in the previous generation, if they are
    still in the group. Static members are recognized by their instance id. A cooperative assignor is called
    until it no longer withholds partitions; in the recorded history, handover generations are merged with the
    rebalance that caused them. `ASSUMPTIONS` lists all assumptions.

    The DataFrame is lazy and expensive: write or cache it before using it twice. Java's assignors are the
    exception: the driver replays the history with them at once, one group at a time.

    Args:
        generations: `group_generations`. Protocol types other than `consumer` are skipped, and so are share
            and streams groups. A KIP-848 group is replayed if `members` has its members, with the same
            `log_partition` and `log_offset`.
        members: `group_members`.
        assignors: Names of built-in assignors (`range`, `sticky` and so on), of the broker's
            (`broker:uniform`, `broker:range`) or of Java's (`java:sticky`, `java:cooperative-sticky`), or
            import paths of custom ones, `package.module:Class`.
        rebalances: `rebalances`, which has the measured durations, and the epochs in which a KIP-848 group
            had no members; without it partition-seconds are null, and these epochs are left out.
        topics: Topic metadata, sent to every worker: `topic`, `partitions`, and optionally `racks`, an array
            with the racks of each partition's replicas, and `weights`, an array with the weight of each
            partition; all may be null. For a topic that is missing here, the number of partitions is
            derived from the assignments so far.
        tasks: Number of Spark tasks for the groups; by default 8 per core.

    Raises:
        AssignorError: An assignor cannot be loaded.
        InvalidInputError: No assignor is given, or one is given twice.
    """
    if not assignors:
        raise InvalidInputError("no assignor is given: name at least one")
    if len(set(assignors)) < len(assignors):
        raise InvalidInputError(f"an assignor is given more than once: {', '.join(assignors)}")
    spark = generations.sparkSession
    jvm = spark._jvm  # noqa: SLF001 - as PySpark's own modules
    of_java = [
        LoadedAssignor(name, java_assignor(name, jvm), is_cached=False)
        for name in assignors
        if name.startswith(PREFIX)
    ]
    others = tuple(name for name in assignors if not name.startswith(PREFIX))
    for name in others:
        load_assignor(name)
    tasks = tasks or _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    records = _with_measures(generations, rebalances)
    rows = _records(records).unionByName(_members(members)).repartition(tasks, "group_id").groupBy("group_id")
    metadata = _topic_metadata(topics)
    replayed = rows.applyInArrow(_replayer(others, metadata), _RESULT_SCHEMA)
    if of_java:
        found = _replay_in_driver(rows.applyInArrow(_packed, _PACKED_SCHEMA), of_java, metadata)
        replayed = replayed.unionByName(spark.createDataFrame(found, _RESULT_SCHEMA))
    timed = replayed.withColumn("time", F.timestamp_micros("time")).withColumn("date", F.to_date("time"))
    return timed.select(*WHAT_IF_GENERATIONS.columns)


def topic_weights(end_offsets: DataFrame) -> DataFrame:
    """Return the weights of partitions, for `run_what_if`: messages per second.

    The rate is that between the first and the last sample of the topic. The samples of a topic that was
    deleted and created again are those since then.

    Args:
        end_offsets: `end_offsets`. A topic with a partition that has a single sample is left out.
    """
    newest = F.max_by("topic_id", "time").over(Window.partitionBy("topic"))
    current = end_offsets.withColumn("newest", newest).where(F.col("topic_id").eqNullSafe(F.col("newest")))
    seconds = (F.unix_micros(F.max("time")) - F.unix_micros(F.min("time"))) / 1e6
    grown = F.max("end_offset") - F.min("end_offset")
    rates = current.groupBy("topic", "partition").agg(F.when(seconds > 0, grown / seconds).alias("rate"))
    by_partition = F.transform(
        F.array_sort(F.collect_list(F.struct("partition", "rate"))), lambda one: one["rate"]
    )
    return (
        rates.groupBy("topic")
        .agg(
            by_partition.alias("weights"),
            F.max("partition").alias("last"),
            F.bool_and(F.col("rate").isNotNull()).alias("is_known"),
        )
        .where((F.size("weights") == F.col("last") + 1) & F.col("is_known"))
        .select("topic", F.lit(None).cast("int").alias("partitions"), "weights")
    )


def compare(what_if_generations: DataFrame) -> DataFrame:
    """Return the rows of `what_if`: totals by group and assignor.

    Args:
        what_if_generations: The result of `run_what_if`, or the table that it was written to.
    """
    failed = F.col("error").isNotNull()
    sums = what_if_generations.groupBy("group_id", "assignor").agg(
        F.count("generation").alias("rebalances"),
        *(_complete_sum(name) for name in ("stopped", "partition_seconds")),
        F.sum("moved").alias("moved"),
        F.sum("min_moves").alias("min_moves"),
        _mean_over_time("imbalance").alias("imbalance_mean"),
        F.max("imbalance").alias("imbalance_max"),
        _mean_over_time("peak_load").alias("peak_load_mean"),
        F.avg("topic_spread").alias("topic_spread_mean"),
        F.avg("rack_mismatches").alias("rack_mismatches_mean"),
        F.sum("rounds").alias("rounds"),
        F.sum("seconds").alias("seconds"),
        F.sum(failed.cast("long")).alias("errors"),
        F.min("error").alias("error"),
        F.min("time").alias("since"),
        F.max("time").alias("until"),
    )
    costs = ("moved", "stopped", "partition_seconds")
    actual = sums.where(F.col("assignor") == ACTUAL).select(
        "group_id", *(F.col(name).alias(f"{name}_actual") for name in costs)
    )
    joined = sums.join(actual, "group_id", "left").withColumn("date", F.to_date("until"))
    return joined.select(*WHAT_IF.columns)


def _complete_sum(name: str) -> Column:
    """Return the sum of a column; null if a generation with a result has none."""
    is_unknown = F.col(name).isNull() & F.col("error").isNull()
    return F.when(~F.bool_or(is_unknown), F.sum(name)).alias(name)


def _mean_over_time(name: str) -> Column:
    """Return the mean of a column, weighted by the time for which a generation was held.

    The last generation has no end, so a single one counts as it is.
    """
    held = F.when(F.col(name).isNotNull(), F.col("held_seconds"))
    weighted = F.sum(F.col(name) * held) / F.sum(held)
    return F.when(F.sum(held) > 0, weighted).otherwise(F.avg(name))


def _records(generations: DataFrame) -> DataFrame:
    """Return one row per record of `group_generations`, with null in the columns of members."""
    tombstone = F.coalesce(F.col("tombstone"), F.lit(col=False))
    is_consumer_protocol = F.coalesce(F.col("protocol_type"), F.lit("")).isin("consumer", "")
    # KIP-848's epochs have no member count.
    member_count = F.coalesce("member_count", "members_after")
    is_empty = tombstone | F.coalesce(member_count == 0, F.lit(col=False))
    no_member = [F.lit(None).alias(name) for name in _MEMBER_COLUMNS]
    has_owners = F.coalesce(F.col("group_type"), F.lit("")).isin("classic", "consumer", "")
    kept = generations.where(has_owners & (tombstone | is_consumer_protocol))
    protocol = F.when(F.col("group_type") == "consumer", "consumer").otherwise(F.col("protocol"))
    return kept.select(
        *_record_columns(),
        *no_member,
        is_empty.alias("is_empty"),
        protocol.alias("protocol"),
        "started",
        "ended",
    )


def _with_measures(generations: DataFrame, rebalances: DataFrame | None) -> DataFrame:
    """Return the records with the measures of their rebalances.

    These are `started` and `ended`, the measured times in microseconds, and `members_after`, the number of
    members. They are null if unknown; `members_after` is that of KIP-848 groups alone.
    """
    if rebalances is None:
        unknown = {"started": "long", "ended": "long", "members_after": "int"}
        return generations.withColumns({name: F.lit(None).cast(of) for name, of in unknown.items()})
    is_consumer = F.coalesce(F.col("group_type") == "consumer", F.lit(col=False))
    is_measured = F.col("duration_seconds").isNotNull() & F.col("started").isNotNull()
    started = F.when(is_measured, F.unix_micros("started"))
    ended = started + (F.col("duration_seconds") * 1e6).cast("long")
    # A KIP-848 group's record is that of the new epoch, which its members reach later.
    first = F.when(is_consumer & F.col("started").isNotNull(), F.col("started")).otherwise(F.col("completed"))
    measures = (
        rebalances.where(is_consumer | is_measured)
        .groupBy("group_id", "generation", first.alias("first"), F.col("completed").alias("last"))
        .agg(
            F.min(started).alias("started"),
            F.max(ended).alias("ended"),
            F.max(F.when(is_consumer, F.col("members_after"))).alias("members_after"),
        )
    )
    of, to = generations.alias("of"), measures.alias("to")
    is_same = (
        (F.col("of.group_id") == F.col("to.group_id"))
        & (F.col("of.generation") == F.col("to.generation"))
        & F.col("of.log_time").between(F.col("to.first"), F.col("to.last"))
    )
    return of.join(to, is_same, "left").select("of.*", "to.started", "to.ended", "to.members_after")


def _members(members: DataFrame) -> DataFrame:
    return members.where(F.col("member_id").isNotNull()).select(
        *_record_columns(),
        *_MEMBER_COLUMNS,
        F.lit(col=False).alias("is_empty"),
        F.lit(None).cast("string").alias("protocol"),
        *(F.lit(None).cast("long").alias(name) for name in ("started", "ended")),
    )


def _record_columns() -> list[Column]:
    return [*(F.col(name) for name in _RECORD_COLUMNS), F.unix_micros("log_time").alias("time")]


def _topic_metadata(topics: DataFrame | None) -> dict[str, TopicMetadata]:
    if topics is None:
        return {}
    optional = {name: F.col(name) if name in topics.columns else F.lit(None) for name in ("racks", "weights")}
    rows = topics.select(
        "topic", "partitions", *(column.alias(name) for name, column in optional.items())
    ).collect()
    return {
        row["topic"]: TopicMetadata(
            row["partitions"] or 0,
            _racks(row["racks"]),
            None if row["weights"] is None else tuple(row["weights"]),
        )
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


def _packed(group: tuple[Any, ...], rows: pa.Table) -> pa.Table:
    """Return a group's rows as one value, in Arrow's IPC format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.table({"group_id": [group[0].as_py()], "rows": [sink.getvalue().to_pybytes()]})


def _replay_in_driver(
    packed: DataFrame, assignors: Sequence[LoadedAssignor], topic_metadata: dict[str, TopicMetadata]
) -> pa.Table:
    """Replay the groups in this process, one at a time; the recorded assignments have no rows."""
    cache = AssignmentCache()
    replayed = [RESULT.empty_table()]
    for row in packed.toLocalIterator():
        rows = pa.ipc.open_stream(bytes(row["rows"])).read_all()
        replayed.append(
            replay_group(row["group_id"], rows, assignors, topic_metadata, cache, with_actual=False)
        )
    return pa.concat_tables(replayed)
