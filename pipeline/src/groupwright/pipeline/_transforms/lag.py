"""`lag`: committed offsets compared with log-end offsets, in messages and in seconds.

The jobs sample log-start and log-end offsets. Each sample is compared with the group's last commit before it.
Messages below the log-start offset have been deleted, so a group reads on from there, and they are no lag.
Lag in seconds is the age of the first message to read. Its time of arrival is interpolated linearly between
the last sample at or below its offset and the next sample.
"""

from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.base import select_columns

_PARTITION = ("topic", "partition")
_GROUP_PARTITION = ("group_id", *_PARTITION)
_TOPIC_PARTITION = (*_PARTITION, "topic_id")
"""A partition of one topic: a topic that is created again has another id, and its offsets begin at 0."""
_FAR_FUTURE = 1 << 60
"""A time in microseconds since 1970 that is later than any other."""


def lag(commits: DataFrame, end_offsets: DataFrame, day: date | None = None) -> DataFrame:
    """Return the rows of `lag`.

    Args:
        commits: `offset_commits`; a tombstone ends a group's lag.
        end_offsets: `end_offsets`.
        day: The only date to return; earlier samples then only tell when messages arrived. None for all.
    """
    samples = end_offsets if day is None else end_offsets.where(F.col("date") == F.lit(day))
    arrived = _with_arrivals(_commits_at_samples(commits, samples), end_offsets)
    caught_up = F.col("position") >= F.col("end_offset")
    age = _micros("time") - F.col("arrived")
    rows = arrived.select(
        "*",
        F.greatest(F.col("end_offset") - F.col("position"), F.lit(0)).alias("lag_messages"),
        F.when(caught_up | (age < 0), 0.0).otherwise(age / 1e6).alias("lag_seconds"),
        F.to_date("time").alias("date"),
    )
    return select_columns(rows, schemas.LAG)


def last_commits(lag_rows: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the last committed offset of each group's partition, as rows for `lag`.

    Args:
        lag_rows: Rows of `lag`, which have the offsets of groups that have not committed since.
        commits: `offset_commits`. A partition whose last record is a tombstone is left out.
    """
    # Offsets are not negative: any commit is later than the rows of `lag`.
    before_commits = _micros("time") - F.lit(_FAR_FUTURE)
    known = lag_rows.select(
        *_GROUP_PARTITION,
        "time",
        "committed_offset",
        before_commits.alias("order"),
    ).union(commits.select(*_GROUP_PARTITION, "log_time", _offset_or_tombstone(), "log_offset"))
    # `max_by` of plain numbers is aggregated without sorting the rows.
    last = known.groupBy(*_GROUP_PARTITION).agg(
        F.max_by("committed_offset", "order").alias("committed_offset"),
        F.max("time").alias("log_time"),
    )
    return last.where("committed_offset >= 0").withColumns(
        {
            "log_offset": F.lit(-1),
            "tombstone": F.lit(False),  # noqa: FBT003 - a value of the table
            "topic_id": F.lit(None).cast("string"),
        }
    )


def _commits_at_samples(commits: DataFrame, samples: DataFrame) -> DataFrame:
    """Return each sample with each group's last commit before it, and the `position` to read on from."""
    groups = commits.select(*_GROUP_PARTITION).distinct()
    sampled = samples.select(*_TOPIC_PARTITION, "time", "start_offset", "end_offset").join(
        groups, [*_PARTITION]
    )
    events = commits.select(
        *_GROUP_PARTITION,
        F.col("log_time").alias("time"),
        *(F.lit(None).cast("bigint").alias(name) for name in ("start_offset", "end_offset")),
        F.struct("log_offset", _offset_or_tombstone(), "topic_id").alias("commit"),
    ).unionByName(sampled, allowMissingColumns=True)
    # At equal times commits come before samples, whose `commit` is null.
    until_now = (
        Window.partitionBy(*_GROUP_PARTITION)
        .orderBy("time", F.col("end_offset").asc_nulls_first())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    # The last commit in the log, which need not be the one with the latest time: brokers' clocks differ.
    last = F.max("commit").over(until_now)
    return (
        events.withColumn("last", last)
        .where("end_offset is not null and last.committed_offset >= 0")
        .where("last.topic_id is null or topic_id is null or last.topic_id = topic_id")
        .select(*_GROUP_PARTITION, "topic_id", "time", "start_offset", "end_offset", "last.committed_offset")
        .withColumn("position", F.greatest("committed_offset", "start_offset"))
    )


def _with_arrivals(sampled: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Add the arrival time of the first message to read, as `arrived` in microseconds.

    It is null if the message was in the log before the first sample.

    Args:
        sampled: The result of `_commits_at_samples`.
        end_offsets: `end_offsets`.
    """
    samples = end_offsets.select(
        *_TOPIC_PARTITION, F.col("end_offset").alias("at"), _micros("time").alias("sampled")
    )
    # The next sample of each one is found here: a window that ends at its last row takes quadratic time.
    by_end = Window.partitionBy(*_TOPIC_PARTITION).orderBy("at", "sampled")
    ends = samples.select(
        *_TOPIC_PARTITION,
        "at",
        "sampled",
        F.struct(
            F.col("at").alias("end_below"),
            F.col("sampled").alias("sampled_below"),
            F.lead("at").over(by_end).alias("end_above"),
            F.lead("sampled").over(by_end).alias("sampled_above"),
        ).alias("around"),
    )
    offsets = sampled.withColumn("at", F.col("position")).unionByName(ends, allowMissingColumns=True)
    # An offset sorts after all samples that end at it: its message had not arrived by then.
    below = (
        Window.partitionBy(*_TOPIC_PARTITION)
        .orderBy("at", F.col("sampled").asc_nulls_last())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        offsets.withColumn("around", F.last("around", ignorenulls=True).over(below))
        .where("position is not null")
        .select(*sampled.columns, "around.*")
        .withColumn("arrived", _interpolated())
    )


def _interpolated() -> Column:
    """Interpolate the arrival time of the message at `position` between the samples around it."""
    below, above = F.col("end_below"), F.col("end_above")
    fraction = (F.col("position") + 1 - below) / (above - below)
    return F.col("sampled_below") + fraction * (F.col("sampled_above") - F.col("sampled_below"))


def _offset_or_tombstone() -> Column:
    # -1 marks a tombstone, so that `last` with ignorenulls does not return the deleted offset.
    return F.when(F.col("tombstone"), -1).otherwise(F.col("committed_offset")).alias("committed_offset")


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(name))
