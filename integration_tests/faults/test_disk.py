"""A broker whose disk is full: it ends, as Kafka's do, and the group goes on with the others."""

import pytest

from groupwright.testing import KafkaContainers
from integration_tests.harness import clusters
from integration_tests.harness.loaded_group import FaultyGroup
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

_DISK_IS_FULL = ("No space left on device", "java.lang.InternalError: a fault occurred in a")
"""Java's errors for a file that a broker writes, and for one that it has mapped into memory."""


@pytest.mark.endurance
def test_a_coordinator_whose_disk_is_full_ends_and_another_takes_its_groups(group: str) -> None:
    with clusters.started(KafkaContainers(disk="64m")) as kafka:
        kafka.create_topic("much", partitions=6)
        with FaultyGroup(kafka, group, "much", 6) as loaded:
            for name in ("a", "b"):
                loaded.join(name)
            loaded.wait_until_settled()
            loaded.wait_until_progress()
            coordinator = kafka.coordinator_of(group)

            kafka.fill_disk(coordinator)
            wait_until(lambda: not kafka.running(coordinator), "the end of the broker")

            log = kafka.log(coordinator)
            assert any(said in log for said in _DISK_IS_FULL), log[-2000:]
            loaded.wait_until_progress()
            loaded.finish()
