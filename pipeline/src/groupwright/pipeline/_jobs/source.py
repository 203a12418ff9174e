"""Spark's Kafka source, configured for the jobs.

Records are read with `read_committed`, so those behind an open transaction come later (`open_transactions`).
With `read_uncommitted` the source would not tell which records were aborted: it hides producer ids and
control records, and commits of aborted transactions would count as offsets.
"""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.settings import Settings

_DEPRECATED_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Spark setting without which the Kafka source silently skips internal topics."""


def stream(spark: SparkSession, settings: Settings, start: Offsets) -> DataFrame:
    """Return a stream of records from `start` on."""
    spark.conf.set(_DEPRECATED_OFFSET_FETCHING, "true")
    return (
        spark.readStream.format("kafka")
        .options(**_options(settings, start))
        .option("startingOffsets", _json(start))
        .option("maxOffsetsPerTrigger", settings.max_offsets_per_trigger)
        .load()
    )


def batch(spark: SparkSession, settings: Settings, start: Offsets, end: Offsets) -> DataFrame:
    """Return the records from `start` (inclusive) to `end` (exclusive)."""
    spark.conf.set(_DEPRECATED_OFFSET_FETCHING, "true")
    return (
        spark.read.format("kafka")
        .options(**_options(settings, start))
        .option("startingOffsets", _json(start))
        .option("endingOffsets", _json(end))
        .load()
    )


def _options(settings: Settings, partitions: Mapping[str, Mapping[int, int]]) -> dict[str, str]:
    """Return the common options. Partitions are assigned: subscribing would create a consumer group."""
    return {
        **{f"kafka.{key}": value for key, value in settings.client.items()},
        "kafka.isolation.level": "read_committed",
        "kafka.allow.auto.create.topics": "false",  # of a topic that was deleted meanwhile
        "assign": json.dumps({topic: sorted(by_partition) for topic, by_partition in partitions.items()}),
        "failOnDataLoss": "true",  # also to restart: `data_loss` decides where
    }


def _json(offsets: Offsets) -> str:
    return json.dumps(
        {
            topic: {str(partition): offset for partition, offset in by_partition.items()}
            for topic, by_partition in offsets.items()
        }
    )
