"""Counters and histograms, made from the catalogue and fed by their description."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import Counter, Histogram, Metric

from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.spec import Kind, Spec


class Identity(NamedTuple):
    """The labels by which a client's series are known. A producer has no group."""

    group: str
    client_id: str

    def of(self, spec: Spec) -> tuple[str, ...]:
        """Return the values of those labels of a metric that say whose it is."""
        return tuple(value for name, value in zip(self._fields, self, strict=True) if name in spec.labels)


class Families:
    """What only ever grows: prometheus-client's own counters and histograms, in no registry of their own.

    Safe to use from any thread.
    """

    def __init__(self) -> None:
        """Make the families, without any series."""
        self._counters = {
            spec: Counter(spec.family, spec.help, spec.labels, unit=spec.unit, registry=None)
            for spec in CATALOGUE
            if spec.kind is Kind.COUNTER
        }
        self._histograms = {
            spec: Histogram(
                spec.family, spec.help, spec.labels, unit=spec.unit, buckets=spec.buckets, registry=None
            )
            for spec in CATALOGUE
            if spec.kind is Kind.HISTOGRAM
        }
        self._series: defaultdict[Identity, set[tuple[Spec, tuple[str, ...]]]] = defaultdict(set)
        # Reentrant: a signal handler may remove series while it interrupts an addition.
        self._lock = threading.RLock()

    def add(self, spec: Spec, identity: Identity, amount: float = 1, **labels: str) -> None:
        """Count; an amount of 0 makes the series, so that its first increase is one to `rate()` as well."""
        self.add_values(spec, identity, amount, _values(spec, identity, labels))

    def add_values(self, spec: Spec, identity: Identity, amount: float, labels: tuple[str, ...]) -> None:
        """Count likewise; `labels` are the values of those labels that do not say whose it is."""
        with self._lock:
            values = (*identity.of(spec), *labels)
            self._series[identity].add((spec, values))
            self._counters[spec].labels(*values).inc(amount)

    def observe(
        self,
        spec: Spec,
        identity: Identity,
        value: float,
        exemplar: dict[str, str] | None = None,
        **labels: str,
    ) -> None:
        """Put a value into a histogram, with an exemplar for OpenMetrics."""
        with self._lock:
            values = (*identity.of(spec), *_values(spec, identity, labels))
            self._series[identity].add((spec, values))
            self._histograms[spec].labels(*values).observe(value, exemplar)

    def remove(self, identity: Identity) -> None:
        """Take out all series of a consumer."""
        with self._lock:
            for spec, values in self._series.pop(identity, ()):
                family = self._counters.get(spec) or self._histograms[spec]
                family.remove(*values)

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its series as they are now."""
        for family in (*self._counters.values(), *self._histograms.values()):
            yield from family.collect()


def _values(spec: Spec, identity: Identity, labels: dict[str, str]) -> tuple[str, ...]:
    return tuple(str(labels[name]) for name in spec.labels if name not in identity._fields)
