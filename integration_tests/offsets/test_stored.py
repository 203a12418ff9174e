"""Records of `__consumer_offsets`: the last one of a key is valid, and a tombstone deletes it."""

import contextlib
from collections.abc import Callable

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaException, TopicPartition

from groupwright.consumer import Consumer
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import offsets_topic
from integration_tests.harness.offsets_topic import Stored, StoredOffset
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import take
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]


def offsets(kafka: Kafka, group: str) -> list[Stored]:
    """Return the records of the group's offsets."""
    return [record for record in offsets_topic.records_of(kafka.bootstrap_servers, group) if record.key]


def ended(kafka: Kafka, group: str) -> list[tuple[str, int] | None]:
    """Return what of the group has a tombstone."""
    stored = offsets_topic.records_of(kafka.bootstrap_servers, group)
    return [record.key for record in stored if record.value is None]


def test_a_commit_is_a_record_for_each_partition_and_the_last_one_holds(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    """With the metadata, as confluent-kafka writes it, and the leader epoch of the message before it."""
    topic = new_kafka_topic(partitions=2)
    produce(topic, 2, 3)
    consumer = make_consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    take(consumer, 6)

    consumer.commit(
        offsets=[TopicPartition(topic, 0, 2, metadata="batch 17 ✓", leader_epoch=0)], asynchronous=False
    )
    consumer.commit(asynchronous=False)

    stored = offsets(kafka, group)
    assert [(record.key, record.value) for record in stored[:1]] == [
        ((topic, 0), StoredOffset(2, 0, "batch 17 ✓\0"))  # its committed() needs the NUL
    ]
    assert {(record.key, record.value) for record in stored[1:]} == {
        ((topic, 0), StoredOffset(3, 0, "")),
        ((topic, 1), StoredOffset(3, 0, "")),
    }
    found = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=PATIENCE)
    assert [(partition.offset, partition.metadata or "") for partition in found] == [(3, ""), (3, "")]


def test_a_commit_that_changes_nothing_is_not_sent(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    """Else an idle group would write to the topic at every interval, for ever."""
    topic = new_kafka_topic()
    produce(topic, 1, 3)
    consumer = make_consumer(auto_commit_interval_ms=50)
    consumer.subscribe([topic])
    take(consumer, 3)
    wait_until(lambda: polled_until_committed(consumer, topic) == 3, "the automatic commit")
    with contextlib.suppress(KafkaException):  # nothing is left to commit: earlier ones are answered now
        consumer.commit(asynchronous=False)

    stored = offsets(kafka, group)
    for _ in range(10):
        consumer.poll(0.05)

    assert stored[-1].value == StoredOffset(3, 0, "")
    assert offsets(kafka, group) == stored


def polled_until_committed(consumer: Consumer, topic: str) -> int:
    consumer.poll(0.05)
    return int(consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset)


def test_deleting_a_group_leaves_tombstones_of_its_offsets_and_of_itself(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    topic = new_kafka_topic(partitions=2)
    produce(topic, 2, 1)
    consumer = make_consumer()
    consumer.subscribe([topic])
    take(consumer, 2)
    consumer.close()
    assert {record.key for record in offsets(kafka, group)} == {(topic, 0), (topic, 1)}

    kafka.admin().delete_consumer_groups([group], request_timeout=PATIENCE)[group].result()

    wanted: list[tuple[str, int] | None] = [(topic, 0), (topic, 1), None]
    wait_until(lambda: set(ended(kafka, group)) == set(wanted), "the tombstones")
    assert len(ended(kafka, group)) == len(wanted)
    found = make_consumer().committed([TopicPartition(topic, 0)], timeout=PATIENCE)
    assert [partition.offset for partition in found] == [OFFSET_INVALID]


def test_deleting_a_topic_leaves_tombstones_of_its_offsets_alone(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    stays, deleted = new_kafka_topic(), new_kafka_topic()
    produce(stays, 1, 1)
    produce(deleted, 1, 1)
    consumer = make_consumer()
    consumer.subscribe([stays, deleted])
    take(consumer, 2)
    consumer.close()

    kafka.admin().delete_topics([deleted], request_timeout=PATIENCE)[deleted].result()

    wait_until(lambda: bool(ended(kafka, group)), "the tombstone")
    assert ended(kafka, group) == [(deleted, 0)]
