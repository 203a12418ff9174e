"""Ingestion of a batch of records into the base tables."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import reduce
from threading import Lock
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._decoding import decode
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.state import State
from groupwright.pipeline._tables import Batch, Tables
from groupwright.pipeline._transforms import base

_ROWS_PER_FILE = 500_000
_LOG_POSITION = ("log_partition", "log_offset", "log_time")


@dataclass(slots=True)
class BatchSummary:
    """Summary of a batch's records.

    Attributes:
        records: Number of records, by kind.
        ends: End offsets of the batch, exclusive.
        dates: The dates of its records.
        topics: The topics that groups committed to.
    """

    records: Counter[str] = field(default_factory=Counter)
    ends: Offsets = field(default_factory=dict)
    dates: set[date] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)


class Ingest:
    """Adds batches to the base tables, each exactly once.

    Attributes:
        lock: Must be held while base tables or state change.
    """

    def __init__(self, tables: Tables, state: State) -> None:
        """Add to these tables, and record the progress in `state`."""
        self.lock = Lock()
        self._tables = tables
        self._state = state
        # Only a partition's first batch can repeat records, of another job or of a run that died; afterwards
        # this job is the only writer.
        self._ingested = state.ingested()

    def add(self, records: DataFrame, batch: Batch) -> BatchSummary:
        """Add the records that the tables do not have yet, and return a summary.

        Args:
            records: Columns of Spark's Kafka source.
            batch: Identity of the batch, the same if it is repeated.
        """
        records = not_ingested(records, self._ingested)
        decoded = decode(records.where(F.col("topic") == base.OFFSETS_TOPIC))
        events = base.parsed_events(records.where(F.col("topic") != base.OFFSETS_TOPIC))
        cached = [each.persist(StorageLevel.MEMORY_AND_DISK) for each in (decoded, events)]
        try:
            summary = _summarize(decoded, events)
            with self.lock:
                self._write(decoded, events, summary, batch)
            self._ingested = _without_partitions(self._ingested, summary.ends)
        finally:
            for each in cached:
                each.unpersist()
        return summary

    def sample(
        self, spark: SparkSession, rows: Iterable[tuple[Any, ...]], time: datetime, batch: Batch
    ) -> None:
        """Add rows of `end_offsets`, all sampled at the same time.

        Args:
            spark: The session.
            rows: The rows.
            time: The time of the samples, in UTC.
            batch: Identity of the batch.
        """
        with self.lock:
            self._state.mark_stale({time.date()})
            samples = spark.createDataFrame(list(rows), schemas.END_OFFSETS.schema).coalesce(1)
            self._tables.add(schemas.END_OFFSETS, samples, batch)

    def _write(self, decoded: DataFrame, events: DataFrame, summary: BatchSummary, batch: Batch) -> None:
        if not summary.records:
            return
        self._state.mark_stale(summary.dates)
        total = summary.records.total()
        files = -(-total // _ROWS_PER_FILE)
        parts_of: dict[schemas.Table, list[DataFrame]] = {}
        for rows, sources in ((decoded, base.FROM_DECODED), (events, base.FROM_EVENTS)):
            for each in sources:
                if each.kinds & summary.records.keys():
                    parts_of.setdefault(each.table, []).append(each.rows(rows))
        for table, parts in parts_of.items():
            self._tables.add(table, reduce(DataFrame.union, parts).coalesce(files), batch)
        self._state.record_ingested(summary.ends)


def not_ingested(records: DataFrame, ingested: Offsets) -> DataFrame:
    """Return the records at or after the end offsets that the tables already have."""
    for topic, by_partition in ingested.items():
        ends = F.create_map(*(F.lit(value) for pair in by_partition.items() for value in pair))
        end = F.coalesce(ends[F.col("partition")], F.lit(0))
        records = records.where((F.col("topic") != topic) | (F.col("offset") >= end))
    return records


def _without_partitions(ingested: Offsets, finished: Offsets) -> Offsets:
    """Return `ingested` without the partitions in `finished`: all their next records are new."""
    left = {
        topic: {
            partition: offset
            for partition, offset in by_partition.items()
            if partition not in finished.get(topic, {})
        }
        for topic, by_partition in ingested.items()
    }
    return {topic: by_partition for topic, by_partition in left.items() if by_partition}


def _summarize(decoded: DataFrame, events: DataFrame) -> BatchSummary:
    """Summarize records and events in a single Spark job."""
    of_groups = decoded.select(
        F.lit(base.OFFSETS_TOPIC).alias("log"),
        F.col("record_kind").alias("kind"),
        F.col("offset_commit.topic").alias("topic"),
        *_LOG_POSITION,
    )
    of_events = events.select(
        F.col("topic").alias("log"),
        F.lit(base.CLIENT_EVENT).alias("kind"),
        F.lit(None).cast("string").alias("topic"),
        *_LOG_POSITION,
    )
    counted = (
        of_groups.union(of_events)
        .groupBy("log", "log_partition", "kind", F.to_date("log_time").alias("date"))
        .agg(
            F.max("log_offset").alias("last"),
            F.count("*").alias("records"),
            F.collect_set("topic").alias("topics"),
        )
    )
    summary = BatchSummary()
    for row in counted.collect():
        summary.records[row.kind] += row.records
        summary.dates.add(row.date)
        summary.topics.update(row.topics)
        ends = summary.ends.setdefault(row.log, {})
        ends[row.log_partition] = max(row.last + 1, ends.get(row.log_partition, 0))
    return summary
