"""The streaming job: keeps the tables up to date with the cluster.

One streaming query reads all records, decodes them once, and appends them to the base tables batch by batch.
Meanwhile the thread of `run_stream` samples log-end offsets, recomputes derived tables, and compacts dates
that the watermark has passed.
"""

import json
import logging
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from threading import Event
from typing import Any
from uuid import uuid4

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.context import JobContext, job_context, log_if_repartitioned
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._tables import Batch
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._transforms.base import OFFSETS_TOPIC
from groupwright.pipeline.errors import PipelineError, spark_errors, summarize_error

OnProgress = Callable[[str], None]
"""Called with a line of progress."""

_CHECK_SECONDS = 1

_log = logging.getLogger("groupwright.pipeline")


def run_stream(
    spark: SparkSession, settings: Settings, stop: Event, on_progress: OnProgress = _log.info
) -> None:
    """Keep the tables up to date until `stop` is set, or with `once` until all present records are read.

    Args:
        spark: A session with Spark's Kafka source.
        settings: The job's settings.
        stop: Set this event to end the job; the current batch is finished first.
        on_progress: Called after each batch.

    Raises:
        PipelineError: The cluster does not respond, or the query failed.
        TablesError: The tables cannot be opened or written.
    """
    with spark_errors("the stream"), job_context(spark, settings) as context:
        _Stream(context, on_progress).run(stop)


class _Stream:
    def __init__(self, context: JobContext, on_progress: OnProgress) -> None:
        self._context = context
        self._settings = context.settings
        self._on_progress = on_progress
        self._topics = context.known_topics()
        self._writer = ""
        self._sampler = f"sampler-{uuid4()}"
        self._samples = 0
        self._sampled, self._derived = -1e9, time.monotonic()
        self._compacted: date | None = None

    def run(self, stop: Event) -> None:
        query = self._start()
        try:
            while query.isActive and not stop.is_set():
                self._run_periodic(query)
                self._wait(query)
            self._finish(query)
            if failure := query.exception():
                raise PipelineError(f"the stream failed: {summarize_error(failure)}")
            self._sample()
            self._derive()
        finally:
            query.stop()

    def _start(self) -> StreamingQuery:
        settings = self._settings
        writer = (
            source.stream(self._context.spark, settings, self._context.start())
            .withWatermark("timestamp", f"{settings.watermark_seconds:g} seconds")
            .writeStream.queryName("groupwright")
            .option("checkpointLocation", settings.checkpoint)
            .foreachBatch(self._add)
        )
        if settings.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{settings.trigger_seconds:g} seconds").start()

    def _add(self, records: DataFrame, batch_id: int) -> None:
        started = time.monotonic()
        summary = self._context.ingest.add(records, Batch(self._writer or self._checkpoint_id(), batch_id))
        self._topics |= summary.topics
        count, seconds = summary.records.total(), time.monotonic() - started
        kinds = ", ".join(f"{kind} {of_kind:,}" for kind, of_kind in summary.records.most_common())
        self._on_progress(f"batch {batch_id}: {count:,} records in {seconds:.1f} s ({kinds or 'none new'})")

    def _checkpoint_id(self) -> str:
        """Return the writer's id, with the checkpoint's in it: a new checkpoint numbers batches from 0."""
        text = Folder(self._context.spark, self._settings.checkpoint).read("metadata")
        if text is None:
            raise PipelineError(
                f"{self._settings.checkpoint} has no metadata: restore the checkpoint, or delete it "
                "to start a new one"
            )
        self._writer = f"stream-{json.loads(text)['id']}"
        return self._writer

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination(_CHECK_SECONDS)
        except StreamingQueryException as error:
            raise PipelineError(f"the stream failed: {summarize_error(error)}") from error

    def _finish(self, query: StreamingQuery) -> None:
        """Wait up to `stop_seconds` for the current batch, then stop the query."""
        deadline = time.monotonic() + self._settings.stop_seconds
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            self._wait(query)
        query.stop()

    def _run_periodic(self, query: StreamingQuery) -> None:
        """Run the periodic work that is due: sampling, derived tables, compaction."""
        now, settings = time.monotonic(), self._settings
        if (
            settings.end_offsets_seconds
            and now - self._sampled >= settings.end_offsets_seconds
            and self._topics
        ):
            self._sample()
        if not settings.once and now - self._derived >= settings.derive_seconds:
            self._derive()
            self._compact(query)

    def _sample(self) -> None:
        if not self._settings.end_offsets_seconds:
            return
        self._sampled = time.monotonic()
        context = self._context
        context.sample_ends(set(self._topics), Batch(self._sampler, self._samples))
        self._samples += 1
        partitions = context.cluster.topics({OFFSETS_TOPIC})[OFFSETS_TOPIC].partitions
        if log_if_repartitioned(context.topics[OFFSETS_TOPIC].partitions, partitions):
            raise PipelineError(
                f"the number of partitions of {OFFSETS_TOPIC} has changed: restart the job to read them all"
            )

    def _derive(self) -> None:
        self._derived = time.monotonic()
        context = self._context
        with context.ingest.lock:
            stale = context.state.stale()
        if not stale:
            return
        derive(context.tables, stale, lookback_days=self._settings.lookback_days)
        with context.ingest.lock:
            context.state.mark_derived(stale)
        dates = ", ".join(day.isoformat() for day in sorted(stale))
        self._on_progress(
            f"rebalances, lag and churn of {dates} recomputed in {time.monotonic() - self._derived:.1f} s"
        )

    def _compact(self, query: StreamingQuery) -> None:
        """Compact the dates that the watermark has passed."""
        progress: Any = query.lastProgress
        watermark = progress and progress["eventTime"].get("watermark")
        if not watermark:
            return
        last_date = datetime.fromisoformat(watermark).date() - timedelta(days=1)
        if last_date.year < 2000 or last_date == self._compacted:  # noqa: PLR2004 - the watermark is 1970 before the first record
            return
        dates = [last_date - timedelta(days=number) for number in range(self._settings.lookback_days)]
        for table in schemas.BASE_TABLES:
            with self._context.ingest.lock:
                self._context.tables.compact(table, dates)
        self._compacted = last_date
