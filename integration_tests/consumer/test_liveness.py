"""Stalled members, and a broker that stops and restarts."""

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Producer

from groupwright.consumer import Consumer, Outcome
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until, take, values
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]


def test_an_application_that_stalls_is_told_loses_its_partitions_and_comes_back(
    make_consumer: MakeConsumer, join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic(partitions=2)
    produce(topic, 2, 1)
    events: list[str] = []
    stalled = make_consumer(max_poll_interval_ms=6000)
    stalled.subscribe(
        [topic],
        on_assign=lambda _, parts: events.append(f"assigned {len(parts)}"),
        on_revoke=lambda _, parts: events.append(f"revoked {len(parts)}"),
        on_lost=lambda _, parts: events.append(f"lost {len(parts)}"),
    )
    take(stalled, 2)

    other = join("other", [topic])
    wait_until(lambda: len(other.owned) == 2, "the other member to own everything")
    messages = poll_until(stalled, lambda _: events[-1] == "assigned 1", "the stalled member to come back")

    codes = [error.code() for message in messages if (error := message.error()) is not None]
    assert codes == [KafkaError._MAX_POLL_EXCEEDED]
    assert events == ["assigned 2", "lost 2", "assigned 1"]


def test_a_rebalance_after_a_loss_is_counted_as_such(join: Join, new_kafka_topic: NewKafkaTopic) -> None:
    topic = new_kafka_topic()
    hold = threading.Event()
    member = join("member", [topic], max_poll_interval_ms=6000)
    wait_until(lambda: len(member.owned) == 1, "the member to own the partition")

    original = member.consumer.poll

    def stall(timeout: float = -1) -> object:
        hold.wait(PATIENCE)
        member.consumer.__dict__.pop("poll", None)
        return original(timeout)

    member.consumer.__dict__["poll"] = stall
    wait_until(lambda: member.consumer.memberid() is None, "the member to have left")
    hold.set()

    wait_until(lambda: member.rebalances[-1].outcome is Outcome.LOST, "the rebalance after the loss")
    assert member.callbacks == [("assign", [(topic, 0)]), ("lost", [(topic, 0)]), ("assign", [(topic, 0)])]


def test_a_group_outlives_its_broker(group: str) -> None:
    """Members keep their ids across a broken connection, rejoin, and neither repeat nor lose messages."""
    with LocalKafka() as kafka:
        kafka.create_topic("outlive", partitions=2)
        member = RunningMember(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": "survivor",
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 300,
                "auto.commit.interval.ms": 100,
            },
            ["outlive"],
        )
        try:
            write(kafka, range(100))
            wait_until(lambda: len(member.consumed) == 100, "the first messages")
            member_id = member.consumer.memberid()

            kafka.kill()
            kafka.start()
            write(kafka, range(100, 200))

            wait_until(lambda: len(set(member.consumed)) == 200, "the messages after the crash")
            assert member.consumer.memberid() == member_id
            assert member.errors == []
        finally:
            member.close()


def test_close_does_not_wait_for_a_broker_that_is_gone(group: str) -> None:
    with LocalKafka() as kafka:
        kafka.create_topic("gone")
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["gone"])
        write(kafka, range(3), topic="gone")
        assert values(take(consumer, 3)) == [0, 1, 2]
        kafka.kill()

        closer = threading.Thread(target=consumer.close, daemon=True)
        closer.start()
        closer.join(PATIENCE)

        assert not closer.is_alive()


def write(kafka: LocalKafka, numbers: range, topic: str = "outlive") -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % 2 if topic == "outlive" else 0)
    assert producer.flush(PATIENCE) == 0
