"""Counters and histograms, made from the catalogue and fed by their description."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import Counter, Histogram, Metric

from groupwright.instrumentation.catalogue import CATALOGUE, Kind, Spec


class Identity(NamedTuple):
    """The labels by which a consumer's series are known."""

    group: str
    client_id: str


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
        with self._lock:
            values = self._label_values(spec, identity, labels)
            self._counters[spec].labels(*values).inc(amount)

    def observe(self, spec: Spec, identity: Identity, value: float, **labels: str) -> None:
        """Put a value into a histogram."""
        with self._lock:
            values = self._label_values(spec, identity, labels)
            self._histograms[spec].labels(*values).observe(value)

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

    def _label_values(self, spec: Spec, identity: Identity, labels: dict[str, str]) -> tuple[str, ...]:
        given = {**identity._asdict(), **labels}
        values = tuple(str(given[name]) for name in spec.labels)
        self._series[identity].add((spec, values))
        return values
