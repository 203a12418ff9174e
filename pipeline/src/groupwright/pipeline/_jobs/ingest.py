"""Ingestion of a batch of records into the base tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._decoding import decode
from groupwright.pipeline._jobs import positions
from groupwright.pipeline._jobs.positions import Positions
from groupwright.pipeline._jobs.samples import EndOffsets, end_offset_rows
from groupwright.pipeline._jobs.state import BatchRange, State
from groupwright.pipeline._side_by_side import side_by_side
from groupwright.pipeline._tables import Batch, Tables
from groupwright.pipeline._transforms import base

_ROWS_PER_FILE = 500_000


@dataclass(slots=True)
class BatchSummary:
    """Summary of a batch's records.

    Attributes:
        records: Number of records, by kind.
        dates: The dates of its records, and the date before if an event is of a rebalance of that date.
        topics: The topics that groups committed to.
        errors: Number of records with an error, which are in `quarantine`.
    """

    records: Counter[str] = field(default_factory=Counter)
    dates: set[date] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    errors: int = 0

    @property
    def kinds(self) -> set[str]:
        """The kinds of records, including `WITH_ERROR`."""
        return {*self.records, *({base.WITH_ERROR} if self.errors else ())}


class Ingest:
    """Adds batches to the base tables, each exactly once.

    Before a batch is written, its range is recorded as pending, and afterwards its end in `read_positions`. A
    job that finds a pending batch adds it again with the same identity and range, so the tables that have it
    already do not change.

    Attributes:
        positions: The newest positions.
    """

    def __init__(self, spark: SparkSession, tables: Tables, state: State) -> None:
        """Add to these tables, from their newest positions on."""
        self.positions = positions.load(tables)
        self._spark = spark
        self._tables = tables
        self._state = state

    def add(self, records: DataFrame, span: BatchRange) -> BatchSummary:
        """Add records, and return a summary.

        Args:
            records: Columns of Spark's Kafka source.
            span: Identity of the batch, and the range of offsets that was read, which may have no records.
        """
        decoded = decode(records.where(F.col("topic") == base.OFFSETS_TOPIC))
        events = base.parsed_events(records.where(F.col("topic") != base.OFFSETS_TOPIC))
        cached = [each.persist(StorageLevel.MEMORY_AND_DISK) for each in (decoded, events)]
        try:
            summary = _summarize(decoded, events)
            if span.start != span.end:
                self._write(decoded, events, summary, span)
        finally:
            for each in cached:
                each.unpersist()
        return summary

    def record_positions(self, new: Positions, batch: Batch) -> None:
        """Add a snapshot of the positions."""
        new = replace(new, newest_date=max(datetime.now(UTC).date(), self.positions.newest_date))
        self._tables.add(schemas.READ_POSITIONS, positions.frame(self._spark, new), batch)
        self.positions = new

    def add_samples(self, samples: Sequence[EndOffsets], batch: Batch) -> None:
        """Add samples of log-end offsets. May be called by another thread than `add`."""
        dates = {each.time.date() for each in samples}
        self._state.mark_stale(dates)
        self._tables.add(schemas.END_OFFSETS, end_offset_rows(self._spark, samples), batch)
        self._state.mark_stale(dates)  # again, as in `_write`

    def _write(self, decoded: DataFrame, events: DataFrame, summary: BatchSummary, span: BatchRange) -> None:
        self._state.begin(span)
        self._state.mark_stale(summary.dates)
        files = max(1, -(-summary.records.total() // _ROWS_PER_FILE))
        parts_of: dict[schemas.Table, list[DataFrame]] = {}
        for rows, sources in ((decoded, base.FROM_DECODED), (events, base.FROM_EVENTS)):
            for each in sources:
                if each.kinds & summary.kinds:
                    parts_of.setdefault(each.table, []).append(each.rows(rows))
        with side_by_side(self._spark) as start:
            for table, parts in parts_of.items():
                rows = reduce(DataFrame.union, parts).coalesce(files)
                start(partial(self._tables.add, table, rows, span.batch))
        # Again, because a derivation that ran meanwhile has unmarked the dates without these rows.
        self._state.mark_stale(summary.dates)
        self.record_positions(self.positions.advanced(span.end), span.batch)
        self._state.finish()


def _summarize(decoded: DataFrame, events: DataFrame) -> BatchSummary:
    """Summarize records and events in a single Spark job."""
    of_groups = decoded.select(
        F.col("record_kind").alias("kind"),
        F.col("offset_commit.topic").alias("topic"),
        "error",
        "log_time",
        F.lit(None).cast("date").alias("date_before"),
    )
    of_events = events.select(
        F.lit(base.CLIENT_EVENT).alias("kind"),
        F.lit(None).cast("string").alias("topic"),
        F.when(~base.is_event(), "invalid").alias("error"),
        "log_time",
        F.when(base.is_event(), base.date_before()).alias("date_before"),
    )
    counted = (
        of_groups.union(of_events)
        .groupBy("kind", F.to_date("log_time").alias("date"))
        .agg(
            F.count("*").alias("records"),
            F.count("error").alias("errors"),
            F.collect_set("topic").alias("topics"),
            F.collect_set("date_before").alias("dates_before"),
        )
    )
    summary = BatchSummary()
    for row in counted.collect():
        summary.records[row.kind] += row.records
        summary.errors += row.errors
        summary.dates.update({row.date, *row.dates_before})
        summary.topics.update(row.topics)
    return summary
