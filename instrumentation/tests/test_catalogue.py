"""The catalogue is the whole truth: what it has is emitted, what is emitted it has, and the page shows it."""

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from groupwright import core
from groupwright.consumer import Outcome, Phase, Rebalance
from groupwright.core.metrics import MetricType
from groupwright.instrumentation import (
    EventSink,
    GroupLoad,
    Leadership,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    Metrics,
    instrument,
    reference,
)
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import read_consumer, read_producer
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.labels import (
    CALLBACKS,
    DURATION_BUCKETS,
    LABELS,
    STATES,
)
from groupwright.instrumentation._metrics.spec import ClientSpec
from groupwright.instrumentation._tracking.share_metrics import ShareTracker
from groupwright.instrumentation.consumer_metrics import Options
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

every_metric = pytest.mark.parametrize("spec", CATALOGUE, ids=lambda spec: spec.name)

HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclass
class Working:
    """A consumer with workers, of which one is at work."""

    group_id: str = "billing"
    client_id: str = "billing-1"

    def statistics(self) -> Any:
        return SimpleNamespace(
            in_flight={("orders", 0): 2, ("orders", 1): 1},
            running=1,
            done_beyond=1,
            oldest_seconds=0.5,
            done=7,
            retries=2,
            dead_letters=1,
        )


@pytest.fixture
def eventful(
    registry: CollectorRegistry,
    new_consumer: Callable[..., Any],
    new_rebalance: Callable[..., Rebalance],
    statistics: Callable[[str], str],
    group_load: GroupLoad,
    new_load_check: Callable[..., LoadCheckResult],
) -> Any:
    """A consumer, a producer and workers to which everything has happened."""
    metrics = Metrics.of(registry)
    heard = LibrdkafkaCallbacks(read_consumer)
    heard.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    snapshot = MembershipSnapshot(
        state="stable",
        coordinator=2,
        coordinator_changes=1,
        coordinator_missing=2.5,
        round_trip=0.002,
        heartbeat_age=0.5,
        requests={"join_group": 3},
        request_failures={("join_group", "NOT_COORDINATOR"): 1},
        poll_seconds=2.5,
        max_poll_interval=300.0,
    )
    consumer = new_consumer(membership_snapshot=snapshot)
    sink = EventSink("tests", lambda _: None)
    listener = metrics.add_consumer(consumer, Options([sink], lag_by_partition=True), heard)
    listener.partitions_assigned({"orders": [0, 1, 2]}, 0.1)
    listener.partitions_revoked({"orders": [0]}, 0.1)
    listener.partitions_lost({"orders": [1]}, 4.0)
    leadership = Leadership(members=3, moved=4, min_moves=2, imbalance=1, load=group_load)
    listener.rebalanced(new_rebalance(leadership=leadership))
    listener.rebalanced(new_rebalance(protocol=None, outcome=Outcome.FAILED))
    listener.rebalanced(new_rebalance(leadership=leadership))
    listener.load_checked(new_load_check())
    listener.partitions_assigned({"orders": [0, 1, 2]}, 0.1)
    heard.record_statistics(
        statistics("consumer").replace('"committed_offset":-1001', '"committed_offset":1')
    )
    listener.commit_ended(0.01, "NOT_COORDINATOR")
    listener.commit_ended(0.01, None)
    sink.close()

    produced = LibrdkafkaCallbacks(read_producer)
    produced.record_statistics(statistics("producer"))
    produced.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    metrics.add_producer("p-1", produced)
    workers = Working()
    metrics.add_parallel(workers)
    shared = ShareTracker({"group.id": "jobs"})
    partition = TopicPartition("jobs", 0)
    shared.on_answer({partition: {3}}, None)
    shared.on_answer({partition: {4}}, KafkaException(KafkaError(KafkaError.INVALID_RECORD_STATE)))
    shared.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    metrics.add_share_consumer(shared, shared)
    return consumer, produced, workers, shared


@pytest.mark.usefixtures("eventful")
def test_everything_in_the_catalogue_is_emitted_and_nothing_else(registry: CollectorRegistry) -> None:
    emitted = {
        (sample.name, tuple(name for name in sample.labels if name != "le"))
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")  # prometheus-client adds these, and has a switch for them
    }

    described = {
        (spec.name + suffix, spec.labels)
        for spec in CATALOGUE
        for suffix in (HISTOGRAM_SUFFIXES if spec.type is MetricType.HISTOGRAM else ("",))
    }
    assert emitted == described


@pytest.mark.usefixtures("eventful")
def test_what_is_registered_is_what_is_collected(registry: CollectorRegistry) -> None:
    """The registry refuses clashes, and serves `name[]=`, by what the collector describes."""
    described = {
        (family.name, family.type, family.documentation, family.unit)
        for family in Metrics.of(registry).describe()
    }

    assert described == {
        (family.name, family.type, family.documentation, family.unit) for family in registry.collect()
    }
    assert len(described) == len(CATALOGUE)


@pytest.mark.usefixtures("eventful")
def test_the_metrics_are_valid_openmetrics(registry: CollectorRegistry) -> None:
    """Its parser checks order, suffixes, units, bucket counts, and that no series comes twice."""
    text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call] # prometheus-client's gap

    parsed = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call] # as above
    families = {family.name: family for family in parsed}

    assert set(families) == {spec.family for spec in CATALOGUE}
    assert {name: family.unit for name, family in families.items()} == {
        spec.family: spec.unit for spec in CATALOGUE
    }


@pytest.mark.usefixtures("eventful")
def test_a_page_of_metrics_has_each_family_and_each_series_once(registry: CollectorRegistry) -> None:
    lines = generate_latest(registry).decode().splitlines()
    names = [line.rpartition(" ")[0] for line in lines]

    assert len(names) == len(set(names))


def test_the_build_is_told(registry: CollectorRegistry, new_consumer: Callable[..., Any]) -> None:
    instrument(new_consumer(), registry=registry)

    labels = {
        "version": metadata.version("groupwright"),
        "confluent_kafka": metadata.version("confluent-kafka"),
    }
    assert registry.get_sample_value("groupwright_build_info", labels) == 1


@pytest.mark.integration
@pytest.mark.usefixtures("eventful")
def test_prometheus_own_linter_has_no_complaint(registry: CollectorRegistry) -> None:
    promtool = find_program("promtool", hint="Debian's package prometheus has it")

    ran = subprocess.run(
        [promtool, "check", "metrics"],
        input=generate_latest(registry),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


# --- The rules of `promtool check metrics` (promlint), and the project's own ---------------------------


@every_metric
def test_names_are_snake_case_without_a_colon_and_begin_with_the_project(spec: ClientSpec) -> None:
    assert re.fullmatch(r"groupwright(_[a-z]+)+", spec.name)


@every_metric
def test_total_ends_counters_alone_and_info_ends_infos_alone(spec: ClientSpec) -> None:
    assert spec.name.endswith("_total") == (spec.type is MetricType.COUNTER)
    assert spec.name.endswith("_info") == (spec.type is MetricType.INFO)


@every_metric
def test_no_name_ends_as_a_series_of_a_histogram_does(spec: ClientSpec) -> None:
    assert not spec.family.endswith((*HISTOGRAM_SUFFIXES, "_created"))
    assert "le" not in spec.labels
    assert "quantile" not in spec.labels


@every_metric
def test_no_name_says_its_type(spec: ClientSpec) -> None:
    words = spec.family.split("_")

    assert not {"counter", "gauge", "histogram", "summary", "info", "untyped"} & set(words)


@every_metric
def test_units_are_base_units_written_out_and_stand_at_the_end(spec: ClientSpec) -> None:
    words = spec.family.split("_")
    abbreviated = {"s", "ms", "us", "ns", "sec", "m", "h", "d", "b", "kb", "mb", "gb", "tb", "pb"}
    other_than_base = {
        prefix + unit
        for prefix in ("milli", "micro", "nano", "kilo", "mega")
        for unit in ("seconds", "second", "bytes")
    } | {"minutes", "hours", "days", "weeks", "bits", "percent"}

    assert not (abbreviated | other_than_base) & set(words)
    for unit in ("seconds", "bytes", "ratio"):
        assert (unit in words) == (spec.unit == unit) == (words[-1] == unit)


@every_metric
def test_help_says_something(spec: ClientSpec) -> None:
    assert spec.help.endswith(".")
    assert "\n" not in spec.help


@every_metric
def test_labels_are_bounded_and_explained(spec: ClientSpec) -> None:
    assert set(spec.labels) <= set(LABELS)
    assert not set(spec.labels) & {"member_id", "generation", "reason"}
    if spec.name.startswith("groupwright_producer_"):
        assert spec.labels[:1] == ("client_id",)
    elif spec.name != "groupwright_build_info":
        assert spec.labels[:2] == ("group", "client_id")
    assert ("topic" in spec.labels) == bool({"partitions", "lag", "fetched"} & set(spec.family.split("_")))
    assert ("partition" in spec.labels) == (spec.name == "groupwright_partition_lag")


@every_metric
def test_histograms_and_they_alone_have_buckets(spec: ClientSpec) -> None:
    assert spec.buckets == (DURATION_BUCKETS if spec.type is MetricType.HISTOGRAM else ())


def test_names_are_unique() -> None:
    assert len({spec.name for spec in CATALOGUE}) == len(CATALOGUE)


def test_buckets_ascend_from_1_ms_to_300_s_and_hold_the_defaults_of_consumers() -> None:
    assert list(DURATION_BUCKETS) == sorted(set(DURATION_BUCKETS))
    assert (DURATION_BUCKETS[0], DURATION_BUCKETS[-1]) == (0.001, 300)
    assert {3, 45, 300} <= set(DURATION_BUCKETS)


# --- What others say of it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("outcome", tuple(Outcome)),
        ("outcome", tuple(LoadCheckOutcome)),
        ("phase", tuple(Phase)),
        ("callback", CALLBACKS),
        ("state", STATES),
        ("kind", tuple(core.Kind)),
    ],
)
def test_each_value_of_a_label_is_explained(label: str, values: Sequence[str]) -> None:
    assert all(f"`{value}`: " in LABELS[label] for value in values)


def test_the_reference_page_is_up_to_date() -> None:
    """Otherwise: python -m groupwright.instrumentation.reference > instrumentation/REFERENCE.md."""
    page = Path(__file__).parents[1] / "REFERENCE.md"

    assert page.read_text(encoding="utf-8") == reference.page()
