"""Status of a running stream, for its metrics and probes: what it has done, and how far it is behind.

All times are those of the monotonic clock, except where they are exported.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from threading import Lock
from typing import NamedTuple

from prometheus_client import Metric

from groupwright.core.metrics import MetricSpec
from groupwright.pipeline._jobs import metrics
from groupwright.pipeline._jobs.backlog import count_unread
from groupwright.pipeline._jobs.data_loss import DataLoss, Kind
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.metrics import TASKS


class _Moment(NamedTuple):
    monotonic: float
    wall: float


@dataclass(slots=True)
class _Task:
    runs: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    last_end: float = 0.0
    """Wall-clock time, since the epoch."""


@dataclass(slots=True)
class _Delay:
    """Delay of the positions behind the ends of the logs, with the memory of a single observation.

    `read_until` is a time up to which all records have been read: that of an observed end that the positions
    have passed since. So the delay is never too small. It is too large by at most the time that the positions
    took from one observed end to the next.
    """

    read_until: float
    target: Offsets | None = None
    target_time: float = 0.0
    records: int = 0

    def observe(self, ends: Offsets, positions: Offsets, now: float) -> None:
        self.records = count_unread(ends, positions)
        if not self.records:
            self.read_until, self.target = now, None
            return
        if self.target is not None and not count_unread(self.target, positions):
            self.read_until, self.target = self.target_time, None
        if self.target is None:
            self.target, self.target_time = ends, now


@dataclass(slots=True, eq=False)
class StreamStatus:
    """Work of a stream, and how far it is behind. Any thread may call it.

    Args:
        table_format: Format of the tables.
        stall_seconds: Time without progress after which the stream is unhealthy, that between two batches
            included.
        holds_lease: Returns whether the job may write.
        monotonic: The monotonic clock.
        wall: The wall clock.
    """

    table_format: str
    stall_seconds: float
    holds_lease: Callable[[], bool]
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _lock: Lock = field(default_factory=Lock)
    _start: _Moment = field(init=False)
    _progress: _Moment | None = None
    _delay: _Delay = field(init=False)
    _records: Counter[str] = field(default_factory=Counter)
    _quarantined: int = 0
    _losses: Counter[Kind] = field(default_factory=lambda: Counter(dict.fromkeys(Kind, 0)))
    _held: int = 0
    _tasks: dict[str, _Task] = field(default_factory=lambda: {name: _Task() for name in TASKS})

    def __post_init__(self) -> None:
        """Start the clocks."""
        self._start = self._now()
        self._delay = _Delay(self._start.monotonic)

    def batch_added(self, summary: BatchSummary, seconds: float) -> None:
        """Record a batch that is complete."""
        with self._lock:
            self._records.update(summary.records)
            self._quarantined += summary.errors
            self._progress = self._now()
        self.task_ended("batch", seconds)

    def task_ended(self, name: str, seconds: float) -> None:
        """Record a successful run of one of `TASKS`."""
        with self._lock:
            task = self._tasks[name]
            task.runs += 1
            task.seconds += seconds
            task.last_seconds, task.last_end = seconds, self.wall()

    def losses_accepted(self, losses: Collection[DataLoss]) -> None:
        """Record losses that the job goes on after."""
        with self._lock:
            self._losses.update(loss.kind for loss in losses)
            if losses:  # the positions may never pass the observed ends of a log that is gone
                self._delay.target = None

    def started_behind(self, seconds: float) -> None:
        """Record the age of the oldest record that was unread when the job started."""
        with self._lock:
            self._delay.read_until = self._start.monotonic - seconds

    def logs_observed(self, stable: Offsets, positions: Offsets, held_records: int) -> None:
        """Record the ends of the logs.

        Args:
            stable: The last stable offset of each partition: the end of what can be read.
            positions: The next offset to read of each partition.
            held_records: Number of records behind open transactions, which cannot be read yet.
        """
        with self._lock:
            now = self._now()
            self._delay.observe(stable, positions, now.monotonic)
            self._held = held_records
            if not self._delay.records:
                self._progress = now

    def unready(self) -> str:
        """Return the reason why the stream is not ready: nothing was read yet. Empty if it is ready."""
        if self._progress is None:
            return "the first batch has not ended yet"
        return self.unhealthy()

    def unhealthy(self) -> str:
        """Return the reason why the stream must be restarted; empty if it need not."""
        if not self.holds_lease():
            return "the job has lost its lease, and another one may write the tables"
        seconds = self.monotonic() - (self._progress or self._start).monotonic
        if seconds > self.stall_seconds:
            return (
                f"no batch has ended for {seconds:.0f} s, and there are records to read: "
                f"{self.stall_seconds:g} s is the limit (stall_seconds, and trigger_seconds between batches)"
            )
        return ""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, for prometheus-client."""
        with self._lock:
            families = list(self._families())
        yield from families

    def _now(self) -> _Moment:
        return _Moment(self.monotonic(), self.wall())

    def _families(self) -> Iterator[Metric]:
        tasks = self._tasks
        yield _family(metrics.BUILD, {(version("groupwright"), self.table_format): 1})
        yield _family(metrics.START, {(): self._start.wall})
        yield _family(metrics.LAST_PROGRESS, {(): self._progress.wall if self._progress else 0.0})
        yield _family(metrics.BEHIND_RECORDS, {(): self._delay.records})
        yield _family(metrics.BEHIND_SECONDS, {(): self.monotonic() - self._delay.read_until})
        yield _family(metrics.HELD_RECORDS, {(): self._held})
        yield _family(metrics.LEASE_HELD, {(): self.holds_lease()})
        yield _family(metrics.RECORDS, {(kind,): number for kind, number in self._records.items()})
        yield _family(metrics.QUARANTINED_RECORDS, {(): self._quarantined})
        yield _family(metrics.LOSSES, {(kind.value,): number for kind, number in self._losses.items()})
        yield _family(metrics.TASK_RUNS, {(name,): task.runs for name, task in tasks.items()})
        yield _family(metrics.TASK_SECONDS, {(name,): task.seconds for name, task in tasks.items()})
        yield _family(
            metrics.TASK_LAST_DURATION, {(name,): task.last_seconds for name, task in tasks.items()}
        )
        yield _family(metrics.TASK_LAST_END, {(name,): task.last_end for name, task in tasks.items()})


def _family(spec: MetricSpec, values: Mapping[tuple[str, ...], float]) -> Metric:
    """Return the metric with these values, by the values of its labels."""
    family = Metric(spec.family, spec.help, spec.type)
    for labels, value in values.items():
        family.add_sample(spec.name, dict(zip(spec.labels, labels, strict=True)), value)
    return family
