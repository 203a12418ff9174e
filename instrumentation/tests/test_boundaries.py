"""What instrumentation knows of consumers: their shape alone."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable

import confluent_kafka
import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Consumer
from groupwright.instrumentation import ObservableConsumer, instrument

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
        timeout=60,
    )

    assert ran.stdout == "['instrumentation']\n"


def test_the_reference_is_printed_by_a_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "groupwright.instrumentation.reference"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
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
            TypeError, match=r"takes no stats_cb any more\. Make it by `instrumented\(Consumer, config\)`"
        ):
            instrument(consumer, registry=registry)  # type: ignore[arg-type] # what is tested
    finally:
        consumer.close()
