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

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from groupwright.pipeline._jobs.backlog import count_unread
from groupwright.pipeline._jobs.data_loss import DataLoss, Kind
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.kafka import Offsets

_PREFIX = "groupwright_pipeline_"
TASKS = ("batch", "derive", "sample", "write_samples", "compact")
"""The tasks of a stream: a batch, derived tables, samples of log-end offsets and their rows, compaction."""


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
        stall_seconds: Time without progress after which the stream is unhealthy.
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
                f"stall_seconds={self.stall_seconds:g} is the limit"
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
        info = {"version": version("groupwright"), "format": self.table_format}
        yield InfoMetricFamily(
            f"{_PREFIX}build", "Version of Groupwright, and the format of the tables; always 1.", info
        )
        yield _gauge(
            "start_timestamp_seconds", "Time at which the job started, since the epoch.", self._start.wall
        )
        yield _gauge(
            "last_progress_timestamp_seconds",
            "Time of the last progress, since the epoch: a batch ended, or nothing was left to read; 0 "
            "before the first.",
            self._progress.wall if self._progress else 0.0,
        )
        yield _gauge(
            "behind_records",
            "Offsets up to the last stable offsets of the topics that the job has not read.",
            self._delay.records,
        )
        yield _gauge(
            "behind_seconds",
            "Time since which records may be unread: at the start, the age of the oldest unread record.",
            self.monotonic() - self._delay.read_until,
        )
        yield _gauge(
            "held_records",
            "Records behind open transactions, which the job reads once these have ended.",
            self._held,
        )
        yield _gauge(
            "lease_held", "Whether the job may write the tables: 1 if it holds the lease.", self.holds_lease()
        )
        yield _counter("records", "Records read, by kind.", "kind", self._records)
        quarantined = CounterMetricFamily(
            f"{_PREFIX}quarantined_records", "Records added to the table `quarantine`."
        )
        quarantined.add_metric([], self._quarantined)
        yield quarantined
        yield _counter(
            "losses",
            "Losses of records after which the job went on (`on_data_loss=restart`), by kind.",
            "kind",
            {kind.value: number for kind, number in self._losses.items()},
        )
        tasks = self._tasks
        yield _counter(
            "task_runs",
            "Successful runs of a task.",
            "task",
            {name: task.runs for name, task in tasks.items()},
        )
        yield _counter(
            "task_seconds",
            "Duration of all runs of a task.",
            "task",
            {n: t.seconds for n, t in tasks.items()},
        )
        for name, meaning, values in (
            (
                "task_last_duration_seconds",
                "Duration of a task's last run; 0 before the first.",
                {name: task.last_seconds for name, task in tasks.items()},
            ),
            (
                "task_last_end_timestamp_seconds",
                "Time of the end of a task's last run, since the epoch; 0 before the first.",
                {name: task.last_end for name, task in tasks.items()},
            ),
        ):
            family = GaugeMetricFamily(_PREFIX + name, meaning, labels=["task"])
            for task_name, value in values.items():
                family.add_metric([task_name], value)
            yield family


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, meaning, value=value)


def _counter(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, meaning, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
