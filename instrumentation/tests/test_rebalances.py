"""Exact values that a rebalance adds to counters, histograms and gauges."""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Phase, Rebalance
from groupwright.instrumentation import Instrumentation, ObservableConsumer, instrument
from groupwright.instrumentation._metrics.labels import DURATION_BUCKETS

Value = Callable[..., float | None]
NewRebalance = Callable[..., Rebalance]


@pytest.fixture
def consumer(new_consumer: Callable[..., ObservableConsumer]) -> ObservableConsumer:
    return new_consumer()


@pytest.fixture
def listener(consumer: ObservableConsumer, registry: CollectorRegistry) -> Instrumentation:
    return instrument(consumer, registry=registry)


@pytest.mark.usefixtures("listener")
def test_counters_are_at_0_before_the_first_rebalance_so_that_rate_sees_the_first_failure(
    value: Value,
) -> None:
    """A series whose first value is 1 has, to `rate()`, never increased."""
    assert value("groupwright_rebalances_total", protocol="none", outcome="failed") == 0
    assert value("groupwright_instrumentation_errors_total") == 0


def test_each_rebalance_counts_under_its_protocol_and_outcome(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    listener.rebalanced(new_rebalance())
    listener.rebalanced(new_rebalance())
    listener.rebalanced(new_rebalance(outcome=Outcome.LOST))
    listener.rebalanced(new_rebalance(protocol="sticky"))
    listener.rebalanced(new_rebalance(protocol=None, outcome=Outcome.FAILED, error="refused"))

    def count(protocol: str, outcome: str) -> float | None:
        return value("groupwright_rebalances_total", protocol=protocol, outcome=outcome)

    assert [count("range", outcome) for outcome in Outcome] == [2, 1, 0]
    assert [count("sticky", outcome) for outcome in Outcome] == [1, 0, 0]
    assert [count("none", outcome) for outcome in Outcome] == [None, None, 1]


def test_durations_land_in_the_buckets_that_hold_them(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    for duration in (0.0005, 0.05, 0.3, 44.0, 301.0):
        listener.rebalanced(new_rebalance(duration=duration))

    name = "groupwright_rebalance_duration_seconds"
    buckets = {
        bound: value(f"{name}_bucket", protocol="range", le=str(float(bound))) for bound in DURATION_BUCKETS
    }
    assert buckets == {
        0.001: 1,
        0.005: 1,
        0.01: 1,
        0.025: 1,
        0.05: 2,  # a bound belongs to its bucket
        0.1: 2,
        0.25: 2,
        0.5: 3,
        1: 3,
        3: 3,
        10: 3,
        45: 4,
        120: 4,
        300: 4,
    }
    assert value(f"{name}_bucket", protocol="range", le="+Inf") == 5
    assert value(f"{name}_count", protocol="range") == 5
    assert value(f"{name}_sum", protocol="range") == pytest.approx(345.3505)


def test_each_phase_that_was_gone_through_is_timed(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    """A member's first rebalance revokes nothing: it must not pull the revoke phase's average to 0."""
    listener.rebalanced(new_rebalance(phases={Phase.JOIN: 3.5, Phase.SYNC: 0.25, Phase.ASSIGN: 0.125}))
    listener.rebalanced(new_rebalance())

    def phase(suffix: str, phase: str, **labels: str) -> float | None:
        name = f"groupwright_rebalance_phase_duration_seconds_{suffix}"
        return value(name, protocol="range", phase=phase, **labels)

    assert [phase("count", each) for each in Phase] == [1, 2, 2, None, 2]
    assert phase("sum", "revoke") == pytest.approx(0.02)
    assert phase("sum", "join") == pytest.approx(3.7)
    assert phase("sum", "sync") == pytest.approx(0.3)
    assert phase("sum", "assign") == pytest.approx(0.155)
    assert phase("bucket", "join", le="3.0") == 1
    assert phase("bucket", "join", le="10.0") == 2


def test_callbacks_are_timed_each_by_itself(listener: Instrumentation, value: Value) -> None:
    listener.partitions_assigned({"orders": [0, 1]}, 0.004)
    listener.partitions_revoked({"orders": [0, 1]}, 2.0)
    listener.partitions_revoked({"orders": []}, 0.5)
    listener.partitions_lost({"orders": [1]}, 0.0)

    def callback(suffix: str, callback: str, **labels: str) -> float | None:
        name = f"groupwright_rebalance_callback_duration_seconds_{suffix}"
        return value(name, callback=callback, **labels)

    assert (callback("count", "assign"), callback("sum", "assign")) == (1, 0.004)
    assert (callback("count", "revoke"), callback("sum", "revoke")) == (2, 2.5)
    assert (callback("count", "lost"), callback("sum", "lost")) == (1, 0)
    assert callback("bucket", "revoke", le="1.0") == 1
    assert callback("bucket", "revoke", le="3.0") == 2


def test_partitions_are_counted_by_topic_and_by_what_became_of_them(
    listener: Instrumentation, value: Value
) -> None:
    listener.partitions_assigned({"orders": [0, 1, 2], "refunds": range(4)}, 0.0)
    listener.partitions_revoked({"orders": [0, 1]}, 0.0)
    listener.partitions_lost({"refunds": [3]}, 0.0)
    listener.partitions_assigned({"orders": [5]}, 0.0)

    def counts(topic: str) -> list[float | None]:
        words = ("assigned", "revoked", "lost")
        return [value(f"groupwright_partitions_{word}_total", topic=topic) for word in words]

    assert counts("orders") == [4, 2, 0]
    assert counts("refunds") == [4, 0, 1]


def test_what_is_owned_follows_each_event_and_is_0_after_the_last_partition_has_gone(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    """An alert on "this topic is unassigned" needs a 0 to see, not a series that has vanished."""

    def owned() -> list[float | None]:
        return [value("groupwright_partitions_owned", topic=topic) for topic in ("orders", "refunds")]

    assert owned() == [None, None]
    listener.partitions_assigned({"orders": [0, 1, 2], "refunds": [0]}, 0.0)
    listener.rebalanced(new_rebalance(partitions={"orders": [0, 1, 2], "refunds": [0]}))
    assert owned() == [3, 1]

    listener.partitions_revoked({"orders": [0, 1], "refunds": [0]}, 0.0)
    assert owned() == [1, 0]
    listener.rebalanced(new_rebalance(partitions={"orders": [2]}))
    assert owned() == [1, 0]

    listener.partitions_lost({"orders": [2]}, 0.0)
    assert owned() == [0, 0]


def test_a_consumer_instrumented_late_shows_what_it_owns_after_its_next_rebalance(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    """It revokes partitions that were assigned before; the gauge must not become negative."""
    listener.partitions_revoked({"orders": [0, 1]}, 0.0)
    assert value("groupwright_partitions_owned", topic="orders") == 0

    listener.rebalanced(new_rebalance(partitions={"orders": [4]}))
    assert value("groupwright_partitions_owned", topic="orders") == 1


def test_the_last_rebalance_is_told_whatever_its_outcome(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    names = ("last_rebalance_timestamp_seconds", "last_rebalance_duration_seconds", "generation")

    def last() -> list[float | None]:
        return [value(f"groupwright_{name}") for name in names]

    assert last() == [None, None, None]
    listener.rebalanced(new_rebalance(generation=7, duration=0.3, ended_at=1_700_000_000.5))
    assert last() == [1_700_000_000.5, 0.3, 7]

    failed = new_rebalance(
        generation=-1, duration=60.0, ended_at=1_700_000_100.0, protocol=None, outcome=Outcome.FAILED
    )
    listener.rebalanced(failed)
    assert last() == [1_700_000_100.0, 60.0, 7]


def test_a_failed_rebalance_does_not_say_what_is_owned(
    listener: Instrumentation, value: Value, new_rebalance: NewRebalance
) -> None:
    listener.rebalanced(new_rebalance(partitions={"orders": [0, 1]}))
    listener.rebalanced(new_rebalance(outcome=Outcome.FAILED, protocol=None, partitions={}, generation=-1))

    assert value("groupwright_partitions_owned", topic="orders") == 2


def test_the_poll_age_is_taken_when_scraped(
    new_consumer: Callable[..., ObservableConsumer], registry: CollectorRegistry, value: Value
) -> None:
    ages = iter([0.25, 61.0, None])
    consumer = new_consumer(age=lambda: next(ages))
    instrument(consumer, registry=registry)

    assert value("groupwright_last_poll_age_seconds") == 0.25
    assert value("groupwright_last_poll_age_seconds") == 61.0
    assert value("groupwright_last_poll_age_seconds") is None  # it was closed: no poll is due


def test_a_rebalance_of_librdkafkas_that_is_reported_late_does_not_change_what_is_owned(
    registry: CollectorRegistry,
    new_consumer: Callable[..., Any],
    value: Value,
    new_rebalance: NewRebalance,
) -> None:
    """Under KIP-848 the callback of one rebalance ends the one before it."""
    consumer = new_consumer(settings={"group.protocol": "consumer"})
    listener = instrument(consumer, registry)
    listener.partitions_assigned({"orders": [0, 1]}, 0.0)
    listener.rebalanced(new_rebalance(partitions={"orders": [0]}, generation=7))

    assert value("groupwright_partitions_owned", topic="orders") == 2
    assert value("groupwright_generation") == 7
