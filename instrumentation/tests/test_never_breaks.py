"""Measuring never breaks what is measured: failures inside are counted, logged once, and go no further."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Rebalance
from groupwright.instrumentation import ObservableConsumer, instrument

ERRORS = "groupwright_instrumentation_errors_total"

Value = Callable[..., float | None]
NewConsumer = Callable[..., ObservableConsumer]


class BrokenRecord:
    """A record whose last part cannot be read."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def __getattr__(self, name: str) -> Any:
        if name == "partitions":
            raise RuntimeError("the partitions cannot be read")
        return getattr(self._rebalance, name)


@pytest.fixture
def broken(new_rebalance: Callable[..., Rebalance]) -> Rebalance:
    record: Any = BrokenRecord(new_rebalance())
    return record  # type: ignore[no-any-return] # broken on purpose


def test_a_record_that_cannot_be_read_is_counted_each_time_and_logged_once(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    broken: Rebalance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = new_consumer()
    listener = instrument(consumer, registry=registry)

    for _ in range(3):
        listener.rebalanced(broken)

    assert value(ERRORS) == 3
    (logged,) = caplog.records
    assert (logged.name, logged.levelno) == ("groupwright.instrumentation", logging.WARNING)
    assert "[c-1 in billing]" in logged.getMessage()
    assert "rebalanced" in logged.getMessage()
    assert "the partitions cannot be read" in logged.getMessage()
    assert logged.exc_info is not None


def test_a_record_that_cannot_be_read_leaves_no_half_of_itself_behind(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    broken: Rebalance,
    new_rebalance: Callable[..., Rebalance],
) -> None:
    """Else the counter would say one rebalance more than the histogram has durations."""
    consumer = new_consumer()
    listener = instrument(consumer, registry=registry)
    listener.rebalanced(broken)
    assert value("groupwright_rebalance_duration_seconds_count", protocol="range") == 0

    listener.rebalanced(new_rebalance())
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 1
    assert value("groupwright_rebalance_duration_seconds_count", protocol="range") == 1


def test_another_kind_of_failure_is_logged_as_well(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    broken: Rebalance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = new_consumer()
    listener = instrument(consumer, registry=registry)
    nonsense: Any = None

    listener.rebalanced(broken)
    listener.partitions_assigned(nonsense, 0.0)
    listener.partitions_revoked({"orders": [0]}, nonsense)
    listener.partitions_lost(nonsense, nonsense)

    assert value(ERRORS) == 4
    assert len(caplog.records) == 4


def test_a_consumer_that_cannot_say_when_it_polled_does_not_break_a_scrape(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> float:
        raise RuntimeError("no clock")

    good, bad = new_consumer(client_id="c-1"), new_consumer(client_id="c-2", age=fail)
    instrument(good, registry=registry)
    instrument(bad, registry=registry)

    samples = {
        (sample.name, sample.labels.get("client_id")): sample.value
        for family in registry.collect()
        for sample in family.samples
    }

    assert samples["groupwright_last_poll_age_seconds", "c-1"] == 0.5
    assert ("groupwright_last_poll_age_seconds", "c-2") not in samples
    assert samples[ERRORS, "c-2"] == 1  # in the very scrape that failed
    assert samples[ERRORS, "c-1"] == 0
    assert value(ERRORS, client_id="c-2") == 2
    assert len(caplog.records) == 1
