"""Fixtures: a Kafka for the session, and a group with members for each test."""

import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import Kafka, KafkaContainers
from groupwright.testing._kafka.settings import Setting
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import clusters
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.wire import wait_until_known

_HERE = Path(__file__).parent
_CLUSTER: pytest.StashKey[KafkaContainers] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests on a cluster: two clusters at once would slow each other down."""
    for item in items:
        if "kafka" in getattr(item, "fixturenames", ()) and item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> Kafka:
    """Kafka for tests that stop no node: three containers, or a local broker without a container engine."""
    found: Kafka = request.getfixturevalue("cluster" if clusters.are_to_be_had() else "local_kafka")
    return found


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> KafkaContainers:
    """Three nodes in containers, for tests that need more than one node and stop none, in memory.

    All modules of this folder share them. They end with its last test: idle, they would take a tenth of a
    processor until the session ends.
    """
    folder = next(node for node in request.node.iter_parents() if node.path == _HERE)
    if _CLUSTER not in folder.stash:
        running = ExitStack()
        folder.stash[_CLUSTER] = running.enter_context(
            clusters.started(KafkaContainers(disk="1g", config=clusters.PATIENT))
        )
        running.callback(folder.stash.__delitem__, _CLUSTER)
        folder.addfinalizer(running.close)
    nodes: KafkaContainers = folder.stash[_CLUSTER]
    return nodes


@pytest.fixture(scope="module")
def breakable_cluster() -> Iterator[KafkaContainers]:
    """Three nodes behind proxies, for a module whose tests break them; restored after each test."""
    # Leaders move when a test wants it, and not when the controller does, every five minutes.
    config: dict[str, Setting] = {"auto.leader.rebalance.enable": False}
    with clusters.started(KafkaContainers(proxied=True, config=config)) as kafka:
        yield kafka


@pytest.fixture
def new_kafka_topic(kafka: Kafka, request: pytest.FixtureRequest) -> NewKafkaTopic:
    """Return a function that creates a topic in `kafka`, with a unique name."""
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:80]

    def create(partitions: int = 1, config: Mapping[str, Setting] | None = None) -> str:
        name = f"{test}-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(name, partitions, config)
        wait_until_known(kafka.bootstrap_servers, name, partitions)
        return name

    return create


@pytest.fixture(autouse=True)
def clients_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Capture the members' logs, for the report of a failing test."""
    caplog.set_level(logging.INFO, logger="groupwright")


@pytest.fixture
def group() -> str:
    """A group id, unique to the test."""
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
    """Create consumers of the test's group, which the test polls itself; all are closed at its end."""
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
    """Write a number of messages to each partition of a topic."""

    def write(topic: str, partitions: int, messages: int) -> None:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(messages):
            for partition in range(partitions):
                producer.produce(topic, str(number), partition=partition)
        assert producer.flush(PATIENCE) == 0

    return write
