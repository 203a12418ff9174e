"""The metrics of one consumer's workers, read at each scrape."""

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from groupwright.core import TopicPartitionKey
from groupwright.core.locking import call_locked
from groupwright.instrumentation._metrics import parallel_catalogue as metrics
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.samples import CounterIncrements, Sample


class Statistics(Protocol):
    """What workers do at one moment: `groupwright.consumer.parallel.ParallelStatistics`."""

    @property
    def in_flight(self) -> Mapping[TopicPartitionKey, int]:
        """Messages that were received and are not done."""

    @property
    def running(self) -> int:
        """Messages that workers work on."""

    @property
    def done_beyond(self) -> int:
        """Messages that are done behind one that is not."""

    @property
    def oldest_seconds(self) -> float:
        """Age of the message that holds a commit back the longest."""

    @property
    def done(self) -> int:
        """Messages that were processed."""

    @property
    def retries(self) -> int:
        """Calls that were repeated."""

    @property
    def dead_letters(self) -> int:
        """Messages that were given to the dead-letter function."""


class Workers(Protocol):
    """A consumer with workers: that of `groupwright.consumer.parallel`, with threads or for asyncio."""

    @property
    def group_id(self) -> str:
        """The group."""

    @property
    def client_id(self) -> str:
        """The client's name."""

    def statistics(self) -> Statistics:
        """Return what its workers do; any thread may call it."""


class ParallelInstrumentation:
    """The metrics of one consumer's workers. They exist as long as the object that has them."""

    def __init__(
        self,
        workers: Workers,
        families: Families,
        on_removed: Callable[["ParallelInstrumentation"], None],
    ) -> None:
        """Use `Metrics.add_parallel`, which adds it to the collector."""
        self.client_labels = ClientLabels(workers.group_id, workers.client_id)
        self._workers = weakref.ref(workers)
        self._families = families
        self._on_removed = on_removed
        self._increments = CounterIncrements()
        # Reentrant: a signal handler may scrape while it interrupts a scrape.
        self._sampling = threading.RLock()
        self._removed = False

    def remove(self) -> None:
        """Remove these series from the registry; a second call does nothing."""
        self._removed = True
        self._on_removed(self)

    @property
    def last_rebalance(self) -> float:
        """0: the consumer's own instrumentation knows it."""
        return 0.0

    @property
    def alive(self) -> bool:
        """True if the workers' consumer still exists."""
        return not self._removed and self._workers() is not None

    def instruments(self, workers: Workers) -> bool:
        """Return whether these are the metrics of that consumer's workers."""
        return self._workers() is workers

    def samples(self) -> list[Sample]:
        """Return the samples of a scrape, and add the increments of their totals to the counters."""
        return call_locked(self._sampling, self._sample)

    def _sample(self) -> list[Sample]:
        workers = self._workers()
        if self._removed or workers is None:
            return []
        samples = list(_samples(workers.statistics()))
        self._families.add_increments(self.client_labels, self._increments.increments(samples))
        return samples


def _samples(statistics: Statistics) -> Iterator[Sample]:
    yield Sample(metrics.PARALLEL_IN_FLIGHT, (), sum(statistics.in_flight.values()))
    yield Sample(metrics.PARALLEL_RUNNING, (), statistics.running)
    yield Sample(metrics.PARALLEL_DONE_BEYOND, (), statistics.done_beyond)
    yield Sample(metrics.PARALLEL_OLDEST, (), statistics.oldest_seconds)
    yield Sample(metrics.PARALLEL_MESSAGES, (), statistics.done)
    yield Sample(metrics.PARALLEL_RETRIES, (), statistics.retries)
    yield Sample(metrics.PARALLEL_DEAD_LETTERS, (), statistics.dead_letters)
