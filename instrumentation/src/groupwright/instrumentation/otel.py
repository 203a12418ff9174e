"""OpenTelemetry: the metrics of a registry as instruments, and rebalances as spans. Needs the extra `otel`.

- `export_metrics`: makes instruments of a registry's metrics, which any reader of a meter provider exports.
- `to_opentelemetry`: an event sink that makes a span of each rebalance.

Prometheus adds suffixes for unit and type to the names that it receives by OTLP, so instruments have none: it
stores ``groupwright_rebalances`` under the name that it scrapes, ``groupwright_rebalances_total``.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry

from groupwright.core.metrics import MetricType
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.spec import ClientSpec
from groupwright.instrumentation.collector import Metrics
from groupwright.instrumentation.events import RebalanceEvent
from groupwright.instrumentation.sinks import EventSink

try:
    from opentelemetry.metrics import (
        CallbackOptions,
        MeterProvider,
        Observation,
        get_meter_provider,
    )
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, get_tracer_provider
except ImportError as error:
    raise ImportError(
        "groupwright.instrumentation.otel needs OpenTelemetry. Run: pip install 'groupwright[otel]'"
    ) from error

SCOPE = "groupwright.instrumentation"
"""Name of the instrumentation scope."""

_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
_SHARED_FOR = 0.5
"""Seconds for which instruments share one reading of the registry: a reader observes each by itself."""
_exported: weakref.WeakKeyDictionary[Metrics, list[MeterProvider]] = weakref.WeakKeyDictionary()
"""Providers to which a registry's metrics are exported already."""


def export_metrics(
    registry: CollectorRegistry = REGISTRY, meter_provider: MeterProvider | None = None
) -> None:
    """Export the metrics of a registry's clients as OpenTelemetry instruments, from now on.

    Counters and gauges are observed when a reader collects. Histograms are recorded with each value; they
    have the bounds of the catalogue unless a view of the provider has others, exponential ones for example.
    A second call for the same registry and provider changes nothing.

    Args:
        registry: The registry that `create_instrumented` or `instrument` was given.
        meter_provider: The provider; the global one by default.

    Raises:
        ValueError: The registry has other metrics by Groupwright's names.
    """
    metrics = Metrics.of(registry)
    provider = meter_provider or get_meter_provider()
    providers = _exported.setdefault(metrics, [])
    if any(each is provider for each in providers):
        return
    providers.append(provider)
    meter = provider.get_meter(SCOPE)
    reading = _SharedReading(metrics)
    histograms = {}
    for spec in CATALOGUE:
        name, unit = _name(spec), _UNITS.get(spec.unit, "")
        if spec.type is MetricType.HISTOGRAM:
            histograms[spec] = meter.create_histogram(
                name, unit, spec.help, explicit_bucket_boundaries_advisory=list(spec.buckets)
            )
        elif spec.type is MetricType.COUNTER:
            meter.create_observable_counter(name, [reading.of(spec)], unit, spec.help)
        else:
            meter.create_observable_gauge(name, [reading.of(spec)], unit, spec.help)
    metrics.add_observer(lambda spec, labels, value: histograms[spec].record(value, labels))


def to_opentelemetry(tracer_provider: TracerProvider | None = None) -> EventSink:
    """Return a sink that makes a span of each rebalance, with its phases as events.

    The span has the rebalance's own times. If the beginning was not observed, it begins where it ends. The
    exporter is that of the provider.

    Args:
        tracer_provider: The provider; the global one by default.
    """
    tracer = (tracer_provider or get_tracer_provider()).get_tracer(SCOPE)

    def export(event: RebalanceEvent) -> None:
        ended = _nanoseconds(event.ended_at)
        started = ended if event.started_at is None else _nanoseconds(event.started_at)
        span = tracer.start_span(
            f"rebalance {event.group}",
            kind=SpanKind.INTERNAL,
            attributes=_attributes(event),
            start_time=started,
        )
        if event.started_at is not None:
            at = started
            for phase, seconds in event.phases.items():
                span.add_event(phase, {"groupwright.phase.duration": seconds}, at)
                at += round(seconds * 1e9)
        if event.error is not None:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(ended)

    return EventSink("opentelemetry", export)


class _SharedReading:
    """The samples of a registry, read once for all instruments of one collection."""

    def __init__(self, metrics: Metrics) -> None:
        """Read nothing yet."""
        self._metrics = metrics
        self._read_at = float("-inf")
        self._samples: Mapping[str, list[tuple[Mapping[str, str], float]]] = {}
        self._lock = threading.Lock()

    def of(self, spec: ClientSpec) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return the callback of a metric's instrument."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, labels) for labels, value in self._read().get(spec.name, ())]

        return observe

    def _read(self) -> Mapping[str, list[tuple[Mapping[str, str], float]]]:
        with self._lock:
            if time.monotonic() - self._read_at > _SHARED_FOR:
                samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
                for family in self._metrics.collect():
                    for sample in family.samples:
                        samples.setdefault(sample.name, []).append((sample.labels, sample.value))
                self._samples, self._read_at = samples, time.monotonic()
            return self._samples


def _name(spec: ClientSpec) -> str:
    """Return the name without the suffixes that Prometheus adds for type and unit."""
    name = spec.name if spec.type is MetricType.INFO else spec.family
    return name.removesuffix(f"_{spec.unit}") if spec.unit else name


def _attributes(event: RebalanceEvent) -> dict[str, Any]:
    """Return a span's attributes, by OpenTelemetry's conventions for messaging where there are any."""
    attributes = {
        "messaging.system": "kafka",
        "messaging.consumer.group.name": event.group,
        "messaging.client.id": event.client_id,
        "groupwright.event.id": event.id,
        "groupwright.member.id": event.member_id,
        "groupwright.generation": event.generation,
        "groupwright.protocol": event.protocol,
        "groupwright.kind": event.kind,
        "groupwright.outcome": event.outcome,
        "groupwright.trigger": event.trigger,
        "groupwright.reason": event.reason,
        "groupwright.partitions.before": sum(map(len, event.partitions_before.values())),
        "groupwright.partitions.after": sum(map(len, event.partitions_after.values())),
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _nanoseconds(time_text: str) -> int:
    """Return the nanoseconds since the epoch of an event's time."""
    return round(datetime.fromisoformat(time_text).timestamp() * 1e6) * 1000
