"""Plain confluent-kafka consumers in real groups, by protocol and by kind of client: exact values."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import DeserializingConsumer, KafkaError, Producer, TopicPartition
from confluent_kafka.aio import AIOConsumer
from prometheus_client import CollectorRegistry

from groupwright.consumer import Consumer
from groupwright.instrumentation import RebalanceEvent, instrument, instrumented, to_callback
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic

pytestmark = pytest.mark.kafka

PATIENCE = 40.0
PROTOCOLS = ("range", "roundrobin", "cooperative-sticky", "consumer")


def config(kafka: LocalKafka, group: str, client_id: str, protocol: str, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "statistics.interval.ms": 200,
    }
    if protocol == "consumer":
        return {**usual, "group.protocol": "consumer", **more}
    classic = {
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "partition.assignment.strategy": protocol,
    }
    return {**usual, **classic, **more}


class Member:
    """A plain consumer, and times taken around what it does."""

    def __init__(self, consumer: Any, registry: CollectorRegistry, group: str, client_id: str) -> None:
        self.consumer = consumer
        self.heard: list[tuple[str, int]] = []
        self.owned = 0
        self.began = 0.0
        self.in_callbacks = 0.0
        self._registry = registry
        self._labels = {"group": group, "client_id": client_id}

    def join(self, *topics: str) -> None:
        self.began = time.monotonic()
        self.consumer.subscribe(
            list(topics),
            on_assign=lambda _, partitions: self._hear("assign", partitions),
            on_revoke=lambda _, partitions: self._hear("revoke", partitions),
            on_lost=lambda _, partitions: self._hear("lost", partitions),
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"groupwright_{name}", {**self._labels, **labels})

    def rebalances(self, protocol: str, outcome: str = "completed") -> float | None:
        return self.value("rebalances_total", protocol=protocol, outcome=outcome)

    def partitions(self, topic: str) -> list[float | None]:
        """Assigned, revoked, lost, and owned now."""
        words = ("assigned", "revoked", "lost")
        counts = [self.value(f"partitions_{word}_total", topic=topic) for word in words]
        return [*counts, self.value("partitions_owned", topic=topic)]

    def _hear(self, callback: str, partitions: list[TopicPartition]) -> None:
        started = time.monotonic()
        self.heard.append((callback, len(partitions)))
        self.owned += len(partitions) if callback == "assign" else -len(partitions)
        self.in_callbacks += time.monotonic() - started


@pytest.fixture
def new_member(
    local_kafka: LocalKafka, registry: CollectorRegistry, request: pytest.FixtureRequest
) -> Callable[..., Member]:
    """Make a member that is closed at the end, whatever happens."""

    def make(
        group: str, client_id: str, protocol: str, kind: Any = confluent_kafka.Consumer, **more: Any
    ) -> Member:
        events = more.pop("events", ())
        made = config(local_kafka, group, client_id, protocol, **more)
        consumer = instrumented(kind, made, registry=registry, events=events, advise=False)
        request.addfinalizer(consumer.close)
        return Member(consumer, registry, group, client_id)

    return make


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, [(member.owned, member.heard) for member in members]
        for member in members:
            message = member.consumer.poll(0.05)
            assert message is None or message.error() is None, message.error()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [confluent_kafka.Consumer, DeserializingConsumer])
def test_a_member_joins_and_leaves_and_the_metrics_say_exactly_that(
    kind: Any, protocol: str, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    """Four partitions: all to the first, two to each, all to the first again; one cycle each, however many rounds."""
    topic = new_kafka_topic(partitions=4)
    first = new_member(topic, "first", protocol, kind)
    assert isinstance(first.consumer, kind)
    first.join(topic)
    poll_until(lambda: first.owned == 4 and first.rebalances(protocol) == 1, first)
    assert first.partitions(topic) == [4, 0, 0, 4]
    alone = first.value("rebalance_duration_seconds_sum", protocol=protocol)
    assert alone is not None
    assert 0 < alone < time.monotonic() - first.began

    second = new_member(topic, "second", protocol, kind)
    second.join(topic)
    poll_until(lambda: first.owned == second.owned == 2, first, second)
    poll_until(lambda: first.rebalances(protocol) == 2 and second.rebalances(protocol) == 1, first, second)
    eager = protocol in {"range", "roundrobin"}
    assert first.partitions(topic) == ([6, 4, 0, 2] if eager else [4, 2, 0, 2])
    assert second.partitions(topic) == [2, 0, 0, 2]

    second.consumer.close()
    poll_until(lambda: first.owned == 4 and first.rebalances(protocol) == 3, first)
    assert first.partitions(topic) == ([10, 6, 0, 4] if eager else [6, 2, 0, 4])
    assert second.partitions(topic) == [2, 2, 0, 0]
    assert second.rebalances(protocol) == 1

    elapsed = time.monotonic() - first.began
    total = first.value("rebalance_duration_seconds_sum", protocol=protocol)
    assert total is not None
    assert alone < total < elapsed
    # What is gained without a revocation has no beginning that could be seen.
    assert first.value("rebalance_duration_seconds_count", protocol=protocol) == (3 if eager else 2)
    for callback, times in (("assign", "assign"), ("revoke", "revoke")):
        count = first.value("rebalance_callback_duration_seconds_count", callback=callback)
        assert count == sum(1 for name, _ in first.heard if name == times)
    for member in (first, second):
        assert member.value("instrumentation_errors_total") == 0
        assert member.rebalances(protocol, "lost") == member.rebalances(protocol, "failed") == 0


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_stall_beyond_max_poll_loses_the_partitions(
    protocol: str, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    topic = new_kafka_topic(partitions=2)
    member = new_member(topic, "slow", protocol, **{"max.poll.interval.ms": 6000})
    member.join(topic)
    poll_until(lambda: member.owned == 2, member)

    # This is the stall: nothing else tells the client that its application hangs.
    time.sleep(7.0)
    used = member.value("poll_interval_used_ratio")
    assert used is not None
    assert 7 / 6 < used < 2
    errors = []
    deadline = time.monotonic() + PATIENCE
    while member.rebalances(protocol, "lost") != 1:
        assert time.monotonic() < deadline, member.heard
        message = member.consumer.poll(0.05)
        if message is not None:
            errors.append(message.error().code())

    assert errors == [KafkaError._MAX_POLL_EXCEEDED]
    assert member.value("max_poll_exceeded_total") == 1
    assert member.partitions(topic) == [4, 0, 2, 2]
    assert member.value("rebalance_callback_duration_seconds_count", callback="lost") == 1


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_change_of_subscription_is_one_rebalance(
    protocol: str, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    one, two = new_kafka_topic(partitions=2), new_kafka_topic(partitions=3)
    told: list[RebalanceEvent] = []
    with to_callback(told.append) as sink:
        member = new_member(one, "changing", protocol, events=[sink])
        member.join(one)
        poll_until(lambda: member.rebalances(protocol) == 1, member)
        member.join(one, two)
        poll_until(lambda: member.owned == 5 and member.rebalances(protocol) == 2, member)

    assert member.value("partitions_owned", topic=one) == 2
    assert member.value("partitions_owned", topic=two) == 3
    assert [event.trigger for event in told] == ["the consumer subscribed", "the subscription changed"]
    assert told[1].partitions_before == {one: [0, 1]}
    assert told[1].partitions_after == {one: [0, 1], two: [0, 1, 2]}


def test_what_statistics_tell_of_a_plain_consumer(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    topic = new_kafka_topic(partitions=2)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    for number in range(30):
        producer.produce(topic, b"x", partition=number % 2)
    assert producer.flush(10) == 0
    member = new_member(topic, "fetching", "range")
    member.join(topic)
    taken = 0
    while taken < 20:
        message = member.consumer.poll(5.0)
        assert message is not None
        taken += 1
    # Nothing more is taken, and statistics go on coming.
    member.consumer.pause(member.consumer.assignment())
    poll_until(lambda: member.value("lag", topic=topic) == 10, member)
    assert member.value("lag_max", topic=topic) in {5, 6, 7, 8, 9, 10}

    member.consumer.commit(asynchronous=False)
    assert member.value("commits_total") == 1
    assert member.value("commit_duration_seconds_count") == 1
    poll_until(lambda: member.value("group_requests_total", request="offset_commit") == 1, member)
    assert member.value("group_requests_total", request="sync_group") == 1
    assert member.value("membership_state", state="stable") == 1
    assert member.value("coordinator_node") == 1
    assert member.value("coordinator_changes_total") == 0
    poll_until(lambda: (member.value("coordinator_round_trip_seconds") or 0) > 0, member)
    age = member.value("statistics_age_seconds")
    assert age is not None
    assert 0 <= age < 2
    inside, since = member.value("poll_seconds_total"), time.monotonic() - member.began
    assert inside is not None
    assert 0 < inside < since


def test_the_applications_callbacks_go_on_and_what_they_raise_leaves_poll(
    new_kafka_topic: NewKafkaTopic, local_kafka: LocalKafka, registry: CollectorRegistry
) -> None:
    seen: list[dict[str, Any]] = []
    topic = new_kafka_topic(partitions=1)
    made = config(local_kafka, topic, "raising", "range", stats_cb=lambda text: seen.append(json.loads(text)))
    consumer = instrumented(confluent_kafka.Consumer, made, registry=registry, advise=False)
    member = Member(consumer, registry, topic, "raising")

    def refuse(_: Any, partitions: list[TopicPartition]) -> None:
        raise LookupError(f"cannot take {len(partitions)}")

    try:
        consumer.subscribe([topic], on_assign=refuse)
        with pytest.raises(LookupError, match="cannot take 1"):
            poll_until(lambda: False, member)
        poll_until(lambda: bool(seen), member)
    finally:
        consumer.close()
    assert seen[0]["client_id"] == "raising"
    assert member.partitions(topic)[0] == 1
    assert member.rebalances("range") == 1
    assert member.value("instrumentation_errors_total") == 0


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_an_asyncio_consumer_is_measured_alike(
    protocol: str,
    new_kafka_topic: NewKafkaTopic,
    local_kafka: LocalKafka,
    registry: CollectorRegistry,
) -> None:
    topic = new_kafka_topic(partitions=4)
    heard: list[tuple[str, int]] = []

    async def story() -> Member:
        made = config(local_kafka, topic, "aio", protocol)
        consumer = instrumented(AIOConsumer, made, registry=registry, advise=False, max_workers=3)
        assert isinstance(consumer, AIOConsumer)
        member = Member(consumer, registry, topic, "aio")
        member.began = time.monotonic()

        async def on_assign(who: AIOConsumer, partitions: list[TopicPartition]) -> None:
            assert who is consumer
            heard.append(("assign", len(partitions)))
            await asyncio.sleep(0.05)

        try:
            await consumer.subscribe([topic], on_assign=on_assign)
            while member.rebalances(protocol) != 1:
                assert time.monotonic() - member.began < PATIENCE
                assert await consumer.poll(timeout=0.1) is None
            while member.value("membership_state", state="stable") != 1:
                assert time.monotonic() - member.began < PATIENCE
                assert await consumer.poll(timeout=0.1) is None
        finally:
            await consumer.close()
        return member

    member = asyncio.run(story())

    assert heard == [("assign", 4)]
    assert member.partitions(topic) == [4, 4, 0, 0]
    assert member.rebalances(protocol) == 1
    duration = member.value("rebalance_duration_seconds_sum", protocol=protocol)
    assert duration is not None
    assert 0.05 <= duration < time.monotonic() - member.began
    in_callback = member.value("rebalance_callback_duration_seconds_sum", callback="assign")
    assert in_callback is not None
    assert 0.05 <= in_callback <= duration
    assert member.value("instrumentation_errors_total") == 0


def test_groupwrights_consumer_is_adopted_by_the_same_line_and_shows_its_lag(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    topic = new_kafka_topic(partitions=1)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    for _ in range(10):
        producer.produce(topic, b"x")
    assert producer.flush(10) == 0
    member = new_member(topic, "ours", "range", Consumer)
    assert type(member.consumer) is Consumer
    member.join(topic)
    for _ in range(10):
        assert member.consumer.poll(PATIENCE) is not None

    poll_until(lambda: member.value("lag", topic=topic) == 0, member)
    assert member.rebalances("range") == 1
    assert member.value("instrumentation_errors_total") == 0


def test_consumers_in_two_registries_do_not_mix(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, new_member: Callable[..., Member]
) -> None:
    topic = new_kafka_topic(partitions=1)
    other = CollectorRegistry()
    member = new_member(topic, "here", "range")
    consumer = instrumented(
        confluent_kafka.Consumer, config(local_kafka, topic, "there", "range"), registry=other, advise=False
    )
    consumer.close()
    member.join(topic)
    poll_until(lambda: member.rebalances("range") == 1, member)

    there = {"group": topic, "client_id": "there", "protocol": "", "outcome": "completed"}
    assert other.get_sample_value("groupwright_rebalances_total", there) == 0
    assert member._registry.get_sample_value("groupwright_rebalances_total", there) is None
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
    member = new_member(topic, "both", "range")
    instrument(member.consumer, other, advise=False)
    member.join(topic)
    poll_until(lambda: member.rebalances("range") == 1, member)

    labels = {"group": topic, "client_id": "both", "protocol": "range", "outcome": "completed"}
    assert other.get_sample_value("groupwright_rebalances_total", labels) == 1


def test_a_producer_shows_what_it_has_sent(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, registry: CollectorRegistry
) -> None:
    topic = new_kafka_topic(partitions=1)
    made = {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "client.id": "p-1",
        "statistics.interval.ms": 100,
    }
    producer = instrumented(Producer, made, registry=registry)
    for _ in range(50):
        producer.produce(topic, b"x" * 100)
    assert producer.flush(10) == 0

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"groupwright_producer_{name}", {"client_id": "p-1"})

    averages: set[float | None] = set()
    deadline = time.monotonic() + PATIENCE
    while value("messages_total") != 50:
        assert time.monotonic() < deadline
        producer.poll(0.05)
        averages.add(value("round_trip_seconds"))
    assert value("sent_bytes_total") == 50 * 100
    assert value("queue_messages") == value("queue_used_ratio") == value("retries_total") == 0
    assert value("request_errors_total") == value("instrumentation_errors_total") == 0
    age = value("statistics_age_seconds")
    assert age is not None
    assert 0 <= age < 2
    del producer
    assert value("queue_messages") is None
    assert value("messages_total") == 50
