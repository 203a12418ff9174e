"""Samples of the bounds of logs: rows of `end_offsets`, made by Spark from Kafka's answers as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.base import select_columns

_TEXT_BY_TEXT = pa.map_(pa.string(), pa.string())
_PARTITION = r"^(.*)-(\d+)$"


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """The log-end and log-start offsets of topics at one time.

    Attributes:
        time: When they were sampled, in UTC.
        starts: The log-start offsets, a JSON object by `topic-partition`. It stays text in Python: a cluster
            can have a million partitions.
        ends: The log-end offsets of the same partitions, alike.
        topic_ids: The topics' ids, by topic.
    """

    time: datetime
    starts: str
    ends: str
    topic_ids: Mapping[str, str]


def end_offset_rows(spark: SparkSession, samples: Sequence[EndOffsets]) -> DataFrame:
    """Return the rows of `end_offsets` of samples."""
    table = pa.table(
        {
            "time": pa.array([each.time for each in samples], pa.timestamp("us", "UTC")),
            "starts": pa.array([each.starts for each in samples], pa.string()),
            "ends": pa.array([each.ends for each in samples], pa.string()),
            "ids": pa.array([list(each.topic_ids.items()) for each in samples], _TEXT_BY_TEXT),
        }
    )
    rows = spark.createDataFrame(table).coalesce(1)
    # A look-up in Spark's maps is a search; in order, both have the same partitions at the same places.
    starts, ends = (
        F.array_sort(F.map_entries(F.from_json(name, "map<string,bigint>"))) for name in ("starts", "ends")
    )
    zipped = F.arrays_zip(starts.alias("start"), ends.alias("end"))
    exploded = rows.select("time", "ids", F.inline(zipped))
    named = exploded.select(
        "time",
        "ids",
        F.col("end.key").alias("name"),
        F.col("start.value").alias("start_offset"),
        F.col("end.value").alias("end_offset"),
    ).select(
        "*",
        F.regexp_extract("name", _PARTITION, 1).alias("topic"),
        F.regexp_extract("name", _PARTITION, 2).alias("partition"),
        F.to_date("time").alias("date"),
    )
    return select_columns(
        named.withColumn("topic_id", F.element_at("ids", F.col("topic"))), schemas.END_OFFSETS
    )
