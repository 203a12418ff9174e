"""Groups under load, whose brokers or members are to be broken."""

from collections.abc import Iterator

import pytest

from groupwright.testing import KafkaContainers
from groupwright.testing.pytest_plugin import NewKafkaTopic
from harness.crew import Crew, NewCrew


@pytest.fixture
def kafka(breakable_cluster: KafkaContainers) -> Iterator[KafkaContainers]:
    """Three nodes that a test may break, each behind a proxy; made whole again after it."""
    yield breakable_cluster
    breakable_cluster.heal()


@pytest.fixture
def new_crew(kafka: KafkaContainers, group: str, new_kafka_topic: NewKafkaTopic) -> Iterator[NewCrew]:
    """Put a topic of the test's own under load; the crew's members are closed at the end."""
    crews: list[Crew] = []

    def start(partitions: int = 6) -> Crew:
        crews.append(Crew(kafka, group, new_kafka_topic(partitions), partitions))
        return crews[-1]

    yield start
    kafka.heal()  # so that members can leave
    for crew in crews:
        crew.close()
