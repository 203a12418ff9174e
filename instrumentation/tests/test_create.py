"""`create_instrumented`: the client keeps its type, is not kept alive; non-clients are refused. No broker."""

import asyncio
import contextlib
import gc
import itertools
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import confluent_kafka
import pytest
from confluent_kafka import (
    DeserializingConsumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    SerializingProducer,
    TopicPartition,
)
from confluent_kafka.aio import AIOConsumer
from prometheus_client import CollectorRegistry, Gauge

from groupwright.consumer import Consumer
from groupwright.instrumentation import Metrics, ObservableConsumer, create_instrumented, instrument
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import (
    ConsumerStatistics,
    PartitionStatistics,
    read_producer,
)

Value = Callable[..., float | None]
V = TypeVar("V")

# Reserved and refused at once: nothing is to be reached.
UNREACHABLE = {"bootstrap.servers": "127.0.0.1:1", "client.id": "c-1", "log_level": 0}
NOWHERE = {**UNREACHABLE, "group.id": "billing"}


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
    assert value("groupwright_membership_state", state="unjoined") is None


class Typed(confluent_kafka.Consumer, Generic[V]):
    """A generic class, as `DeserializingConsumer` is since confluent-kafka 2.16."""


def test_a_class_may_have_type_arguments(registry: CollectorRegistry) -> None:
    with contextlib.closing(
        create_instrumented(Typed[int], NOWHERE, registry=registry, advise=False)
    ) as consumer:
        assert isinstance(consumer, Typed)
        assert consumer.poll(0) is None


@pytest.mark.parametrize("kind", [confluent_kafka.Consumer, DeserializingConsumer, Own, None])
def test_a_tracer_may_replace_the_class_of_consumers(
    kind: Any, registry: CollectorRegistry, value: Value, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As opentelemetry-instrumentation-confluent-kafka does."""

    class Traced(confluent_kafka.Consumer):
        pass

    monkeypatch.setattr(confluent_kafka, "Consumer", Traced)
    kind = kind or Traced
    with contextlib.closing(create_instrumented(kind, NOWHERE, registry=registry, advise=False)) as consumer:
        assert isinstance(consumer, kind)
        consumer.poll(0)
        assert value("groupwright_last_poll_age_seconds") is not None


@pytest.mark.parametrize("kind", [Producer, SerializingProducer, None])
def test_a_tracer_may_replace_the_class_of_producers(
    kind: Any, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Traced(Producer):
        pass

    monkeypatch.setattr(confluent_kafka, "Producer", Traced)
    kind = kind or Traced
    assert isinstance(create_instrumented(kind, UNREACHABLE, registry=registry), kind)


@pytest.mark.medium
def test_a_tracer_that_comes_first_does_not_trace_other_classes() -> None:
    """The wrapper is imported after the class was replaced, and yet derives from the C class."""
    script = """
import confluent_kafka
from confluent_kafka import Consumer

class Traced(Consumer):
    pass

confluent_kafka.Consumer = Traced
from groupwright.instrumentation import create_instrumented

consumer = create_instrumented(Consumer, {"group.id": "billing"}, advise=False)
assert not isinstance(consumer, Traced)
consumer.close()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


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


def test_a_class_with_an_asynchronous_constructor_is_refused_in_words(registry: CollectorRegistry) -> None:
    aio = pytest.importorskip("confluent_kafka.aio")
    kind = getattr(aio, "AsyncDeserializingConsumer", None)
    if kind is None:
        pytest.skip("confluent-kafka before 2.16")
    with pytest.raises(
        TypeError, match=r"its constructor is asynchronous\. Use AIOConsumer, and deserialize"
    ):
        create_instrumented(kind, NOWHERE, registry=registry)


@pytest.mark.slow
@pytest.mark.skipif(
    confluent_kafka.libversion()[1] < 0x020D0000, reason="it asks for the first token in poll"
)
@pytest.mark.parametrize("name", ["Consumer", pytest.param("ShareConsumer", marks=pytest.mark.endurance)])
def test_a_consumer_without_a_first_token_raises_what_a_plain_one_raises(
    name: str, registry: CollectorRegistry
) -> None:
    """confluent-kafka waits for the token for 10 s."""
    kind = getattr(confluent_kafka, name, None)
    if kind is None:
        pytest.skip("confluent-kafka before 2.15")

    def oauth_cb(_: str) -> tuple[str, float]:
        raise LookupError("no login")

    config = {
        **NOWHERE,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": oauth_cb,
    }
    with ThreadPoolExecutor() as threads:
        plain = threads.submit(kind, config)
        instrumented = threads.submit(create_instrumented, kind, config, registry=registry)

    errors = [each.exception() for each in (plain, instrumented)]
    assert [type(error) for error in errors] == [KafkaException, KafkaException]
    codes, texts = zip(*((error.args[0].code(), str(error)) for error in errors if error), strict=True)
    assert codes == (KafkaError.SASL_AUTHENTICATION_FAILED,) * 2
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("base", "given", "interval"),
    [
        (confluent_kafka.Consumer, {}, 15_000),
        (confluent_kafka.Consumer, {"statistics.interval.ms": 0}, 0),
        (Producer, {}, None),
        (Producer, {"statistics.interval.ms": 500}, 500),
    ],
)
def test_only_a_consumer_emits_statistics_unless_the_application_says_otherwise(
    base: Any, given: dict[str, int], interval: int | None, registry: CollectorRegistry
) -> None:
    """librdkafka would queue those of an idle producer until it polls again."""

    class Client(base):  # type: ignore[misc] # a parameter
        def __init__(self, config: dict[str, Any]) -> None:
            self.interval = config.get("statistics.interval.ms")
            super().__init__(config)

    config = {**(UNREACHABLE if base is Producer else NOWHERE), **given}
    client = create_instrumented(Client, config, registry=registry, advise=False)
    assert client.interval == interval
    if base is confluent_kafka.Consumer:
        client.close()


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


class Named(confluent_kafka.Consumer):
    """Attributes, as services name them, before and after the constructor of the base class."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.group_id = "own"
        super().__init__(config)
        self.settings = {"retries": 3}
        self.poll_age = "young"


class ClassNamed(confluent_kafka.Consumer):
    """The same as attributes of the class."""

    settings = None
    client_id = 7


class Methods(confluent_kafka.Consumer):
    """Methods, as services name them: it produces, and has listeners of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.own: list[object] = []

    def settings(self) -> dict[str, object]:
        return {"retries": 3}

    def add_listener(self, listener: object) -> None:
        self.own.append(listener)

    def produce(self, topic: str) -> str:
        return topic

    def _record(self) -> None:
        raise AssertionError

    _tracking_callback = _record


@pytest.mark.parametrize("kind", [Named, ClassNamed, Methods])
def test_a_class_derived_from_it_may_have_attributes_by_any_name(
    kind: Any, registry: CollectorRegistry, value: Value
) -> None:
    plain = kind(NOWHERE)
    plain.close()
    with contextlib.closing(create_instrumented(kind, NOWHERE, registry=registry, advise=False)) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(0)
        age = value("groupwright_last_poll_age_seconds")
        assert age is not None
        assert age >= 0
        assert value("groupwright_instrumentation_errors_total") == 0
        for name in ("group_id", "settings", "poll_age", "client_id", "own"):
            if isinstance(getattr(plain, name, None), (str, int, dict, list)):
                assert getattr(consumer, name) == getattr(plain, name)


@pytest.mark.parametrize("topics", [["orders"], []])
def test_max_poll_interval_applies_to_subscribed_consumers_alone(
    topics: list[str], registry: CollectorRegistry, value: Value, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.closing(
        create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry)
    ) as made:
        consumer: Any = made
        consumer.assign([TopicPartition("orders", 0)])
        if topics:
            consumer.subscribe(topics)
        consumer._groupwright_tracker.last_poll -= 290.0
        used = value("groupwright_poll_interval_used_ratio")
        assert (used is not None and used > 0.9) if topics else used is None
        assert value("groupwright_warnings_total", rule="max-poll-interval") == len(topics)
        consumer.unsubscribe()
        assert value("groupwright_poll_interval_used_ratio") is None
    assert len(caplog.records) == len(topics)


def test_an_assignment_by_hand_is_a_new_start_of_its_partitions(
    registry: CollectorRegistry, value: Value
) -> None:
    """An empty log was read to its end, 500 messages further, which the application committed."""
    now = itertools.count(time.monotonic() + 10.0, 10.0)

    def lag_at(position: int, committed: int, end: int) -> float | None:
        partition = PartitionStatistics(position, end, committed, end, 0, end, end)
        at = next(now)
        consumer._groupwright_tracker.callbacks.on_statistics(
            ConsumerStatistics(at, None, None, {}, {("orders", 0): partition}), at
        )
        return value("groupwright_lag", topic="orders")

    made = create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry, advise=False)
    with contextlib.closing(made):
        consumer: Any = made
        consumer.assign([TopicPartition("orders", 0)])
        assert lag_at(-1001, -1001, 0) is None
        assert lag_at(-1001, -1001, 0) == 0
        assert lag_at(500, 500, 500) == 0

        consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
        now = itertools.count(next(now), 10.0)
        assert lag_at(-1001, 500, 500) is None
        assert lag_at(-1001, 500, 500) == 0


def test_a_consumer_whose_offsets_a_producer_commits_says_so(registry: CollectorRegistry) -> None:
    """It learns of no commit, so its committed lag would only grow."""
    for kind in (confluent_kafka.Consumer, Consumer):
        with contextlib.closing(
            create_instrumented(kind, NOWHERE, registry=registry, advise=False)
        ) as consumer:
            observable: Any = consumer
            assert not observable.membership_snapshot.commits_by_producer
            consumer.consumer_group_metadata()
            assert observable.membership_snapshot.commits_by_producer


def test_so_does_one_for_asyncio(registry: CollectorRegistry) -> None:
    async def ask() -> None:
        consumer: Any = create_instrumented(AIOConsumer, NOWHERE, registry=registry, advise=False)
        assert not consumer.membership_snapshot.commits_by_producer
        await consumer.consumer_group_metadata()
        assert consumer.membership_snapshot.commits_by_producer
        await consumer.close()

    asyncio.run(ask())


@pytest.mark.parametrize("closed", ["closed", ""])
def test_totals_of_a_consumer_that_ends_between_two_scrapes_are_counted(
    closed: str, registry: CollectorRegistry, value: Value
) -> None:
    """As a service replaces a consumer after a fatal error."""
    consumer: Any = create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry, advise=False)
    consumer.poll(0.01)
    for code in (KafkaError._MAX_POLL_EXCEEDED, KafkaError.FENCED_INSTANCE_ID):
        consumer._groupwright_tracker.on_error(KafkaError(code))
    consumer._groupwright_tracker.callbacks.record_error(KafkaError(KafkaError._SSL))
    if closed:
        consumer.close()
    del consumer
    gc.collect()
    made = create_instrumented(confluent_kafka.Consumer, NOWHERE, registry=registry, advise=False)

    with contextlib.closing(made):
        for _ in range(2):
            assert value("groupwright_max_poll_exceeded_total") == 1
            assert value("groupwright_fenced_total") == 1
            assert value("groupwright_client_errors_total", error="_SSL") == 1
            assert (value("groupwright_poll_seconds_total") or 0.0) >= 0.01


def test_totals_of_a_producer_that_ends_between_two_scrapes_are_counted(
    registry: CollectorRegistry, statistics: Callable[[str], str]
) -> None:
    for _ in range(2):
        callbacks = LibrdkafkaCallbacks(read_producer)
        Metrics.of(registry).add_producer("p-1", callbacks)
        callbacks.record_statistics(statistics("producer"))
        callbacks.record_error(KafkaError(KafkaError._TRANSPORT))
        del callbacks
        gc.collect()

    labels = {"client_id": "p-1"}
    for _ in range(2):
        assert registry.get_sample_value("groupwright_producer_messages_total", labels) == 80
        errors = {**labels, "error": "_TRANSPORT"}
        assert registry.get_sample_value("groupwright_producer_client_errors_total", errors) == 2
        assert registry.get_sample_value("groupwright_producer_queue_messages", labels) is None


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
