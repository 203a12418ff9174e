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

_ROWS_A_FILE = 500_000
_WHERE = ("log_partition", "log_offset", "log_time")


@dataclass(slots=True)
class Contents:
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
        # Only the first batches can repeat records, of other jobs or of a run that died; later no one else
        # writes.
        self._held = state.held()

    def add(self, records: DataFrame, batch: Batch) -> Contents:
        """Add the records that the tables do not have yet, and return a summary.

        Args:
            records: Columns of Spark's Kafka source.
            batch: Identity of the batch, the same if it is repeated.
        """
        records = not_held(records, self._held)
        decoded = decode(records.where(F.col("topic") == base.OFFSETS_TOPIC))
        events = base.parsed_events(records.where(F.col("topic") != base.OFFSETS_TOPIC))
        kept = [each.persist(StorageLevel.MEMORY_AND_DISK) for each in (decoded, events)]
        try:
            contents = _contents(decoded, events)
            with self.lock:
                self._write(decoded, events, contents, batch)
            self._held = _without(self._held, contents.ends)
        finally:
            for each in kept:
                each.unpersist()
        return contents

    def sample(
        self, spark: SparkSession, rows: Iterable[tuple[Any, ...]], time: datetime, batch: Batch
    ) -> None:
        """Add rows of `end_offsets`, all sampled at the same time."""
        with self.lock:
            self._state.mark_stale({time.date()})
            samples = spark.createDataFrame(list(rows), schemas.END_OFFSETS.schema).coalesce(1)
            self._tables.add(schemas.END_OFFSETS, samples, batch)

    def _write(self, decoded: DataFrame, events: DataFrame, contents: Contents, batch: Batch) -> None:
        if not contents.records:
            return
        self._state.mark_stale(contents.dates)
        total = contents.records.total()
        files = -(-total // _ROWS_A_FILE)
        wanted: dict[schemas.Table, list[DataFrame]] = {}
        for rows, sources in ((decoded, base.FROM_DECODED), (events, base.FROM_EVENTS)):
            for each in sources:
                if each.kinds & contents.records.keys():
                    wanted.setdefault(each.table, []).append(each.rows(rows))
        for table, parts in wanted.items():
            self._tables.add(table, reduce(DataFrame.union, parts).coalesce(files), batch)
        self._state.hold(contents.ends)


def not_held(records: DataFrame, held: Offsets) -> DataFrame:
    """Return the records at or after the end offsets that the tables already have."""
    for topic, of_topic in held.items():
        ends = F.create_map(*(F.lit(value) for pair in of_topic.items() for value in pair))
        end = F.coalesce(ends[F.col("partition")], F.lit(0))
        records = records.where((F.col("topic") != topic) | (F.col("offset") >= end))
    return records


def _without(held: Offsets, passed: Offsets) -> Offsets:
    """Return `held` without the partitions in `passed`, whose next records are all new."""
    left = {
        topic: {number: offset for number, offset in of_topic.items() if number not in passed.get(topic, {})}
        for topic, of_topic in held.items()
    }
    return {topic: of_topic for topic, of_topic in left.items() if of_topic}


def _contents(decoded: DataFrame, events: DataFrame) -> Contents:
    """Summarize both in a single Spark job."""
    of_groups = decoded.select(
        F.lit(base.OFFSETS_TOPIC).alias("log"),
        F.col("record_kind").alias("kind"),
        F.col("offset_commit.topic").alias("topic"),
        *_WHERE,
    )
    of_events = events.select(
        F.col("topic").alias("log"),
        F.lit(base.CLIENT_EVENT).alias("kind"),
        F.lit(None).cast("string").alias("topic"),
        *_WHERE,
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
    contents = Contents()
    for row in counted.collect():
        contents.records[row.kind] += row.records
        contents.dates.add(row.date)
        contents.topics.update(row.topics)
        ends = contents.ends.setdefault(row.log, {})
        ends[row.log_partition] = max(row.last + 1, ends.get(row.log_partition, 0))
    return contents
