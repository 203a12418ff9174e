"""One producer's instrumentation: what its statistics and its errors show when scraped."""

import logging
import weakref
from collections.abc import Callable

from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import ProducerStatistics
from groupwright.instrumentation._metrics import samples as readings
from groupwright.instrumentation._metrics.families import Families, Identity
from groupwright.instrumentation._metrics.producer_catalogue import (
    PRODUCER_CLIENT_ERRORS,
    PRODUCER_OBSERVATION_ERRORS,
    PRODUCER_STATISTICS_AGE,
)
from groupwright.instrumentation._metrics.samples import Growth, Reading


class ProducerInstrumentation:
    """One producer's metrics. It lives as long as the producer's callbacks, which hold the signals."""

    def __init__(
        self,
        client_id: str,
        signals: Signals[ProducerStatistics],
        families: Families,
        forget: Callable[["ProducerInstrumentation"], None],
        logger: logging.Logger,
    ) -> None:
        """Use `Metrics.watch_producer`, which makes it known to the collector."""
        self.identity = Identity("", client_id)
        self._signals = weakref.ref(signals)
        self._families = families
        self._forget = forget
        self._logger = logger
        self._growth = Growth()
        self._logged = self._removed = False
        signals.failed = self._failed
        families.add(PRODUCER_OBSERVATION_ERRORS, self.identity, 0)

    def remove(self) -> None:
        """Take this producer's series out of the registry; again is no error."""
        self._removed = True
        self._forget(self)

    @property
    def alive(self) -> bool:
        """Whether the producer has not been collected."""
        return not self._removed and self._signals() is not None

    def readings(self) -> list[Reading]:
        """Read what is shown at a scrape."""
        signals = self._signals()
        if signals is None or self._removed:
            return []
        errors = dict(signals.errors)
        read = list(readings.of_signals(PRODUCER_STATISTICS_AGE, signals.age, PRODUCER_CLIENT_ERRORS, errors))
        if signals.statistics is not None:
            read += readings.of_producer(signals.statistics)
        return read

    def count_growth(self, read: list[Reading]) -> None:
        """Count how much the totals among these readings have grown."""
        for spec, labels, growth in () if self._removed else self._growth.increments(read):
            self._families.add_values(spec, self.identity, growth, labels)

    def _failed(self, where: str, error: Exception) -> None:
        if self._removed:
            return
        self._families.add(PRODUCER_OBSERVATION_ERRORS, self.identity)
        if not self._logged:
            self._logged = True
            self._logger.warning(
                "[producer %s] the instrumentation failed at %s: %r. The producer goes on; further failures are only "
                "counted, in %s",
                self.identity.client_id,
                where,
                error,
                PRODUCER_OBSERVATION_ERRORS.name,
                exc_info=error,
            )
