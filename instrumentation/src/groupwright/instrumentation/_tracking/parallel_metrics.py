"""The metrics of one consumer's workers, read at each scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from groupwright.core import TopicPartitionKey
from groupwright.instrumentation._metrics import parallel_catalogue as metrics
from groupwright.instrumentation._metrics.samples import Sample


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


def of_workers(workers: Workers | None) -> Iterator[Sample]:
    """Yield the samples of what workers do; none if their consumer no longer exists."""
    if workers is None:
        return
    statistics = workers.statistics()
    yield Sample(metrics.PARALLEL_IN_FLIGHT, (), sum(statistics.in_flight.values()))
    yield Sample(metrics.PARALLEL_RUNNING, (), statistics.running)
    yield Sample(metrics.PARALLEL_DONE_BEYOND, (), statistics.done_beyond)
    yield Sample(metrics.PARALLEL_OLDEST, (), statistics.oldest_seconds)
    yield Sample(metrics.PARALLEL_MESSAGES, (), statistics.done)
    yield Sample(metrics.PARALLEL_RETRIES, (), statistics.retries)
    yield Sample(metrics.PARALLEL_DEAD_LETTERS, (), statistics.dead_letters)
