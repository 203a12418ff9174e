"""The OpenTelemetry bridge, read by the SDK's readers and exporters in memory."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.metrics import Histogram as HistogramInstrument
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ExponentialHistogram, Histogram, InMemoryMetricReader, Sum
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Rebalance
from groupwright.core.metrics import MetricType
from groupwright.instrumentation import EventSink, MembershipSnapshot, instrument, otel
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.labels import DURATION_BUCKETS
from groupwright.instrumentation.otel import export_metrics, to_opentelemetry

NewRebalance = Callable[..., Rebalance]


@pytest.fixture(autouse=True)
def unshared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each collection read the registry anew."""
    monkeypatch.setattr(otel, "_SHARED_FOR", -1.0)


def points(reader: InMemoryMetricReader) -> Mapping[str, Any]:
    """Collect: the data of each metric by name."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_a_second_export_to_a_provider_counts_nothing_twice(
    registry: CollectorRegistry, new_consumer: Callable[..., Any]
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    export_metrics(registry, provider)
    export_metrics(registry, provider)

    instrument(new_consumer(), registry).commit_ended(0.1, None)

    [point] = points(reader)["groupwright_commit_duration"].data.data_points
    assert point.count == 1


def test_a_view_makes_native_histograms_of_the_durations(
    registry: CollectorRegistry, new_consumer: Callable[..., Any]
) -> None:
    reader = InMemoryMetricReader()
    view = View(
        instrument_type=HistogramInstrument,
        meter_name=otel.SCOPE,
        aggregation=ExponentialBucketHistogramAggregation(),
    )
    export_metrics(registry, MeterProvider([reader], views=[view]))

    instrument(new_consumer(), registry).commit_ended(0.1, None)

    duration = points(reader)["groupwright_commit_duration"]
    assert isinstance(duration.data, ExponentialHistogram)
    [point] = duration.data.data_points
    assert (point.count, point.sum, sum(point.positive.bucket_counts)) == (1, 0.1, 1)


def test_instruments_have_the_values_that_prometheus_scrapes(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], new_rebalance: NewRebalance
) -> None:
    reader = InMemoryMetricReader()
    export_metrics(registry, MeterProvider([reader]))
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(state="stable", requests={"heartbeat": 3}))
    listener = instrument(consumer, registry)
    for duration in (0.3, 50.0):
        listener.partitions_assigned({"orders": [0, 1]}, 0.1)
        listener.rebalanced(new_rebalance(duration=duration))

    collected = points(reader)

    scraped = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    names = {spec.name: otel._name(spec) for spec in CATALOGUE if spec.type is not MetricType.HISTOGRAM}
    compared = 0
    for name, exported in names.items():
        for point in collected[exported].data.data_points if exported in collected else ():
            assert scraped[name, tuple(sorted(point.attributes.items()))] == point.value
            compared += 1
    assert compared == sum(name in names for name, _ in scraped)

    counter, histogram = collected["groupwright_rebalances"], collected["groupwright_rebalance_duration"]
    assert isinstance(counter.data, Sum)
    assert counter.data.is_monotonic
    assert isinstance(histogram.data, Histogram)
    assert histogram.unit == "s"
    (point,) = histogram.data.data_points
    assert (point.count, point.sum, tuple(point.explicit_bounds)) == (2, 50.3, DURATION_BUCKETS)
    assert dict(point.attributes) == {"group": "billing", "client_id": "c-1", "protocol": "range"}


def test_counters_and_gauges_are_observed_anew_at_each_collection(
    registry: CollectorRegistry, new_consumer: Callable[..., Any]
) -> None:
    reader = InMemoryMetricReader()
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(requests={"heartbeat": 3}))
    instrument(consumer, registry)
    export_metrics(registry, MeterProvider([reader]))

    def heartbeats() -> Any:
        metric = points(reader)["groupwright_group_requests"]
        return [p.value for p in metric.data.data_points if p.attributes["request"] == "heartbeat"]

    assert heartbeats() == [3]
    consumer.membership_snapshot = MembershipSnapshot(requests={"heartbeat": 5})
    assert heartbeats() == [5]


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def sink(spans: InMemorySpanExporter) -> EventSink:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return to_opentelemetry(provider)


def span_of(
    rebalance: Rebalance,
    sink: EventSink,
    spans: InMemorySpanExporter,
    registry: CollectorRegistry,
    consumer: Any,
) -> ReadableSpan:
    with sink:
        instrument(consumer, registry, events=[sink]).rebalanced(rebalance)
    (span,) = spans.get_finished_spans()
    return span


def test_a_rebalance_is_a_span_with_its_times_and_its_phases(
    registry: CollectorRegistry,
    new_consumer: Callable[..., Any],
    new_rebalance: NewRebalance,
    sink: EventSink,
    spans: InMemorySpanExporter,
) -> None:
    span = span_of(new_rebalance(), sink, spans, registry, new_consumer())

    end = 1_700_000_000_500_000_000
    assert (span.start_time, span.end_time) == (end - 300_000_000, end)
    assert [(event.name, event.timestamp - end) for event in span.events] == [
        ("revoke", -300_000_000), ("join", -280_000_000), ("sync", -80_000_000), ("assign", -30_000_000),
    ]  # fmt: skip
    assert span.attributes is not None
    assert (
        span.attributes.items()
        >= {
            "messaging.system": "kafka",
            "messaging.consumer.group.name": "billing",
            "messaging.client.id": "c-1",
            "groupwright.generation": 7,
            "groupwright.outcome": "completed",
            "groupwright.partitions.before": 2,
            "groupwright.partitions.after": 3,
        }.items()
    )
    assert span.status.status_code is StatusCode.UNSET


def test_a_failed_rebalance_without_a_known_beginning_is_a_point_with_an_error(
    registry: CollectorRegistry,
    new_consumer: Callable[..., Any],
    new_rebalance: NewRebalance,
    sink: EventSink,
    spans: InMemorySpanExporter,
) -> None:
    failed = new_rebalance(
        outcome=Outcome.FAILED, duration=None, protocol=None, generation=-1, error="GROUP_ID_NOT_FOUND"
    )
    span = span_of(failed, sink, spans, registry, new_consumer())

    assert span.start_time == span.end_time
    assert span.end_time == int(datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC).timestamp() * 10) * 10**8
    assert span.events == ()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "GROUP_ID_NOT_FOUND")
