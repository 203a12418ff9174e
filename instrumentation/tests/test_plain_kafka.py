"""Clients in real groups: what they share a process with, what their applications raise, and producers."""

import json
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Producer, TopicPartition
from prometheus_client import CollectorRegistry

import groupwright.consumer
from groupwright.instrumentation import create_instrumented, instrument
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.kafka


def config(kafka: LocalKafka, group: str, client_id: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "statistics.interval.ms": 200,
        "partition.assignment.strategy": "range",
        **more,
    }


class Member:
    """A consumer, and the values of its series."""

    def __init__(self, consumer: Any, registry: CollectorRegistry, group: str, client_id: str) -> None:
        self.consumer = consumer
        self.registry = registry
        self._labels = {"group": group, "client_id": client_id}

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"groupwright_{name}", {**self._labels, **labels})

    @property
    def rebalances(self) -> float | None:
        return self.value("rebalances_total", protocol="range", outcome="completed")


@pytest.fixture
def new_member(
    local_kafka: LocalKafka, registry: CollectorRegistry, request: pytest.FixtureRequest
) -> Callable[..., Member]:
    """Make a member that is closed at the end, whatever happens."""

    def make(group: str, client_id: str, kind: Any = confluent_kafka.Consumer, **more: Any) -> Member:
        made = config(local_kafka, group, client_id, **more)
        consumer = create_instrumented(kind, made, registry=registry, advise=False)
        request.addfinalizer(consumer.close)
        return Member(consumer, registry, group, client_id)

    return make


def poll_until(condition: Callable[[], bool], member: Member) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        message = member.consumer.poll(0.05)
        assert message is None or message.error() is None, message.error()


@pytest.mark.parametrize("kind", [confluent_kafka.Consumer, groupwright.consumer.Consumer])
@pytest.mark.parametrize("protocol", [{}, {"group.protocol": "consumer"}], ids=["classic", "kip848"])
def test_the_applications_callbacks_go_on_and_what_they_raise_leaves_poll(
    kind: Any,
    protocol: dict[str, str],
    new_kafka_topic: NewKafkaTopic,
    local_kafka: LocalKafka,
    registry: CollectorRegistry,
) -> None:
    """A callback that raises, and statistics: the rebalance is counted as what it was."""
    if protocol and local_kafka.version.startswith("3."):
        pytest.skip(f"Kafka {local_kafka.version} has group.protocol=consumer in preview only")
    seen: list[dict[str, Any]] = []
    topic = new_kafka_topic(partitions=1)
    made = config(
        local_kafka, topic, "raising", stats_cb=lambda text: seen.append(json.loads(text)), **protocol
    )
    if protocol:
        del made["partition.assignment.strategy"]
    consumer = create_instrumented(kind, made, registry=registry, advise=False)
    member = Member(consumer, registry, topic, "raising")

    def refuse(_: Any, partitions: list[TopicPartition]) -> None:
        raise LookupError(f"cannot take {len(partitions)}")

    try:
        consumer.subscribe([topic], on_assign=refuse)
        with pytest.raises(LookupError, match="cannot take 1"):
            poll_until(lambda: False, member)
        poll_until(lambda: bool(seen), member)
        assert member.value("partitions_assigned_total", topic=topic) == 1
    finally:
        consumer.close()
    assert seen[0]["client_id"] == "raising"
    completed = {"protocol": "consumer" if protocol else "range", "outcome": "completed"}
    assert member.value("rebalances_total", **completed) == 1
    assert member.value("instrumentation_errors_total") == 0


def test_consumers_in_two_registries_do_not_mix(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    topic = new_kafka_topic(partitions=1)
    other = CollectorRegistry()
    member = new_member(topic, "here")
    consumer = create_instrumented(
        confluent_kafka.Consumer, config(local_kafka, topic, "there"), registry=other, advise=False
    )
    consumer.close()
    member.consumer.subscribe([topic])
    poll_until(lambda: member.rebalances == 1, member)

    there = {"group": topic, "client_id": "there", "protocol": "none", "outcome": "failed"}
    assert other.get_sample_value("groupwright_rebalances_total", there) == 0
    assert member.registry.get_sample_value("groupwright_rebalances_total", there) is None
    assert {
        sample.labels["client_id"]
        for family in other.collect()
        for sample in family.samples
        if "client_id" in sample.labels
    } == {"there"}


def test_a_plain_consumer_may_be_measured_in_a_second_registry_as_well(
    new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    other = CollectorRegistry()
    topic = new_kafka_topic(partitions=1)
    member = new_member(topic, "both")
    instrument(member.consumer, other, advise=False)
    member.consumer.subscribe([topic])
    poll_until(lambda: member.rebalances == 1, member)

    labels = {"group": topic, "client_id": "both", "protocol": "range", "outcome": "completed"}
    assert other.get_sample_value("groupwright_rebalances_total", labels) == 1


def test_lag_grows_with_the_log_while_the_prefetch_queue_is_full(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    """librdkafka has fetched 1,000 messages, and fetches no more before they are consumed."""
    topic = new_kafka_topic(partitions=1)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})

    def produce(messages: int) -> None:
        for _ in range(messages):
            producer.produce(topic, b"x")
        assert producer.flush(PATIENCE) == 0

    produce(1_000)
    member = new_member(topic, "slow", **{"queued.min.messages": 10})
    member.consumer.subscribe([topic])
    taken, lag, is_grown = 0, 0.0, False
    deadline = time.monotonic() + PATIENCE
    while lag <= 1_000:
        assert time.monotonic() < deadline
        assert taken < 900, f"lag is {lag}, and the queue will soon be empty"
        taken += member.consumer.poll(1.0) is not None
        lag = member.value("lag", topic=topic) or 0.0
        if lag and not is_grown:
            produce(1_000)
            is_grown = True
        time.sleep(0.02)  # the application is slow
    assert lag < 2_000


@pytest.mark.parametrize("strategy", ["range", pytest.param("cooperative-sticky", marks=pytest.mark.slow)])
def test_a_partition_that_stays_paused_over_a_rebalance_lags_behind_the_end_of_its_log(
    new_member: Callable[..., Member],
    local_kafka: LocalKafka,
    new_kafka_topic: NewKafkaTopic,
    strategy: str,
) -> None:
    """librdkafka keeps a pause until `resume`, and does not fetch what was assigned again."""
    topic = new_kafka_topic(partitions=2)
    member = new_member(topic, "paused", **{"partition.assignment.strategy": strategy})
    plain = config(local_kafka, topic, "other", **{"partition.assignment.strategy": strategy})
    member.consumer.subscribe([topic])
    poll_until(lambda: len(member.consumer.assignment()) == 2, member)
    member.consumer.pause(member.consumer.assignment())
    with confluent_kafka.Consumer(plain) as other:
        other.subscribe([topic])

        def shares() -> bool:
            other.poll(0)
            return len(other.assignment()) == 1

        poll_until(shares, member)
    poll_until(lambda: len(member.consumer.assignment()) == 2, member)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    for number in range(50):
        producer.produce(topic, b"x", partition=number % 2)
    assert producer.flush(PATIENCE) == 0

    poll_until(lambda: member.value("lag", topic=topic) == 50, member)


def test_a_producer_shows_what_it_has_sent(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, registry: CollectorRegistry
) -> None:
    topic = new_kafka_topic(partitions=1)
    made = {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "client.id": "p-1",
        "statistics.interval.ms": 100,
    }
    began = time.monotonic()
    producer = create_instrumented(Producer, made, registry=registry)
    for _ in range(50):
        producer.produce(topic, b"x" * 100)
    assert producer.flush(PATIENCE) == 0

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"groupwright_producer_{name}", {"client_id": "p-1"})

    averages: set[float | None] = set()
    deadline = time.monotonic() + PATIENCE
    # A message is sent before it leaves the queue: statistics in between show it in both.
    while (value("messages_total"), value("queue_messages")) != (50, 0):
        assert time.monotonic() < deadline
        producer.poll(0.05)
        averages.add(value("round_trip_seconds"))
    assert value("sent_bytes_total") == 50 * 100
    assert value("queue_messages") == value("queue_used_ratio") == value("retries_total") == 0
    assert value("request_errors_total") == value("instrumentation_errors_total") == 0
    age = value("statistics_age_seconds")
    assert age is not None
    assert 0 <= age < time.monotonic() - began
    del producer
    assert value("queue_messages") is None
    assert value("messages_total") == 50
