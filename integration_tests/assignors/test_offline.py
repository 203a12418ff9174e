"""A real group's assignments equal those that the library computes offline from the same inputs."""

import pytest

from groupwright.assignors import by_name, decode_assignment, perform_assignment
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import offsets_topic
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.offsets_topic import StoredGeneration
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

Shares = dict[str, dict[str, list[int]]]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_each_generation_of_a_group_is_assigned_as_the_library_does_offline(
    kafka: Kafka, join: Join, new_kafka_topic: NewKafkaTopic, group: str, assignor: str
) -> None:
    """Members with different subscriptions join and leave; the coordinator's records show each generation."""
    topics = {new_kafka_topic(partitions=count): count for count in (7, 4, 1)}
    orders, payments, _ = topics
    subscriptions = {"a": [orders, payments], "b": [orders], "c": list(topics), "d": [payments]}
    members: list[RunningMember] = []

    def shared() -> bool:
        subscribed = {topic for member in members for topic in subscriptions[member.name]}
        partitions = [partition for member in members for partition in member.owned]
        each_once = len(partitions) == len(set(partitions)) == sum(map(topics.__getitem__, subscribed))
        return each_once and len({member.generation for member in members}) == 1

    for name, subscription in subscriptions.items():
        settings = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 100}
        members.append(join(name, subscription, **settings))
        wait_until(shared, f"{name} and the others to share the partitions")
    members.pop(1).close()
    wait_until(shared, "the others to share what b had")

    stored = [entry for entry in offsets_topic.generations(kafka.bootstrap_servers, group) if entry.members]
    assert max(len(generation.members) for generation in stored) == 4
    for generation in stored:
        offline = perform_assignment(
            by_name(assignor), [member.joined for member in generation.members], topics
        )
        assert assigned(generation) == {
            member.client_id: readable(offline[member.joined.id]) for member in generation.members
        }, f"generation {generation.number}"
    last = assigned(stored[-1])
    assert {
        member.name: {(topic, number) for topic, numbers in last[member.name].items() for number in numbers}
        for member in members
    } == {member.name: member.owned for member in members}


def assigned(generation: StoredGeneration) -> Shares:
    return {member.client_id: readable(member.assignment) for member in generation.members}


def readable(assignment: bytes) -> dict[str, list[int]]:
    return {
        topic: list(map(int, numbers)) for topic, numbers in decode_assignment(assignment).partitions.items()
    }
