"""`lag`: committed offsets against log ends, in messages and in seconds.

The log's ends are sampled by the job. At each sample a group's last commit until then is held against it. Seconds are
how long the first message that is not committed has been in the log: it came between the last sample whose end was at
or below the committed offset and the next, and its time is taken on the straight line between these two.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.base import shaped

_PARTITION = ("topic", "partition")
_GROUP_PARTITION = ("group_id", *_PARTITION)


def lag(commits: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return the rows of `lag`.

    Args:
        commits: `offset_commits`; a tombstone ends a group's lag.
        end_offsets: `end_offsets`.
    """
    behind = _commits_at_samples(commits, end_offsets)
    arrived = _arrivals(behind, end_offsets)
    caught_up = F.col("committed_offset") >= F.col("end_offset")
    waiting = _micros("time") - F.col("arrived")
    rows = behind.join(arrived, [*_PARTITION, "committed_offset", "time"], "left").select(
        "*",
        F.greatest(F.col("end_offset") - F.col("committed_offset"), F.lit(0)).alias("lag_messages"),
        F.when(caught_up | (waiting < 0), 0.0).otherwise(waiting / 1e6).alias("lag_seconds"),
        F.to_date("time").alias("date"),
    )
    return shaped(rows, schemas.LAG)


def _commits_at_samples(commits: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return each sample with each group's last commit until then."""
    groups = commits.select(*_GROUP_PARTITION).distinct()
    samples = end_offsets.select(*_PARTITION, "time", "end_offset").join(groups, [*_PARTITION])
    events = commits.select(
        *_GROUP_PARTITION,
        F.col("log_time").alias("time"),
        F.lit(None).cast("bigint").alias("end_offset"),
        # A tombstone stands as -1, so that what it ends does not come back as the last that is not null.
        F.when(F.col("tombstone"), -1).otherwise(F.col("committed_offset")).alias("committed_offset"),
        "log_offset",
    ).unionByName(samples, allowMissingColumns=True)
    # At the same time a commit comes first: a sample, which has no offset in the log, is last.
    until_now = (
        Window.partitionBy(*_GROUP_PARTITION)
        .orderBy("time", F.col("log_offset").asc_nulls_last())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    last = F.last("committed_offset", ignorenulls=True).over(until_now)
    return (
        events.withColumn("committed_offset", last)
        .where("end_offset is not null and committed_offset >= 0")
        .select(*_GROUP_PARTITION, "time", "end_offset", "committed_offset")
    )


def _arrivals(behind: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return, for each offset that a group was behind at, when its message `arrived`, in microseconds.

    Null if it was in the log before the first sample.
    """
    asked = (
        behind.where("committed_offset < end_offset")
        .select(*_PARTITION, "committed_offset", "time")
        .distinct()
    )
    ends = end_offsets.select(
        *_PARTITION,
        F.col("end_offset").alias("at"),
        _micros("time").alias("sampled"),
        F.col("end_offset").alias("end"),
    )
    offsets = asked.select("*", F.col("committed_offset").alias("at")).unionByName(
        ends, allowMissingColumns=True
    )
    # An offset comes after all samples that end at it: its message was not there yet.
    line = Window.partitionBy(*_PARTITION).orderBy("at", F.col("sampled").asc_nulls_last())
    below = line.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    above = line.rowsBetween(1, Window.unboundedFollowing)
    return (
        offsets.select(
            "*",
            F.last("sampled", ignorenulls=True).over(below).alias("sampled_below"),
            F.last("end", ignorenulls=True).over(below).alias("end_below"),
            F.first("sampled", ignorenulls=True).over(above).alias("sampled_above"),
            F.first("end", ignorenulls=True).over(above).alias("end_above"),
        )
        .where("committed_offset is not null")
        .select(*_PARTITION, "committed_offset", "time", _on_the_line().alias("arrived"))
    )


def _on_the_line() -> Column:
    """Return when the message at `committed_offset` came: the log's end went past it, from below to above."""
    passed = (F.col("committed_offset") + 1 - F.col("end_below")) / (F.col("end_above") - F.col("end_below"))
    return F.col("sampled_below") + passed * (F.col("sampled_above") - F.col("sampled_below"))


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))
