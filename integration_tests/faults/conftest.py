"""Groups under load, whose brokers or members are to be broken."""

from collections.abc import Iterator

import pytest

from groupwright.testing import KafkaContainers
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.loaded_group import FaultyGroup, NewFaultyGroup


@pytest.fixture
def kafka(breakable_cluster: KafkaContainers) -> Iterator[KafkaContainers]:
    """Three nodes that a test may break, each behind a proxy; made whole again after it."""
    yield breakable_cluster
    breakable_cluster.heal()


@pytest.fixture
def new_loaded(
    kafka: KafkaContainers, group: str, new_kafka_topic: NewKafkaTopic
) -> Iterator[NewFaultyGroup]:
    """Put a topic of the test's own under load; the group's members are closed at the end."""
    groups: list[FaultyGroup] = []

    def start(partitions: int = 6) -> FaultyGroup:
        groups.append(FaultyGroup(kafka, group, new_kafka_topic(partitions), partitions))
        return groups[-1].__enter__()

    yield start
    kafka.heal()  # so that members can leave
    for started in groups:
        started.close()
