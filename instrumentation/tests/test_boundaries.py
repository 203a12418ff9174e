"""Instrumentation depends on the consumers' interface alone."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable

import confluent_kafka
import pytest
from prometheus_client import CollectorRegistry

import groupwright.consumer
from groupwright.assignors import RangeAssignor
from groupwright.consumer import Consumer
from groupwright.instrumentation import ObservableConsumer, instrument
from integration_tests.harness.patience import PATIENCE

# Reserved and refused at once: nothing is to be reached by tests that need no Kafka.
NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "billing", "client.id": "c-1", "log_level": 0}


def test_it_can_be_used_without_the_other_parts() -> None:
    program = (
        "import sys, groupwright.instrumentation, groupwright.instrumentation.reference\n"
        "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('groupwright.')}))"
    )

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert ran.stdout == "['core', 'instrumentation']\n"


def test_the_reference_is_printed_by_a_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "groupwright.instrumentation.reference"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert "| `groupwright_rebalances_total` | counter |" in ran.stdout


def test_groupwrights_consumer_has_the_shape(
    registry: CollectorRegistry, value: Callable[..., float | None]
) -> None:
    """The annotation is half of the test: the type checker must accept it."""
    with Consumer(NOWHERE) as consumer:
        observable: ObservableConsumer = consumer
        instrument(observable, registry=registry)

        age = value("groupwright_last_poll_age_seconds")

        assert age is not None
        assert 0 <= age <= (consumer.poll_age or 0.0)
        assert value("groupwright_instrumentation_errors_total") == 0


def test_groupwrights_asynchronous_consumer_offers_the_same() -> None:
    pytest.importorskip("confluent_kafka.aio", reason="confluent-kafka has no asyncio consumer")
    for member in ("membership_snapshot", "settings", "group_id", "client_id", "poll_age", "add_listener"):
        assert hasattr(groupwright.consumer.AIOConsumer, member)


def test_groupwrights_settings_are_advice_enough_and_show_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    config = {
        **NOWHERE,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 5000,
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.username": "service",
        "sasl.password": "hush",
        "partition.assignment.strategy": [RangeAssignor()],
        "error_cb": lambda _: None,
    }
    with Consumer(config) as consumer:
        instrument(consumer, registry=CollectorRegistry())

        assert consumer.settings["partition.assignment.strategy"] == "range"
        assert "hush" not in repr(consumer.settings)
        assert not any(callable(value) for value in consumer.settings.values())
        assert "hush" not in repr(vars(consumer._member))
    assert any("session.timeout.ms is 6000" in record.getMessage() for record in caplog.records)


def test_groupwrights_consumer_is_not_kept_alive(
    registry: CollectorRegistry, value: Callable[..., float | None]
) -> None:
    consumer = Consumer(NOWHERE)
    instrument(consumer, registry=registry)
    gone = weakref.ref(consumer)
    assert value("groupwright_last_poll_age_seconds") is not None

    del consumer
    gc.collect()

    assert gone() is None
    assert value("groupwright_last_poll_age_seconds") is None


def test_a_plain_consumer_that_is_made_already_is_refused_in_words_and_by_the_type_checker(
    registry: CollectorRegistry,
) -> None:
    consumer = confluent_kafka.Consumer(NOWHERE)
    try:
        with pytest.raises(
            TypeError,
            match=(
                r"accepts callbacks only in the constructor\. "
                r"Create it by create_instrumented\(Consumer, config\)"
            ),
        ):
            instrument(consumer, registry=registry)  # type: ignore[arg-type] # what is tested
    finally:
        consumer.close()
