"""One producer's metrics, from its statistics and its errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import ProducerStatistics
from groupwright.instrumentation._metrics import samples as sample_readers
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.producer_catalogue import (
    PRODUCER_CLIENT_ERRORS,
    PRODUCER_ERRORS,
    PRODUCER_STATISTICS_AGE,
)
from groupwright.instrumentation._metrics.samples import Sample


class ProducerReader:
    """What a scrape reads of a producer, which alone holds its callbacks."""

    def __init__(
        self,
        client_labels: ClientLabels,
        callbacks: LibrdkafkaCallbacks[ProducerStatistics],
        families: Families,
        logger: logging.Logger,
    ) -> None:
        """Listen to the callbacks, without holding them."""
        self._client_labels = client_labels
        # Kept after the producer's end, when its totals are read for the last time.
        self._errors = callbacks.errors
        self._statistics = callbacks.statistics
        self._families = families
        self._logger = logger
        self._logged = False
        callbacks.on_failure = self._record_failure
        callbacks.on_statistics = self._on_statistics
        families.add(PRODUCER_ERRORS, client_labels, 0)

    def samples(self, callbacks: LibrdkafkaCallbacks[ProducerStatistics] | None) -> Iterator[Sample]:
        """Yield the samples; without the age of the statistics if the producer no longer exists."""
        age = None if callbacks is None else callbacks.age
        yield from sample_readers.of_callbacks(
            PRODUCER_STATISTICS_AGE, age, PRODUCER_CLIENT_ERRORS, dict(self._errors)
        )
        if self._statistics is not None:
            yield from sample_readers.of_producer(self._statistics)

    def _on_statistics(self, statistics: ProducerStatistics, _taken_at: float) -> None:
        self._statistics = statistics

    def _record_failure(self, operation: str, error: Exception) -> None:
        self._families.add(PRODUCER_ERRORS, self._client_labels)
        if not self._logged:
            self._logged = True
            self._logger.warning(
                "[producer %s] the instrumentation failed at %s: %r. The producer is not affected; further "
                "failures are only counted, in %s",
                self._client_labels.client_id,
                operation,
                error,
                PRODUCER_ERRORS.name,
                exc_info=error,
            )
