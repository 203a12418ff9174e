"""A group for each test, and members that join it."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from harness.members import Join, RunningMember


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def join(local_kafka: LocalKafka, group: str) -> Iterator[Join]:
    """Start members in the test's group; all are closed at its end."""
    members: list[RunningMember] = []

    def start(name: str, topics: list[str], **settings: Any) -> RunningMember:
        config: dict[str, Any] = {
            "bootstrap.servers": local_kafka.bootstrap_servers,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 50,
        }
        config |= {key.replace("_", "."): value for key, value in settings.items()}
        member = RunningMember(config, topics)
        members.append(member)
        return member

    yield start
    for member in members:
        member.close()


@pytest.fixture
def make_consumer(local_kafka: LocalKafka, group: str) -> Iterator[Callable[..., Consumer]]:
    """Make consumers of the test's group, which the test polls by itself; all are closed at its end."""
    consumers: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        config: dict[str, Any] = {
            "bootstrap.servers": local_kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 50,
        }
        callbacks = {"on_commit"}
        config |= {
            key if key in callbacks else key.replace("_", "."): value for key, value in settings.items()
        }
        consumer = Consumer(config)
        consumers.append(consumer)
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


@pytest.fixture
def produce(local_kafka: LocalKafka) -> Callable[[str, int, int], None]:
    """Write so many messages to each of so many partitions of a topic."""

    def write(topic: str, partitions: int, messages: int) -> None:
        producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
        for number in range(messages):
            for partition in range(partitions):
                producer.produce(topic, str(number), partition=partition)
        assert producer.flush(30) == 0

    return write
