"""The streaming job: keeps the tables up to date with the cluster.

One streaming query reads all records, decodes them once, and appends them to the base tables batch by batch.
It starts at the positions in the tables with an empty checkpoint, and again when the topics change. Other
threads sample log-end offsets, write the samples, recompute derived tables, and compact dates that the
watermark has passed, so none of these waits for another.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from queue import SimpleQueue
from threading import Event
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.context import JobContext, job_context
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._jobs.maintenance import maintain
from groupwright.pipeline._jobs.open_transactions import TransactionMonitor
from groupwright.pipeline._jobs.samples import EndOffsets
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import CHECKPOINT
from groupwright.pipeline._jobs.worker import Worker
from groupwright.pipeline._tables import Batch
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline.errors import PipelineError, spark_errors, summarize_error

OnProgress = Callable[[str], None]
"""Called with a line of progress."""

_CHECK_SECONDS = 1
_TOPICS_SECONDS = 5
_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
_STOP_SECONDS = 30

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
    with spark_errors("the stream"), job_context(spark, settings, "stream") as context:
        _Stream(context, on_progress).run(stop)


class _Stream:
    def __init__(self, context: JobContext, on_progress: OnProgress) -> None:
        self._context = context
        self._settings = context.settings
        self._on_progress = on_progress
        self._topics = context.known_topics()
        self._writer = ""
        self._sampler = f"sampler-{uuid4()}"
        self._samples = SimpleQueue[EndOffsets]()
        self._written = 0
        self._checked = 0.0
        self._transactions = TransactionMonitor()
        self._query: StreamingQuery | None = None
        self._compacted: date | None = None

    def run(self, stop: Event) -> None:
        self._workers = [Worker(self._context.spark, *each) for each in self._periodic()]
        try:
            while self._follow(stop):
                if self._query and self._query.isActive:
                    raise PipelineError("the topics have changed, and the query is stuck: restart the job")
                self._on_progress("the topics have changed: the query starts again")
        finally:
            for worker in self._workers:
                worker.stop()
        if self._settings.end_offsets_seconds:
            self._sample()
            self._write_samples()
        self._derive()

    def _periodic(self) -> Iterator[tuple[str, float, Callable[[], bool]]]:
        settings = self._settings
        if settings.end_offsets_seconds:
            yield "sampler", settings.end_offsets_seconds, self._sample
            yield "sample-writer", 0.0, self._write_samples
        if not settings.once:
            yield "derived-tables", max(settings.derive_seconds, _CHECK_SECONDS), self._maintain

    def _follow(self, stop: Event) -> bool:
        """Run a query until it ends, and return whether to start another because the topics have changed."""
        query = self._query = self._start()
        try:
            while query.isActive and not stop.is_set() and not self._topics_have_changed():
                for worker in self._workers:
                    worker.check()
                self._wait(query)
            self._finish(query)
        except PipelineError:
            if not self._context.losses():  # raises what is missing, unless the job is to go on
                raise
            return True
        finally:
            _stop(query)
        return not stop.is_set() and not self._settings.once

    def _start(self) -> StreamingQuery:
        settings = self._settings
        start = self._context.prepare()
        self._writer, self._checked = f"stream-{uuid4()}", time.monotonic()
        Folder(self._context.spark, settings.state_folder).delete(CHECKPOINT)
        self._context.spark.conf.set(_STOP_TIMEOUT, f"{_STOP_SECONDS}s")
        writer = (
            source.stream(self._context.spark, settings, start)
            .withWatermark("timestamp", f"{settings.watermark_seconds:g} seconds")
            .writeStream.queryName("groupwright")
            .option("checkpointLocation", f"{settings.state_folder}/{CHECKPOINT}")
            .foreachBatch(self._add)
        )
        if settings.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{settings.trigger_seconds:g} seconds").start()

    def _add(self, records: DataFrame, batch_id: int) -> None:
        started = time.monotonic()
        summary = self._context.ingest.add(records, Batch(self._writer, batch_id))
        self._topics |= summary.topics
        count, seconds = summary.records.total(), time.monotonic() - started
        kinds = ", ".join(f"{kind} {of_kind:,}" for kind, of_kind in summary.records.most_common())
        self._on_progress(f"batch {batch_id}: {count:,} records in {seconds:.1f} s ({kinds or 'none new'})")

    def _topics_have_changed(self) -> bool:
        if self._settings.once or time.monotonic() - self._checked < _TOPICS_SECONDS:
            return False
        self._checked = time.monotonic()
        for line in self._transactions.update(self._context.held_partitions(), self._checked):
            _log.warning("%s", line)
        has_changed = self._context.topics_have_changed()
        if has_changed:
            self._context.losses()  # a query of a deleted topic stops after minutes: the message comes first
        return has_changed

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
        _stop(query)
        if failure := query.exception():
            raise PipelineError(f"the stream failed: {summarize_error(failure)}")

    def _sample(self) -> bool:
        """Sample log-end offsets. Nothing else runs in this thread, so it keeps its interval."""
        topics = set(self._topics)
        sample = self._context.sample_ends(topics) if topics else None
        if sample:
            self._samples.put(sample)
        return bool(sample)

    def _write_samples(self) -> bool:
        samples: list[EndOffsets] = []
        while not self._samples.empty():
            samples.append(self._samples.get())
        if samples:
            self._context.ingest.add_samples(samples, Batch(self._sampler, self._written))
            self._written += 1
        return bool(samples)

    def _maintain(self) -> bool:
        self._derive()
        self._compact()
        return True

    def _derive(self) -> None:
        started = time.monotonic()
        context = self._context
        stale = context.state.stale()
        if not stale:
            return
        derive(context.tables, stale, lookback_days=self._settings.lookback_days)
        context.state.mark_derived(stale)
        dates = ", ".join(day.isoformat() for day in sorted(stale))
        self._on_progress(
            f"rebalances, lag and churn of {dates} recomputed in {time.monotonic() - started:.1f} s"
        )

    def _compact(self) -> None:
        """Compact the dates that the watermark has passed, and delete what is too old."""
        progress: Any = self._query and self._query.lastProgress
        watermark = progress and progress["eventTime"].get("watermark")
        if not watermark:
            return
        last_date = datetime.fromisoformat(watermark).date() - timedelta(days=1)
        if last_date.year < 2000 or last_date == self._compacted:  # noqa: PLR2004 - the watermark is 1970 before the first record
            return
        maintain(self._context.tables, self._settings, last_date)
        self._compacted = last_date


def _stop(query: StreamingQuery) -> None:
    try:
        query.stop()
    except (PySparkException, Py4JError) as error:
        _log.warning("The query has not stopped within %d s: %s", _STOP_SECONDS, summarize_error(error))
