"""Samples of log-end offsets: rows of `end_offsets`, made by Spark from Kafka's answer as a whole."""

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
    """The log-end offsets of topics at one time.

    Attributes:
        time: When they were sampled, in UTC.
        offsets: A JSON object of offsets by `topic-partition`. It stays text in Python: a cluster can have a
            million partitions.
        topic_ids: The topics' ids, by topic.
    """

    time: datetime
    offsets: str
    topic_ids: Mapping[str, str]


def end_offset_rows(spark: SparkSession, samples: Sequence[EndOffsets]) -> DataFrame:
    """Return the rows of `end_offsets` of samples."""
    table = pa.table(
        {
            "time": pa.array([each.time for each in samples], pa.timestamp("us", "UTC")),
            "offsets": pa.array([each.offsets for each in samples], pa.string()),
            "ids": pa.array([list(each.topic_ids.items()) for each in samples], _TEXT_BY_TEXT),
        }
    )
    rows = spark.createDataFrame(table).coalesce(1)
    exploded = rows.select(
        "time", "ids", F.explode(F.from_json("offsets", "map<string,bigint>")).alias("name", "end_offset")
    )
    named = exploded.select(
        "*",
        F.regexp_extract("name", _PARTITION, 1).alias("topic"),
        F.regexp_extract("name", _PARTITION, 2).alias("partition"),
        F.to_date("time").alias("date"),
    )
    return select_columns(
        named.withColumn("topic_id", F.element_at("ids", F.col("topic"))), schemas.END_OFFSETS
    )
