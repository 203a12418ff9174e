"""Whose series are whose: registries, consumers that share one, removal, and consumers that are gone."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from groupwright.consumer import Rebalance
from groupwright.instrumentation import Metrics, instrument
from integration_tests.harness.patience import PATIENCE

Series = Callable[[], dict[tuple[str, frozenset[tuple[str, str]]], float]]
Value = Callable[..., float | None]
NewConsumer = Callable[..., Any]
NewRebalance = Callable[..., Rebalance]


def clients(series: Series) -> set[str]:
    return {value for _, labels in series() for name, value in labels if name == "client_id"}


def test_two_registries_in_a_process_know_nothing_of_each_other(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    other = CollectorRegistry()
    here, there = new_consumer(), new_consumer()
    instrument(here, registry=registry).rebalanced(new_rebalance())
    instrument(there, registry=other)

    labels = {"protocol": "range", "outcome": "completed"}
    assert value("groupwright_rebalances_total", **labels) == 1
    usual = {"group": "billing", "client_id": "c-1"}
    assert other.get_sample_value("groupwright_rebalances_total", {**usual, **labels}) == 0
    assert other.get_sample_value("groupwright_instrumentation_errors_total", usual) == 0


def test_one_consumer_may_be_measured_in_two_registries(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    other = CollectorRegistry()
    consumer = new_consumer()
    instrument(consumer, registry=registry)
    instrument(consumer, registry=other)
    for listener in consumer.listeners:
        listener.partitions_assigned({"orders": [0, 1]}, 0.0)

    labels = {"group": "billing", "client_id": "c-1", "topic": "orders"}
    assert value("groupwright_partitions_assigned_total", topic="orders") == 2
    assert other.get_sample_value("groupwright_partitions_assigned_total", labels) == 2


def test_two_consumers_in_one_registry_share_families_and_keep_their_series_apart(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    """Families made once for each consumer would be refused: "Duplicated timeseries in CollectorRegistry"."""
    first, second = new_consumer(client_id="c-1"), new_consumer(client_id="c-2", age=lambda: 9.0)
    instrument(first, registry=registry).rebalanced(new_rebalance(partitions={"orders": [0]}))
    instrument(second, registry=registry).rebalanced(new_rebalance(partitions={"orders": [1, 2]}))

    for client_id, owned, age in (("c-1", 1, 0.5), ("c-2", 2, 9.0)):
        assert value("groupwright_partitions_owned", client_id=client_id, topic="orders") == owned
        assert value("groupwright_last_poll_age_seconds", client_id=client_id) == age
    text = generate_latest(registry).decode()
    assert text.count("# TYPE groupwright_partitions_owned gauge\n") == 1


def test_the_registry_itself_is_where_its_metrics_are_found_again(registry: CollectorRegistry) -> None:
    metrics = Metrics.of(registry)

    assert Metrics.of(registry) is metrics
    assert Metrics.of(CollectorRegistry()) is not metrics

    registry.unregister(metrics)
    assert Metrics.of(registry) is not metrics


def test_a_collector_registered_by_hand_is_found_as_well(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer
) -> None:
    metrics = Metrics()
    registry.register(metrics)
    first, second = new_consumer(), new_consumer(client_id="c-2")
    metrics.add_consumer(first)
    instrument(second, registry=registry)

    assert value("groupwright_last_poll_age_seconds", client_id="c-1") == 0.5
    assert value("groupwright_last_poll_age_seconds", client_id="c-2") == 0.5


def test_threads_that_adopt_at_once_get_the_same_metrics(registry: CollectorRegistry) -> None:
    """Both may find none; the one whose registration is refused must take the other's."""
    start = threading.Barrier(8)
    found: list[Metrics] = []

    def adopt() -> None:
        start.wait(PATIENCE)
        found.append(Metrics.of(registry))

    threads = [threading.Thread(target=adopt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@pytest.mark.parametrize("name", ["groupwright_build_info", "groupwright_generation"])
def test_a_registry_with_someone_elses_metrics_by_our_names_is_refused(
    name: str, registry: CollectorRegistry, new_consumer: NewConsumer
) -> None:
    Gauge(name, "someone else's", registry=registry)

    with pytest.raises(ValueError, match=f"other metrics by Groupwright's names .*{name}"):
        instrument(new_consumer(), registry=registry)


def test_the_same_consumer_again_is_not_counted_twice(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    consumer = new_consumer()
    handle = instrument(consumer, registry=registry)

    assert instrument(consumer, registry=registry) is handle
    for listener in consumer.listeners:
        listener.rebalanced(new_rebalance())
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 1


def test_consumers_of_one_client_id_share_their_series(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    """Without a `client.id`, all consumers of a process are "rdkafka".

    Prometheus would reject the whole scrape if one series had two samples.
    """
    first, second = new_consumer(age=lambda: 40.0), new_consumer(age=lambda: 2.0)
    one, two = instrument(first, registry=registry), instrument(second, registry=registry)
    two.rebalanced(new_rebalance(partitions={"orders": [2, 3]}, ended_at=100.0, duration=0.1, generation=3))
    one.rebalanced(
        new_rebalance(partitions={"orders": [0, 1, 4]}, ended_at=200.0, duration=0.2, generation=4)
    )

    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 2
    assert value("groupwright_partitions_owned", topic="orders") == 5
    assert value("groupwright_last_poll_age_seconds") == 40.0
    assert value("groupwright_last_rebalance_timestamp_seconds") == 200.0
    assert value("groupwright_last_rebalance_duration_seconds") == 0.2
    assert value("groupwright_generation") == 4

    one.remove()
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 2
    assert value("groupwright_partitions_owned", topic="orders") == 2
    assert value("groupwright_last_poll_age_seconds") == 2.0
    two.remove()
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") is None


def test_remove_takes_out_all_series_of_its_consumer_and_none_of_others(
    registry: CollectorRegistry, series: Series, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    first, second = new_consumer(client_id="c-1"), new_consumer(client_id="c-2")
    kept = instrument(first, registry=registry)
    kept.rebalanced(new_rebalance())
    before = series()

    removed = instrument(second, registry=registry)
    removed.partitions_assigned({"orders": [0]}, 0.1)
    removed.rebalanced(new_rebalance())
    removed.partitions_lost({"orders": [0]}, 0.1)
    assert clients(series) == {"c-1", "c-2"}
    removed.remove()

    assert series() == before


def test_after_remove_the_consumer_is_heard_no_more(
    registry: CollectorRegistry, series: Series, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    """It still calls the listener; a rebalance then must not bring its series back."""
    consumer = new_consumer()
    handle = instrument(consumer, registry=registry)
    handle.remove()
    handle.remove()
    for listener in consumer.listeners:
        listener.partitions_assigned({"orders": [0]}, 0.1)
        listener.rebalanced(new_rebalance())

    assert clients(series) == set()


def test_a_consumer_may_be_instrumented_anew_after_remove(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    consumer = new_consumer()
    instrument(consumer, registry=registry).remove()
    instrument(consumer, registry=registry)
    for listener in consumer.listeners:
        listener.rebalanced(new_rebalance())

    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 1


def test_a_consumer_that_was_collected_is_not_held_and_breaks_no_scrape(
    registry: CollectorRegistry,
    value: Value,
    series: Series,
    new_consumer: NewConsumer,
    new_rebalance: NewRebalance,
) -> None:
    """Its gauges end with it: it owns nothing and polls no more. Its counters stay, or totals would fall."""
    consumer = new_consumer()
    handle = instrument(consumer, registry=registry)
    handle.rebalanced(new_rebalance())
    assert value("groupwright_partitions_owned", topic="orders") == 3

    collected = threading.Event()
    consumer.age = _SetsWhenCollected(collected)
    del consumer
    gc.collect()

    assert collected.is_set()
    assert value("groupwright_partitions_owned", topic="orders") is None
    assert value("groupwright_last_poll_age_seconds") is None
    assert value("groupwright_generation") is None
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 1
    assert value("groupwright_instrumentation_errors_total") == 0

    handle.remove()
    assert clients(series) == set()


def test_a_new_consumer_goes_on_with_the_counters_of_the_one_before(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    """A service that makes a new consumer after a fatal error is still the same client."""
    for _ in range(3):
        consumer = new_consumer()
        instrument(consumer, registry=registry).rebalanced(new_rebalance())
        del consumer
        gc.collect()

    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 3


def test_clients_by_ever_new_names_have_a_bounded_number_of_series(
    registry: CollectorRegistry, series: Series, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    """A consumer for each request of a web service has a name of its own. The last can still be scraped."""
    stays = new_consumer(client_id="stays")
    instrument(stays, registry=registry).rebalanced(new_rebalance())
    for number in range(130):
        consumer = new_consumer(client_id=f"c-{number}")
        instrument(consumer, registry=registry).rebalanced(new_rebalance())
        del consumer
    gc.collect()

    shown = clients(series)
    assert shown == {"stays", *(f"c-{number}" for number in range(30, 130))}
    again = new_consumer(client_id="c-30")  # it goes on with its counters, and stays
    instrument(again, registry=registry).rebalanced(new_rebalance())
    for number in range(200, 300):
        consumer = new_consumer(client_id=f"c-{number}")
        instrument(consumer, registry=registry)
        del consumer
    gc.collect()
    assert clients(series) == {"stays", "c-30", *(f"c-{number}" for number in range(200, 300))}
    labels = {"client_id": "c-30", "group": "billing", "protocol": "range", "outcome": "completed"}
    assert registry.get_sample_value("groupwright_rebalances_total", labels) == 2


class _SetsWhenCollected:
    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def __call__(self) -> float:
        return 0.0

    def __del__(self) -> None:
        self._event.set()
