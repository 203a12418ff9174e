"""`lag`: committed offsets compared with log-end offsets, in messages and in seconds.

The jobs sample log-end offsets. Each sample is compared with the group's last commit before it. Lag in
seconds is the age of the first uncommitted message. Its time of arrival is interpolated linearly between the
last sample at or below the committed offset and the next sample.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.base import select_columns

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
    age = _micros("time") - F.col("arrived")
    rows = behind.join(arrived, [*_PARTITION, "committed_offset", "time"], "left").select(
        "*",
        F.greatest(F.col("end_offset") - F.col("committed_offset"), F.lit(0)).alias("lag_messages"),
        F.when(caught_up | (age < 0), 0.0).otherwise(age / 1e6).alias("lag_seconds"),
        F.to_date("time").alias("date"),
    )
    return select_columns(rows, schemas.LAG)


def _commits_at_samples(commits: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return each sample with each group's last commit before it."""
    groups = commits.select(*_GROUP_PARTITION).distinct()
    samples = end_offsets.select(*_PARTITION, "time", "end_offset").join(groups, [*_PARTITION])
    events = commits.select(
        *_GROUP_PARTITION,
        F.col("log_time").alias("time"),
        F.lit(None).cast("bigint").alias("end_offset"),
        # -1 marks a tombstone, so that `last` with ignorenulls does not return the deleted offset.
        F.when(F.col("tombstone"), -1).otherwise(F.col("committed_offset")).alias("committed_offset"),
        "log_offset",
    ).unionByName(samples, allowMissingColumns=True)
    # At equal times commits come before samples, whose `log_offset` is null.
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
    """Return the arrival time of the first uncommitted message, as `arrived` in microseconds.

    It is null if the message was in the log before the first sample.
    """
    behind_only = (
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
    offsets = behind_only.select("*", F.col("committed_offset").alias("at")).unionByName(
        ends, allowMissingColumns=True
    )
    # An offset sorts after all samples that end at it: its message had not arrived by then.
    by_offset = Window.partitionBy(*_PARTITION).orderBy("at", F.col("sampled").asc_nulls_last())
    below = by_offset.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    above = by_offset.rowsBetween(1, Window.unboundedFollowing)
    return (
        offsets.select(
            "*",
            F.last("sampled", ignorenulls=True).over(below).alias("sampled_below"),
            F.last("end", ignorenulls=True).over(below).alias("end_below"),
            F.first("sampled", ignorenulls=True).over(above).alias("sampled_above"),
            F.first("end", ignorenulls=True).over(above).alias("end_above"),
        )
        .where("committed_offset is not null")
        .select(*_PARTITION, "committed_offset", "time", _interpolated().alias("arrived"))
    )


def _interpolated() -> Column:
    """Interpolate the arrival time of the message at `committed_offset` between the samples around it."""
    below, above = F.col("end_below"), F.col("end_above")
    fraction = (F.col("committed_offset") + 1 - below) / (above - below)
    return F.col("sampled_below") + fraction * (F.col("sampled_above") - F.col("sampled_below"))


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))
