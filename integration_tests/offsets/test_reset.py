"""Offsets can be reset by an admin while the group is empty, and by a member at any time."""

from collections.abc import Callable

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from groupwright.consumer import Consumer
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until, take, values

pytestmark = pytest.mark.kafka

MakeConsumer = Callable[..., Consumer]
Produce = Callable[[str, int, int], None]


def set_offset(kafka: Kafka, group: str, topic: str, offset: int) -> int | None:
    """Set the group's offset of partition 0, as kafka-consumer-groups.sh does; return the error code."""
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
    altered = kafka.admin().alter_consumer_group_offsets([wanted], request_timeout=PATIENCE)[group].result()
    error = altered.topic_partitions[0].error
    return None if error is None else int(error.code())


@pytest.mark.parametrize(("offset", "expected"), [(2, [2, 3, 4, 5]), (5, [5])], ids=["back", "forth"])
def test_an_empty_group_goes_on_where_it_is_told_to(
    kafka: Kafka,
    make_consumer: MakeConsumer,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
    group: str,
    offset: int,
    expected: list[int],
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 6)
    first = make_consumer()
    first.subscribe([topic])
    take(first, 4)
    first.close()

    assert set_offset(kafka, group, topic, offset) is None

    second = make_consumer()
    second.subscribe([topic])
    assert values(take(second, len(expected))) == expected


def test_a_group_that_has_members_is_not_reset_from_outside(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    """Active members would keep their positions, and overwrite the offset with their next commit."""
    topic = new_kafka_topic()
    produce(topic, 1, 3)
    consumer = make_consumer()
    consumer.subscribe([topic])
    take(consumer, 3)

    try:
        code = set_offset(kafka, group, topic, 0)
    except KafkaException as refused:
        code = refused.args[0].code()

    assert code == KafkaError.UNKNOWN_MEMBER_ID
    consumer.close()
    assert make_consumer().committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset == 3


def test_a_member_resets_its_partitions_by_seeking_and_committing(
    make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    first = make_consumer(enable_auto_commit=False)
    first.subscribe([topic])
    take(first, 5)

    first.seek(TopicPartition(topic, 0, 1))
    assert values(take(first, 2)) == [1, 2]
    first.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    first.close()

    second = make_consumer()
    second.subscribe([topic])
    assert values(take(second, 3)) == [2, 3, 4]


def test_an_offset_whose_messages_are_gone_is_reset_as_configured(
    kafka: Kafka, make_consumer: MakeConsumer, new_kafka_topic: NewKafkaTopic, produce: Produce, group: str
) -> None:
    """Retention deleted the messages: `auto.offset.reset` applies, and `error` reaches the application."""
    topic = new_kafka_topic()
    produce(topic, 1, 6)
    assert set_offset(kafka, group, topic, 1) is None
    kafka.delete_records(topic, before=4)

    strict = make_consumer(auto_offset_reset="error", enable_auto_commit=False)
    strict.subscribe([topic])
    messages = poll_until(strict, bool, "the error")
    errors = [error.code() for message in messages if (error := message.error())]
    assert errors == [KafkaError._AUTO_OFFSET_RESET]
    strict.close()

    lenient = make_consumer(auto_offset_reset="earliest")
    lenient.subscribe([topic])
    assert values(take(lenient, 2)) == [4, 5]
