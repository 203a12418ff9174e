"""Commits: the stored offsets, and rejection outside of the current generation."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer import CommitError, Consumer
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until, take, values
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]


def committed(consumer: Consumer, topic: str, partition: int = 0) -> int:
    return int(consumer.committed([TopicPartition(topic, partition)], timeout=PATIENCE)[0].offset)


def test_the_next_member_goes_on_where_the_last_one_committed(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 10)
    first = make_consumer(enable_auto_commit=False)
    first.subscribe([topic])
    messages = take(first, 4)

    (stored,) = first.commit(message=messages[2], asynchronous=False) or []
    first.close()

    assert (stored.topic, stored.partition, stored.offset) == (topic, 0, 3)
    second = make_consumer()
    second.subscribe([topic])
    assert values(take(second, 7)) == [3, 4, 5, 6, 7, 8, 9]


def test_nothing_is_committed_unless_asked_for(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    first = make_consumer(enable_auto_commit=False)
    first.subscribe([topic])
    take(first, 5)
    first.close()

    second = make_consumer()
    second.subscribe([topic])

    assert values(take(second, 5)) == [0, 1, 2, 3, 4]


def test_a_clean_close_commits_what_was_consumed(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 10)
    first = make_consumer()
    first.subscribe([topic])
    take(first, 6)
    first.close()

    second = make_consumer()
    second.subscribe([topic])

    assert values(take(second, 4)) == [6, 7, 8, 9]


def test_the_automatic_commit_comes_with_its_interval(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 3)
    heard: list[tuple[Any, list[TopicPartition]]] = []
    consumer = make_consumer(
        auto_commit_interval_ms=200, on_commit=lambda error, parts: heard.append((error, parts))
    )
    consumer.subscribe([topic])
    take(consumer, 3)

    poll_until(
        consumer, lambda _: any(parts[0].offset == 3 for _, parts in heard), "the commit to be reported"
    )

    assert [error for error, _ in heard] == [None] * len(heard)
    assert {(part.topic, part.partition) for _, parts in heard for part in parts} == {(topic, 0)}
    assert committed(consumer, topic) == 3


def test_stored_offsets_are_what_is_committed_where_the_application_stores_them(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    consumer = make_consumer(enable_auto_offset_store=False, enable_auto_commit=False)
    consumer.subscribe([topic])
    messages = take(consumer, 5)
    with pytest.raises(CommitError) as nothing:
        consumer.commit(asynchronous=False)
    assert nothing.value.args[0].code() == KafkaError._NO_OFFSET

    consumer.store_offsets(messages[1])
    consumer.commit(asynchronous=False)

    assert committed(consumer, topic) == 2


def test_a_message_and_offsets_together_are_refused(make_consumer: MakeConsumer) -> None:
    with pytest.raises(KafkaException):
        make_consumer().commit(asynchronous=False)


def test_what_was_consumed_is_committed_before_it_is_given_up(
    join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """The second member joins before the first automatic commit (after 5 s), and repeats no message."""
    topic = new_kafka_topic(partitions=2)
    produce(topic, 2, 100)
    first = join("first", [topic])
    wait_until(lambda: len(first.consumed) == 200, "the first member to consume everything")

    second = join("second", [topic])
    wait_until(lambda: len(first.owned) == len(second.owned) == 1, "one partition each")
    produce(topic, 2, 1)
    wait_until(lambda: len(first.consumed) + len(second.consumed) == 202, "the new messages to be consumed")

    assert len(set(first.consumed) | set(second.consumed)) == 202


def test_a_member_that_was_expelled_cannot_commit(
    make_consumer: MakeConsumer, join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """A stale member's offsets would overwrite those of the new owner."""
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    stalled = make_consumer(max_poll_interval_ms=6000, enable_auto_commit=False)
    stalled.subscribe([topic])
    (message,) = take(stalled, 1)

    other = join("other", [topic])
    wait_until(lambda: len(other.consumed) == 5, "the other member to take over")
    with pytest.raises(CommitError) as refused:
        stalled.commit(message=message, asynchronous=False)

    assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    other.close()
    assert committed(stalled, topic) == 5


def test_partitions_assigned_by_hand_are_committed_without_a_group(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    consumer = make_consumer()
    consumer.assign([TopicPartition(topic, 0, 2)])

    assert values(take(consumer, 3)) == [2, 3, 4]
    consumer.commit(asynchronous=False)

    assert committed(consumer, topic) == 5
    assert consumer.memberid() is None
