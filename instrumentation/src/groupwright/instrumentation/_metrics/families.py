"""The counters and histograms of one registry, made from the catalogue."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import Counter, Histogram, Metric

from groupwright.core.locking import locked
from groupwright.core.metrics import MetricType
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.samples import Sample
from groupwright.instrumentation._metrics.spec import ClientSpec


class ClientLabels(NamedTuple):
    """The labels that identify a client's series. A producer has no group."""

    group: str
    client_id: str

    def of(self, spec: ClientSpec) -> tuple[str, ...]:
        """Return the values of the client's labels that a metric has."""
        return tuple(value for name, value in zip(self._fields, self, strict=True) if name in spec.labels)


class Families:
    """prometheus-client's counters and histograms, in no registry. Safe to use from any thread."""

    def __init__(self) -> None:
        """Create the families, without series."""
        self._counters = {
            spec: Counter(spec.family, spec.help, spec.labels, unit=spec.unit, registry=None)
            for spec in CATALOGUE
            if spec.type is MetricType.COUNTER
        }
        self._histograms = {
            spec: Histogram(
                spec.family, spec.help, spec.labels, unit=spec.unit, buckets=spec.buckets, registry=None
            )
            for spec in CATALOGUE
            if spec.type is MetricType.HISTOGRAM
        }
        self._series: defaultdict[ClientLabels, set[tuple[ClientSpec, tuple[str, ...]]]] = defaultdict(set)
        self.observers: list[Callable[[ClientSpec, Mapping[str, str], float], None]] = []
        """Called with each value of a histogram, and its labels."""
        # Reentrant: a signal handler may remove series while it interrupts an addition.
        self._lock = threading.RLock()

    def add(self, spec: ClientSpec, client_labels: ClientLabels, amount: float = 1, **labels: str) -> None:
        """Increment a counter; 0 creates its series, so that `rate()` sees the first increase."""
        sample = Sample(spec, _values(spec, client_labels, labels), amount)
        self.add_increments(client_labels, [sample])

    @locked
    def add_increments(self, client_labels: ClientLabels, increments: Iterable[Sample]) -> None:
        """Add a client's increments to its counters."""
        for spec, labels, amount in increments:
            values = (*client_labels.of(spec), *labels)
            self._series[client_labels].add((spec, values))
            self._counters[spec].labels(*values).inc(amount)

    def start(self, histogram: ClientSpec, client_labels: ClientLabels, **labels: str) -> None:
        """Create a histogram's series at 0, so that `rate()` sees the first value."""
        self._start(histogram, client_labels, _values(histogram, client_labels, labels))

    @locked
    def _start(self, histogram: ClientSpec, client_labels: ClientLabels, labels: tuple[str, ...]) -> None:
        values = (*client_labels.of(histogram), *labels)
        self._series[client_labels].add((histogram, values))
        self._histograms[histogram].labels(*values)

    def observe(
        self,
        spec: ClientSpec,
        client_labels: ClientLabels,
        value: float,
        exemplar: dict[str, str] | None = None,
        **labels: str,
    ) -> None:
        """Add a value to a histogram, with an exemplar for OpenMetrics."""
        values = (*client_labels.of(spec), *_values(spec, client_labels, labels))
        self._observe(spec, client_labels, value, exemplar, values)
        for observer in self.observers:
            observer(spec, dict(zip(spec.labels, values, strict=True)), value)

    @locked
    def _observe(
        self,
        spec: ClientSpec,
        client_labels: ClientLabels,
        value: float,
        exemplar: dict[str, str] | None,
        values: tuple[str, ...],
    ) -> None:
        self._series[client_labels].add((spec, values))
        self._histograms[spec].labels(*values).observe(value, exemplar)

    @locked
    def remove(self, client_labels: ClientLabels) -> None:
        """Remove all series of a client."""
        for spec, values in self._series.pop(client_labels, ()):
            family = self._counters.get(spec) or self._histograms[spec]
            family.remove(*values)

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its present series."""
        for family in (*self._counters.values(), *self._histograms.values()):
            yield from family.collect()


def _values(spec: ClientSpec, client_labels: ClientLabels, labels: dict[str, str]) -> tuple[str, ...]:
    return tuple(str(labels[name]) for name in spec.labels if name not in client_labels._fields)
