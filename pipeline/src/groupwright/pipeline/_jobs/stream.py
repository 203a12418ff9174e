"""The streaming job: keeps the tables up to date with the cluster.

One streaming query reads all records, decodes them once, and appends them to the base tables batch by batch.
It starts at the positions in the tables with an empty checkpoint, and again when the topics change. Other
threads sample log-end offsets, write the samples, recompute derived tables, and compact dates that the
watermark has passed, so none of these waits for another.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.backlog import unread_seconds
from groupwright.pipeline._jobs.context import JobContext, job_context
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._jobs.endpoints import serving
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.maintenance import is_due, maintain
from groupwright.pipeline._jobs.open_transactions import TransactionMonitor, held_partitions
from groupwright.pipeline._jobs.samples import EndOffsets
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import CHECKPOINT, BatchRange, planned_end
from groupwright.pipeline._jobs.status import StreamStatus
from groupwright.pipeline._jobs.worker import Worker
from groupwright.pipeline._tables import Batch
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline.errors import PipelineError, spark_errors, summarize_error

OnProgress = Callable[[str], None]
"""Called with a line of progress."""

_CHECK_SECONDS = 1
"""Interval at which the main thread checks the query and the workers."""
_PREPARE_SECONDS = 0.1
"""Interval at which the end of a preparation is checked."""
_TOPICS_SECONDS = 5
"""Interval at which topics and log-end offsets are checked."""
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
        stop: Set this event to end the job. The current batch and derived tables are finished first, within
            `stop_seconds` and at most a minute more.
        on_progress: Called after each batch.

    Raises:
        PipelineError: The cluster does not respond, or the query failed.
        TablesError: The tables cannot be opened or written.
    """
    with spark_errors("the stream"), job_context(spark, settings, "stream") as context:
        stall_seconds = settings.stall_seconds + settings.trigger_seconds
        status = StreamStatus(settings.format, stall_seconds, lambda: context.lease.is_held)
        with serving(settings.metrics_address, status):
            _Stream(context, status, on_progress).run(stop)


class _Stream:
    """A run of the job: queries one after the other, beside the workers."""

    def __init__(self, context: JobContext, status: StreamStatus, on_progress: OnProgress) -> None:
        self._context = context
        self._status = status
        self._settings = context.settings
        self._on_progress = on_progress
        self._topics = context.known_topics()
        self._writer = ""
        self._sampler = f"sampler-{uuid4()}"
        self._samples = SimpleQueue[EndOffsets]()
        self._sample_batches = 0
        self._topics_checked = 0.0
        self._transactions = TransactionMonitor()
        self._query: StreamingQuery | None = None
        self._deadline = 0.0
        self._is_ending = False
        self._is_stuck = False
        """True if a query or a preparation has not ended in time: it may still write."""
        self._has_refused = Event()

    def run(self, stop: Event) -> None:
        self._workers = [Worker(self._context.spark, *each) for each in self._periodic()]
        try:
            while self._follow(stop):
                if self._is_stuck:
                    raise PipelineError("the topics have changed, and the query is stuck: restart the job")
                self._on_progress("the topics have changed: the query starts again")
        finally:
            finished = self._stop_workers(stop)
        for worker, is_finished in zip(self._workers, finished, strict=True):
            if is_finished:  # a cancelled worker has the cancellation as its error
                worker.check()
        is_at_rest = all(finished) and not self._is_stuck
        if is_at_rest and not stop.is_set():  # with `once`
            self._conclude()
            self._maintain(datetime.now(UTC).date() - timedelta(days=1))
        elif is_at_rest:
            last = Worker(self._context.spark, "derived-tables", None, self._conclude)
            if last.stop(self._deadline - time.monotonic()):
                last.check()
        if stale := self._context.state.stale():
            dates = ", ".join(day.isoformat() for day in sorted(stale))
            _log.warning("The derived tables of %s are not up to date; the next job recomputes them", dates)

    def _stop_workers(self, stop: Event) -> list[bool]:
        """Stop the workers, and return of each whether it had finished in time."""
        # If the job was stopped, `_finish` or `_prepare` has set the deadline, which the workers share.
        if not (stop.is_set() and self._is_ending):
            self._deadline = time.monotonic() + self._settings.stop_seconds
        finished = [worker.stop(self._deadline - time.monotonic()) for worker in self._workers]
        if self._is_stuck or any(worker.is_running for worker in self._workers):
            self._context.lease.abandon()
        return finished

    def _conclude(self) -> bool:
        """Take and write a last sample, and derive what the last batches have changed."""
        if self._settings.end_offsets_seconds:
            self._sample()
            self._write_samples()
        self._derive()
        return True

    def _periodic(self) -> Iterator[tuple[str, float, Callable[[], bool]]]:
        """Yield the periodic tasks: name, interval in seconds, and function."""
        settings = self._settings
        if settings.end_offsets_seconds:
            yield "sampler", settings.end_offsets_seconds, self._sample
            yield "sample-writer", 0.0, self._write_samples
        if not settings.once:
            yield "derived-tables", max(settings.derive_seconds, _CHECK_SECONDS), self._derive_and_compact

    def _follow(self, stop: Event) -> bool:
        """Run a query until it ends, and return whether to start another because the topics have changed."""
        start = self._prepare(stop)
        if start is None:
            return False
        query: StreamingQuery | None = None
        try:
            query = self._query = self._start(start)
            while query.isActive and not stop.is_set() and not self._topics_have_changed():
                for worker in self._workers:
                    worker.check()
                self._wait(query)
            self._finish(query)
        except PipelineError:
            if not self._context.losses():  # raises with on_data_loss=fail, else the next query goes on
                raise
            return True
        finally:
            if query is not None and not _stop(query):
                self._is_stuck = True
        return not stop.is_set() and not self._settings.once

    def _prepare(self, stop: Event) -> Offsets | None:
        """Return the start offsets, or None if the job was stopped meanwhile.

        A pending batch, which is added first, has `stop_seconds` after the stop; then it is cancelled.
        """
        found: list[Offsets] = []

        def prepare() -> bool:
            found.append(self._context.prepare())
            self._topics |= self._context.repeated.topics
            return True

        worker = Worker(self._context.spark, "prepare", None, prepare)
        while worker.is_running and not stop.wait(_PREPARE_SECONDS):
            pass
        if worker.is_running:
            self._is_ending = True
            self._deadline = time.monotonic() + self._settings.stop_seconds
            if not worker.stop(self._settings.stop_seconds):
                self._is_stuck = worker.is_running
                return None
        worker.check()
        return None if stop.is_set() else found[0]

    def _start(self, start: Offsets) -> StreamingQuery:
        settings = self._settings
        self._is_ending = False
        self._has_refused.clear()
        self._status.losses_accepted(self._context.accepted_losses)
        if self._query is None:
            cluster, topics = self._context.cluster, self._context.topics
            now = datetime.now(UTC)
            self._status.started_behind(unread_seconds(partial(cluster.offsets, topics), start, now))
        self._writer, self._topics_checked = f"stream-{uuid4()}", time.monotonic()
        Folder(self._context.spark, settings.state_folder).delete(CHECKPOINT)
        self._context.spark.conf.set(_STOP_TIMEOUT, f"{_STOP_SECONDS}s")
        writer = (
            source.stream(self._context.spark, settings, start)
            .withWatermark("timestamp", _interval(settings.watermark_seconds))
            .writeStream.queryName("groupwright")
            .option("checkpointLocation", f"{settings.state_folder}/{CHECKPOINT}")
            .foreachBatch(self._add)
        )
        if settings.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=_interval(settings.trigger_seconds)).start()

    def _add(self, records: DataFrame, batch_id: int) -> None:
        """Add a batch of the query to the tables (`foreachBatch`)."""
        if self._is_ending:  # the next query reads from the positions in the tables, which lack this batch
            self._has_refused.set()
            return
        started = time.monotonic()
        # The batch ends where Spark planned it, not after its last record: aborted records and transaction
        # markers, which are not returned, may follow.
        checkpoint = Folder(self._context.spark, self._settings.state_folder) / CHECKPOINT
        start, end = self._context.ingest.positions.offsets(), planned_end(checkpoint, batch_id)
        span = BatchRange.between(Batch(self._writer, batch_id), start, end)
        summary = self._context.ingest.add(records, span)
        self._topics |= summary.topics
        count, seconds = summary.records.total(), time.monotonic() - started
        self._status.batch_added(summary, seconds)
        kinds = ", ".join(f"{kind} {of_kind:,}" for kind, of_kind in summary.records.most_common())
        self._on_progress(f"batch {batch_id}: {count:,} records in {seconds:.1f} s ({kinds or 'none new'})")

    def _topics_have_changed(self) -> bool:
        if time.monotonic() - self._topics_checked < _TOPICS_SECONDS:
            return False
        self._topics_checked = time.monotonic()
        self._observe_logs()
        if self._settings.once:
            return False
        has_changed = self._context.topics_have_changed()
        if has_changed:
            self._context.losses()  # a query of a deleted topic stops after minutes: the message comes first
        return has_changed

    def _observe_logs(self) -> None:
        stable, ends = self._context.log_ends()
        held = held_partitions(stable, ends)
        for line in self._transactions.update(held, self._topics_checked):
            _log.warning("%s", line)
        self._status.logs_observed(stable, self._read_offsets(), sum(each.records for each in held))

    def _read_offsets(self) -> Offsets:
        """Return the next offset to read of each partition.

        Those in the tables are after the last records. Spark's are after the markers of transactions, too,
        which are at the end of a log whose consumers commit in transactions.
        """
        offsets = self._context.ingest.positions.offsets()
        progress: Any = self._query and self._query.lastProgress
        # The attribute `endOffset` is the text of a Python object.
        for each in json.loads(progress.json)["sources"] if progress else ():
            for topic, by_partition in (each["endOffset"] or {}).items():
                of_topic = offsets.setdefault(topic, {})
                for partition, offset in by_partition.items():
                    of_topic[int(partition)] = max(offset, of_topic.get(int(partition), 0))
        return offsets

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination(_CHECK_SECONDS)
        except StreamingQueryException as error:
            raise PipelineError(f"the stream failed: {summarize_error(error)}") from error

    def _finish(self, query: StreamingQuery) -> None:
        """Wait up to `stop_seconds` for the current batch, then stop the query.

        With many records to read, Spark starts the next batch at once; `_add` refuses it.
        """
        self._is_ending = True
        self._deadline = time.monotonic() + self._settings.stop_seconds
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and not self._has_refused.is_set()
            and time.monotonic() < self._deadline
        ):
            self._wait(query)
        _stop(query)
        if failure := query.exception():
            raise PipelineError(f"the stream failed: {summarize_error(failure)}")

    def _sample(self) -> bool:
        """Sample log-end offsets. Nothing else runs in this thread, so it keeps its interval."""
        topics = set(self._topics)
        if not topics:
            return False
        with self._timed("sample"):
            sample = self._context.sample_ends(topics)
        if sample:
            self._samples.put(sample)
        return bool(sample)

    def _write_samples(self) -> bool:
        samples: list[EndOffsets] = []
        while not self._samples.empty():
            samples.append(self._samples.get())
        if samples:
            with self._timed("write_samples"):
                self._context.ingest.add_samples(samples, Batch(self._sampler, self._sample_batches))
            self._sample_batches += 1
        return bool(samples)

    def _derive_and_compact(self) -> bool:
        self._derive()
        self._compact()
        return True

    def _derive(self) -> None:
        context = self._context
        stale = context.state.stale()
        if not stale:
            return
        with self._timed("derive") as started:
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
        now = datetime.now(UTC)
        try:
            passed = min(datetime.fromisoformat(watermark), now)
        except ValueError:  # a record of the events' topic has a time after the year 9999
            passed = now
        last_date = passed.date() - timedelta(days=1)
        if last_date.year >= 2000:  # noqa: PLR2004 - the watermark is 1970 before the first record
            self._maintain(last_date)

    def _maintain(self, last_date: date) -> None:
        if not is_due(self._context.state, last_date):
            return
        with self._timed("compact"):
            maintain(
                self._context.spark, self._context.tables, self._settings, self._context.state, last_date
            )

    @contextmanager
    def _timed(self, task: str) -> Iterator[float]:
        """Record the duration of a task, unless it fails; yields its start."""
        started = time.monotonic()
        yield started
        self._status.task_ended(task, time.monotonic() - started)


def _interval(seconds: float) -> str:
    """Return a time as Spark reads it: without an exponent."""
    return f"{round(seconds * 1000)} milliseconds"


def _stop(query: StreamingQuery) -> bool:
    """Stop a query, and return whether its thread has ended; `isActive` is false as soon as it is stopped."""
    try:
        query.stop()
    except (PySparkException, Py4JError) as error:
        _log.warning("The query has not stopped within %d s: %s", _STOP_SECONDS, summarize_error(error))
        return False
    return True
