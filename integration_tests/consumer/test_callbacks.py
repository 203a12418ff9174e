"""Rebalance callbacks run inside poll; neither their calls nor their exceptions lose a message."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from groupwright.consumer import Consumer
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.polling import poll_until, take, values
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]


def test_on_assign_may_choose_where_to_start(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 10)

    def from_seven(consumer: Any, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = 7
        consumer.assign(partitions)

    consumer = make_consumer()
    consumer.subscribe([topic], on_assign=from_seven)

    assert values(take(consumer, 3)) == [7, 8, 9]


def test_a_callback_that_raises_is_heard_once_and_costs_no_message(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """An exception inside the native call would drop a message whose offset is committed nevertheless."""
    topic = new_kafka_topic()
    produce(topic, 1, 10)
    calls = 0

    def fail(_consumer: object, _partitions: object) -> None:
        nonlocal calls
        calls += 1
        raise LookupError("the cache could not be warmed")

    consumer = make_consumer()
    consumer.subscribe([topic], on_assign=fail)

    with pytest.raises(LookupError, match="the cache could not be warmed"):
        take(consumer, 1)
    assert values(take(consumer, 10)) == list(range(10))
    assert calls == 1


def test_a_commit_in_on_revoke_is_stored_under_the_generation_that_ends(
    make_consumer: MakeConsumer, join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 10)
    committed: list[int] = []

    def commit(consumer: Any, _partitions: object) -> None:
        (partition,) = consumer.commit(asynchronous=False)
        committed.append(partition.offset)

    first = make_consumer(enable_auto_commit=False)
    first.subscribe([topic], on_revoke=commit)
    take(first, 6)
    first.close()

    assert committed == [6]
    second = join("second", [topic])
    wait_until(lambda: len(second.consumed) == 4, "the rest to be consumed")
    assert [offset for _, _, offset in second.consumed] == [6, 7, 8, 9]


def test_a_pause_outlives_the_assignment(
    make_consumer: MakeConsumer, join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """As with librdkafka, a partition stays paused when it is revoked and assigned again."""
    topic = new_kafka_topic()
    produce(topic, 1, 3)
    assigned: list[int] = []
    consumer = make_consumer()
    consumer.subscribe([topic], on_assign=lambda _, partitions: assigned.append(len(partitions)))
    take(consumer, 3)
    consumer.pause([TopicPartition(topic, 0)])

    other = join("other", [topic])
    poll_until(consumer, lambda _: len(assigned) == 2, "a rebalance with the other member")
    other.close()
    poll_until(consumer, lambda _: len(assigned) == 3, "a rebalance without it")
    produce(topic, 1, 1)

    assert assigned[2] == 1
    assert consumer.poll(0.5) is None
    consumer.resume([TopicPartition(topic, 0)])
    assert len(take(consumer, 1)) == 1
