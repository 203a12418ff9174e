"""One producer's metrics, from its statistics and its errors."""

import logging
import threading
import weakref
from collections.abc import Callable

from groupwright.core.locking import call_locked
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import ProducerStatistics
from groupwright.instrumentation._metrics import samples as sample_readers
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.producer_catalogue import (
    PRODUCER_CLIENT_ERRORS,
    PRODUCER_ERRORS,
    PRODUCER_STATISTICS_AGE,
)
from groupwright.instrumentation._metrics.samples import CounterIncrements, Sample


class ProducerInstrumentation:
    """One producer's metrics. They exist as long as the producer, which alone holds its callbacks."""

    def __init__(
        self,
        client_id: str,
        callbacks: LibrdkafkaCallbacks[ProducerStatistics],
        families: Families,
        on_removed: Callable[["ProducerInstrumentation"], None],
        logger: logging.Logger,
    ) -> None:
        """Use `Metrics.add_producer`, which adds it to the collector."""
        self.client_labels = ClientLabels("", client_id)
        self._callbacks = weakref.ref(callbacks)
        # Kept after the producer's end, when its totals are read for the last time.
        self._errors = callbacks.errors
        self._statistics = callbacks.statistics
        self._families = families
        self._on_removed = on_removed
        self._logger = logger
        self._increments = CounterIncrements()
        # Reentrant: a signal handler may scrape while it interrupts a scrape.
        self._sampling = threading.RLock()
        self._logged = self._removed = False
        callbacks.on_failure = self._record_failure
        callbacks.on_statistics = self._on_statistics
        families.add(PRODUCER_ERRORS, self.client_labels, 0)

    def remove(self) -> None:
        """Remove this producer's series from the registry; a second call does nothing."""
        self._removed = True
        self._on_removed(self)

    @property
    def last_rebalance(self) -> float:
        """0, since a producer has no rebalances."""
        return 0.0

    @property
    def alive(self) -> bool:
        """True if the producer still exists."""
        return not self._removed and self._callbacks() is not None

    def samples(self) -> list[Sample]:
        """Return the samples of a scrape, and add the increments of their totals to the counters."""
        return call_locked(self._sampling, self._sample)

    def _sample(self) -> list[Sample]:
        if self._removed:
            return []
        callbacks = self._callbacks()
        age = None if callbacks is None else callbacks.age
        samples = list(
            sample_readers.of_callbacks(
                PRODUCER_STATISTICS_AGE, age, PRODUCER_CLIENT_ERRORS, dict(self._errors)
            )
        )
        if self._statistics is not None:
            samples += sample_readers.of_producer(self._statistics)
        self._families.add_increments(self.client_labels, self._increments.increments(samples))
        return samples

    def _on_statistics(self, statistics: ProducerStatistics, _taken_at: float) -> None:
        self._statistics = statistics

    def _record_failure(self, operation: str, error: Exception) -> None:
        if self._removed:
            return
        self._families.add(PRODUCER_ERRORS, self.client_labels)
        if not self._logged:
            self._logged = True
            self._logger.warning(
                "[producer %s] the instrumentation failed at %s: %r. The producer is not affected; further "
                "failures are only counted, in %s",
                self.client_labels.client_id,
                operation,
                error,
                PRODUCER_ERRORS.name,
                exc_info=error,
            )
