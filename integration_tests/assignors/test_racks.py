"""Members get partitions with a replica in their rack, as far as the balance allows (KIP-881)."""

import uuid

import pytest
from confluent_kafka.cimpl import NewTopic

from groupwright.assignors import Group, Member, Topic, by_name
from groupwright.testing import KafkaContainers
from integration_tests.harness.members import Join
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import wait_until_known

pytestmark = pytest.mark.kafka

REPLICAS = ((1,), (2,), (3,), (3,), (2,), (1,))
"""By partition: the node, in ``rack-1`` to ``rack-3``, that has its only replica."""


@pytest.fixture
def kafka(cluster: KafkaContainers) -> KafkaContainers:
    """Three nodes in three racks."""
    return cluster


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_each_partition_is_consumed_in_the_rack_that_has_it(
    kafka: KafkaContainers, join: Join, assignor: str
) -> None:
    """One member per rack, and each partition in one rack: no fetch crosses racks."""
    topic = f"racks-{uuid.uuid4().hex[:8]}"
    created = NewTopic(topic, len(REPLICAS), replica_assignment=[list(nodes) for nodes in REPLICAS])
    kafka.admin().create_topics([created], request_timeout=30)[topic].result()
    wait_until_known(kafka.bootstrap_servers, topic, len(REPLICAS))
    names = {"rack-3": "a", "rack-1": "b", "rack-2": "c"}  # not in the order of the racks

    members = {
        rack: join(name, [topic], client_rack=rack, partition_assignment_strategy=assignor)
        for rack, name in names.items()
    }
    wait_until(
        lambda: (
            len({member.generation for member in members.values()}) == 1
            and [len(member.owned) for member in members.values()] == [2, 2, 2]
        ),
        "two partitions each",
    )

    near = {
        rack: {(topic, number) for number, nodes in enumerate(REPLICAS) if rack == f"rack-{nodes[0]}"}
        for rack in names
    }
    assert {rack: member.owned for rack, member in members.items()} == near
    group = Group(
        [Member(name, (topic,), rack=rack) for rack, name in names.items()],
        {topic: Topic(len(REPLICAS), [{f"rack-{node}" for node in nodes} for nodes in REPLICAS])},
    )
    offline = by_name(assignor).assign(group)
    assert {
        rack: {(topic, int(number)) for number in offline[name][topic]} for rack, name in names.items()
    } == near
