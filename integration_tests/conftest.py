"""A Kafka for the session, a group for each test, and members that join it."""

import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import Kafka, KafkaContainers
from groupwright.testing._kafka.settings import Setting
from groupwright.testing.pytest_plugin import NewKafkaTopic
from harness import clusters
from harness.members import Join, RunningMember
from harness.wire import wait_until_known


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Kafka:
    """The Kafka of the tests that stop no node: three nodes in containers, or a local one where there is no engine."""
    found: Kafka = request.getfixturevalue("cluster" if clusters.are_to_be_had() else "local_kafka")
    return found


@pytest.fixture(scope="session")
def cluster() -> Iterator[KafkaContainers]:
    """Three nodes in containers, for tests that one node cannot serve; none of them stops one."""
    with clusters.started(KafkaContainers()) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def breakable_cluster() -> Iterator[KafkaContainers]:
    """Three nodes for a module whose tests break them, and a proxy before each; whole again after each test."""
    with clusters.started(KafkaContainers(proxied=True)) as kafka:
        yield kafka


@pytest.fixture
def new_kafka_topic(kafka: Kafka, request: pytest.FixtureRequest) -> NewKafkaTopic:
    """A function that creates a topic in `kafka`, named after the test and unique."""
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:80]

    def create(partitions: int = 1, config: Mapping[str, Setting] | None = None) -> str:
        name = f"{test}-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(name, partitions, config)
        wait_until_known(kafka.bootstrap_servers, name, partitions)
        return name

    return create


@pytest.fixture(autouse=True)
def clients_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Have a test that fails show what the members said."""
    caplog.set_level(logging.INFO, logger="groupwright")


@pytest.fixture
def group() -> str:
    """A group of the test's own."""
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def join(kafka: Kafka, group: str) -> Iterator[Join]:
    """Start members in the test's group; all are closed at its end."""
    members: list[RunningMember] = []

    def start(name: str, topics: list[str], **settings: Any) -> RunningMember:
        config: dict[str, Any] = {
            "bootstrap.servers": kafka.bootstrap_servers,
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
def make_consumer(kafka: Kafka, group: str) -> Iterator[Callable[..., Consumer]]:
    """Make consumers of the test's group, which the test polls by itself; all are closed at its end."""
    consumers: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        config: dict[str, Any] = {
            "bootstrap.servers": kafka.bootstrap_servers,
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
def produce(kafka: Kafka) -> Callable[[str, int, int], None]:
    """Write so many messages to each of so many partitions of a topic."""

    def write(topic: str, partitions: int, messages: int) -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(messages):
            for partition in range(partitions):
                producer.produce(topic, str(number), partition=partition)
        assert producer.flush(30) == 0

    return write
