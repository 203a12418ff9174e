"""`create_instrumented`: the client keeps its type, is not kept alive; non-clients are refused. No broker."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import DeserializingConsumer, KafkaException, Message, Producer
from prometheus_client import CollectorRegistry, Gauge

from groupwright.instrumentation import ObservableConsumer, create_instrumented, instrument

Value = Callable[..., float | None]

# Reserved and refused at once: nothing is to be reached.
NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "billing", "client.id": "c-1", "log_level": 0}


class Own(confluent_kafka.Consumer):
    """A consumer as services derive them."""

    polls = 0
    closed = False

    def poll(self, timeout: float = -1) -> Message | None:
        self.polls += 1
        return super().poll(timeout)

    def close(self) -> None:
        self.closed = True
        super().close()


@pytest.mark.parametrize("kind", [confluent_kafka.Consumer, DeserializingConsumer, Own])
def test_a_consumer_stays_what_it_is(kind: Any, registry: CollectorRegistry, value: Value) -> None:
    with contextlib.closing(create_instrumented(kind, NOWHERE, registry=registry, advise=False)) as consumer:
        assert isinstance(consumer, kind)
        assert type(consumer).__name__ == kind.__name__
        observable: ObservableConsumer = consumer
        assert consumer.poll(0.01) is None
        inside = value("groupwright_poll_seconds_total")
        assert inside is not None
        assert inside >= 0.01
        assert (observable.group_id, observable.client_id) == ("billing", "c-1")
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)
    assert value("groupwright_last_poll_age_seconds") is None
    assert value("groupwright_membership_state", state="unjoined") == 1


def test_methods_of_a_class_derived_from_it_are_called(registry: CollectorRegistry) -> None:
    with contextlib.closing(create_instrumented(Own, NOWHERE, registry=registry, advise=False)) as consumer:
        consumer.poll(0)
        assert consumer.polls == 1
    assert consumer.closed


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "eager"),
        ({"partition.assignment.strategy": "cooperative-sticky"}, "cooperative"),
        ({"group.protocol": "consumer"}, "consumer"),
    ],
)
def test_the_kind_of_its_rebalances_is_told_from_the_start(
    changes: dict[str, str], kind: str, registry: CollectorRegistry, value: Value
) -> None:
    with contextlib.closing(
        create_instrumented(confluent_kafka.Consumer, {**NOWHERE, **changes}, registry=registry, advise=False)
    ):
        assert value("groupwright_consumer_info", client="librdkafka", kind=kind) == 1


def test_neither_the_configuration_is_changed_nor_the_consumer_kept_alive(
    registry: CollectorRegistry, value: Value
) -> None:
    config = dict(NOWHERE)
    consumer = create_instrumented(confluent_kafka.Consumer, config, registry=registry, advise=False)
    consumer.subscribe(["orders"])
    assert config == NOWHERE
    gone = weakref.ref(consumer)

    del consumer
    gc.collect()

    assert gone() is None
    assert value("groupwright_last_poll_age_seconds") is None


def test_a_commit_that_fails_is_counted_and_raised_as_ever(registry: CollectorRegistry, value: Value) -> None:
    with contextlib.closing(
        create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry, advise=False)
    ) as consumer:
        with pytest.raises(KafkaException, match=r"_NO_OFFSET|No offset stored"):
            consumer.commit(asynchronous=False)

        assert value("groupwright_commits_total") == 1
        assert value("groupwright_commit_failures_total", error="_NO_OFFSET") == 1
        assert value("groupwright_commit_duration_seconds_count") == 1


def test_what_librdkafka_refuses_is_refused_as_ever(registry: CollectorRegistry) -> None:
    with pytest.raises(KafkaException, match=r"No such configuration property"):
        create_instrumented(confluent_kafka.Consumer, {**NOWHERE, "no.such": 1}, registry=registry)


@pytest.mark.parametrize("kind", [dict, confluent_kafka.Message, print])
def test_what_is_no_client_is_refused_in_words(kind: Any, registry: CollectorRegistry) -> None:
    with pytest.raises(TypeError, match=r"is not a client class of confluent-kafka\. Pass a class"):
        create_instrumented(kind, NOWHERE, registry=registry)


@pytest.mark.parametrize("kind", [confluent_kafka.Consumer, Producer])
def test_a_client_is_made_all_the_same_where_the_registry_clashes_and_the_log_says_so(
    kind: Any, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """A service must not fail at its start because two libraries call a metric by one name."""
    Gauge("groupwright_build_info", "someone else's", registry=registry)

    client = create_instrumented(kind, NOWHERE, registry=registry, advise=False)

    assert isinstance(client, kind)
    client.poll(0)
    (logged,) = caplog.records
    assert (
        "its metrics are not served: the registry has other metrics by Groupwright's names"
        in logged.getMessage()
    )
    assert {family.name for family in registry.collect()} == {"groupwright_build_info"}
    if kind is confluent_kafka.Consumer:
        client.close()


def test_a_second_look_at_a_consumer_returns_what_can_be_removed(
    registry: CollectorRegistry, value: Value
) -> None:
    with contextlib.closing(
        create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry, advise=False)
    ) as consumer:
        observable: Any = consumer
        instrument(observable, registry).remove()

        assert value("groupwright_last_poll_age_seconds") is None
        assert value("groupwright_instrumentation_errors_total") is None


def test_a_configuration_that_causes_rebalances_is_warned_of_at_the_start(
    registry: CollectorRegistry, value: Value, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**NOWHERE, "session.timeout.ms": 6000, "heartbeat.interval.ms": 3000}
    with contextlib.closing(create_instrumented(confluent_kafka.Consumer, config, registry=registry)):
        assert value("groupwright_warnings_total", rule="session-timeout") == 1
    (logged,) = caplog.records
    assert "less than three times heartbeat.interval.ms, which is 3000" in logged.getMessage()
    assert "Set session.timeout.ms to 9000 or more" in logged.getMessage()


def test_a_producers_callbacks_go_on_and_its_errors_are_counted(registry: CollectorRegistry) -> None:
    heard: list[str] = []
    config = {
        "bootstrap.servers": "127.0.0.1:1",
        "client.id": "p-1",
        "log_level": 0,
        "error_cb": lambda error: heard.append(error.name()),
    }
    producer = create_instrumented(Producer, config, registry=registry)
    while "_ALL_BROKERS_DOWN" not in heard:
        producer.poll(0.1)

    labels = {"client_id": "p-1", "error": "_ALL_BROKERS_DOWN"}
    count = registry.get_sample_value("groupwright_producer_client_errors_total", labels)
    assert count == heard.count("_ALL_BROKERS_DOWN")
