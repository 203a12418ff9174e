"""A share consumer in a real share group: what it acquires, acknowledges, and is given again."""

import uuid
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined] # it imports them without naming them
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from prometheus_client import CollectorRegistry

from groupwright.instrumentation import create_instrumented
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka


class Member:
    """An instrumented share consumer, and the values of its series."""

    def __init__(self, kafka: LocalKafka, client_class: Any, **settings: Any) -> None:
        self.registry = CollectorRegistry()
        self.group = f"share-{uuid.uuid4().hex[:8]}"
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        of_group = ConfigResource(ResourceType.GROUP, self.group, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([of_group]).values():
            future.result(PATIENCE)
        config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": self.group, "log_level": 0}
        self.consumer = create_instrumented(client_class, config | settings, registry=self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        of_client = {"group": self.group, "client_id": "rdkafka", **labels}
        return self.registry.get_sample_value(f"groupwright_share_{name}", of_client)

    def poll(self) -> list[Message]:
        """Poll until messages come."""
        messages: list[Message] = []

        def have_come() -> bool:
            messages.extend(self.consumer.poll(1))
            return bool(messages)

        wait_until(have_come, "messages")
        return messages


@pytest.fixture
def topic(local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic) -> str:
    name = new_kafka_topic()
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers, "linger.ms": 50})
    for number in range(6):
        producer.produce(name, str(number))
    assert producer.flush(PATIENCE) == 0
    return name


def test_what_is_acquired_acknowledged_and_delivered_again_is_counted(
    local_kafka: LocalKafka, topic: str
) -> None:
    errors: list[Any] = []
    mode = {"share.acknowledgement.mode": "explicit", "error_cb": errors.append}
    member = Member(local_kafka, confluent_kafka.ShareConsumer, **mode)
    answers: list[dict[Any, set[int]]] = []
    member.consumer.set_acknowledgement_commit_callback(lambda offsets, _: answers.append(offsets))
    assert isinstance(member.consumer, confluent_kafka.ShareConsumer)
    with member.consumer as consumer:
        consumer.subscribe([topic])
        messages = member.poll()
        while len(messages) < 6:
            for message in messages:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
            messages = member.poll()
        acquired, redelivered = member.value("acquired_total"), member.value("redelivered_total")
        assert member.value("in_flight") == 6
        first, second, *others = messages
        consumer.acknowledge(first, AcknowledgeType.RELEASE)
        consumer.acknowledge_offset(topic, 0, second.offset() or 0, AcknowledgeType.REJECT)
        for message in others:
            consumer.acknowledge(message)
        consumer.commit_sync(PATIENCE)

        assert member.value("in_flight") == 0
        assert member.value("acknowledged_total", type="accept") == 4
        assert member.value("acknowledged_total", type="reject") == 1
        assert answers[-1] == {confluent_kafka.TopicPartition(topic, 0): set(range(6))}
        (again,) = member.poll()
        assert again.offset() == first.offset()
        assert member.value("acquired_total") == (acquired or 0) + 1
        assert member.value("redelivered_total") == (redelivered or 0) + 1
        consumer.acknowledge(again)
        assert (member.value("last_poll_age_seconds") or 0) > 0

    assert member.value("acknowledged_total", type="accept") == 5
    assert member.value("last_poll_age_seconds") is None
    assert member.value("in_flight") is None


def test_without_a_word_of_the_application_a_message_is_accepted(local_kafka: LocalKafka, topic: str) -> None:
    member = Member(
        local_kafka,
        confluent_kafka.DeserializingShareConsumer,
        **{"value.deserializer": lambda value, _: int(value)},
    )
    with member.consumer as consumer:
        consumer.subscribe([topic])
        values: list[Any] = []
        while len(values) < 6:
            values += [message.deserialized_value() for message in member.poll()]
        consumer.commit_sync(PATIENCE)
    assert values == list(range(6))
    assert member.value("acknowledged_total", type="accept") == 6
    assert member.value("redelivered_total") == 0


def test_a_wrong_callback_is_refused_as_by_the_original(local_kafka: LocalKafka) -> None:
    member = Member(local_kafka, confluent_kafka.ShareConsumer)
    with member.consumer as consumer, pytest.raises(TypeError, match="callable"):
        consumer.set_acknowledgement_commit_callback(5)
    with pytest.raises(KafkaException):
        create_instrumented(confluent_kafka.ShareConsumer, {"group.id": "x", "no.such": 1})
