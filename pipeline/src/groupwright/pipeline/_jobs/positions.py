"""Positions of the jobs in the topics that they read, as snapshots in the table `read_positions`.

Each batch ends with a snapshot that has its identity, so the snapshot is there if and only if the batch is
complete. The newest snapshot is where the next job starts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._tables import Tables
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline._transforms.base import OFFSETS_TOPIC

_RECENT = timedelta(days=1)
_ABOVE_OFFSETS = 1 << 52
"""Added to the offsets of a recreated topic: more than the offsets of any log."""
_VALUES = ("sequence", "cluster_id", "topic_id", "next_offset", "date")
_OF_OFFSETS_TOPIC = (
    schemas.OFFSET_COMMITS,
    schemas.GROUP_GENERATIONS,
    schemas.GROUP_MEMBERS,
    *schemas.MEMBER_RECORDS,
)


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """Position in a topic: its id, and the next offset of each partition."""

    id: str
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Positions:
    """A snapshot of the positions in all topics.

    Attributes:
        sequence: Number of the snapshot, ascending; 0 if there is none.
        cluster_id: The cluster's id; empty if unknown.
        topics: The positions, by topic.
        newest_date: The date of the newest snapshot in the table. Later ones have no earlier date, also if
            the clock goes back: `load` begins with the newest dates.
    """

    sequence: int = 0
    cluster_id: str = ""
    topics: Mapping[str, TopicPosition] = field(default_factory=dict)
    newest_date: date = date.min

    def advanced(self, ends: Offsets) -> "Positions":
        """Return the positions after a batch with these end offsets, exclusive. Offsets never go back."""
        topics = {
            name: replace(
                topic,
                offsets={
                    **topic.offsets,
                    **{
                        partition: max(offset, topic.offsets.get(partition, 0))
                        for partition, offset in ends.get(name, {}).items()
                    },
                },
            )
            for name, topic in self.topics.items()
        }
        return replace(self, sequence=self.sequence + 1, topics=topics)

    def has_passed(self, ends: Offsets) -> bool:
        """Return whether a batch with these end offsets, exclusive, is complete."""
        return self.sequence > 0 and all(
            topic in self.topics and offset <= self.topics[topic].offsets.get(partition, 0)
            for topic, by_partition in ends.items()
            for partition, offset in by_partition.items()
        )

    def offsets(self) -> Offsets:
        """Return the next offset of each partition."""
        return {name: dict(topic.offsets) for name, topic in self.topics.items()}


def load(tables: Tables) -> Positions:
    """Return the newest snapshot; an empty one if the table has none."""
    # A snapshot has all partitions, so usually the newest dates suffice.
    recent = datetime.now(UTC).date() - _RECENT
    for since in (recent, None):
        rows = (
            tables.read(schemas.READ_POSITIONS, since=since)
            .groupBy("topic", "log_partition")
            .agg(F.max_by(F.struct(*_VALUES), "sequence").alias("newest"))
            .select("topic", "log_partition", "newest.*")
            .collect()
        )
        if rows:
            newest = max(row.sequence for row in rows)
            return _snapshot([row for row in rows if row.sequence == newest])
    return Positions()


def frame(spark: SparkSession, positions: Positions) -> DataFrame:
    """Return a snapshot as rows of `read_positions`."""
    now = datetime.now(UTC)
    rows = [
        {
            "sequence": positions.sequence,
            "cluster_id": positions.cluster_id,
            "topic": name,
            "topic_id": topic.id,
            "log_partition": partition,
            "next_offset": offset,
            "time": now,
            "date": positions.newest_date,
        }
        for name, topic in positions.topics.items()
        for partition, offset in topic.offsets.items()
    ]
    table = schemas.READ_POSITIONS
    return spark.createDataFrame(to_arrow(rows, table), table.schema).coalesce(1)


def recreations(tables: Tables, since: date | None) -> list[int]:
    """Return the times at which former offsets topics were last read, in microseconds since 1970.

    Args:
        tables: The tables.
        since: The first date of the records that are to be ordered; None for all.
    """
    known = tables.read(schemas.READ_POSITIONS, since=since).where(F.col("topic") == OFFSETS_TOPIC)
    last = known.groupBy("topic_id").agg(F.unix_micros(F.max("time")).alias("last")).collect()
    return sorted(row["last"] for row in last)[:-1]


def with_ascending_offsets(rows: DataFrame, recreated: Collection[int]) -> DataFrame:
    """Return rows of a base table whose `log_offset` is the order of each group's records in the log.

    All records of a group are in one partition, so their offsets are their order. Their times are not: the
    clock of a new coordinator can be behind. A recreated offsets topic begins at offset 0 again.

    Args:
        rows: Rows with `log_offset` and `log_time`.
        recreated: The result of `recreations`.
    """
    for last in recreated:
        is_later = F.unix_micros("log_time") > last
        rows = rows.withColumn(
            "log_offset", F.col("log_offset") + F.when(is_later, _ABOVE_OFFSETS).otherwise(0)
        )
    return rows


def as_in_log(log_offset: Column) -> Column:
    """Return the offset in the log for one of `with_ascending_offsets`."""
    return log_offset % _ABOVE_OFFSETS


def derived_offsets(tables: Tables, events_topic: str) -> Offsets:
    """Return the offset after the last record that the base tables have, by topic and partition.

    For tables without snapshots. Records that have no row in any table are not counted.
    """
    offsets: Offsets = {}
    rows = _read(tables, events_topic).groupBy("log_topic", "log_partition")
    for row in rows.agg(F.max("log_offset").alias("last")).collect():
        offsets.setdefault(row.log_topic, {})[row.log_partition] = row["last"] + 1
    return offsets


def newest_time(tables: Tables, events_topic: str, topic: str, partition: int) -> datetime | None:
    """Return the time of the newest record of a partition in the base tables."""
    wanted = (F.col("log_topic") == topic) & (F.col("log_partition") == partition)
    rows = _read(tables, events_topic).where(wanted)
    found: datetime | None = rows.agg(F.max("log_time").alias("newest")).collect()[0].newest
    return found


def _read(tables: Tables, events_topic: str) -> DataFrame:
    """Return where the rows of the base tables are in the log, with the `log_topic` of each."""
    of_tables = [
        *(tables.read(table).withColumn("log_topic", F.lit(OFFSETS_TOPIC)) for table in _OF_OFFSETS_TOPIC),
        tables.read(schemas.CLIENT_EVENTS).withColumn("log_topic", F.lit(events_topic)),
        tables.read(schemas.QUARANTINE).withColumnRenamed("topic", "log_topic"),
    ]
    places = (rows.select("log_topic", "log_partition", "log_offset", "log_time") for rows in of_tables)
    return reduce(DataFrame.union, places)


def _snapshot(rows: Sequence[Row]) -> Positions:
    topics: dict[str, TopicPosition] = {}
    for name in {row.topic for row in rows}:
        of_topic = [row for row in rows if row.topic == name]
        offsets = {row.log_partition: row.next_offset for row in of_topic}
        topics[name] = TopicPosition(of_topic[0].topic_id, offsets)
    return Positions(rows[0].sequence, rows[0].cluster_id, topics, rows[0].date)
