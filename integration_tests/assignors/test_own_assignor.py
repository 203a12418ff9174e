"""A custom assignor is one small class, and works in a real group."""

from collections.abc import Callable

import pytest

from groupwright.assignors import Assignor, Group
from groupwright.consumer import AssignorFailedError
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka


class LastPartitionApart(Assignor):
    """Assigns the last partition of each topic to one member, and the others round-robin."""

    name = "last-partition-apart"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        apart, *others = sorted(group.members, key=lambda member: member.id)
        plan: dict[str, dict[str, list[int]]] = {member.id: {} for member in group.members}
        for topic, subscribers in group.subscribers().items():
            last = group.topics[topic].partitions - 1
            dealers = [member for member in subscribers if member in others] or [apart]
            for partition in range(last):
                owner = dealers[partition % len(dealers)]
                plan[owner.id].setdefault(topic, []).append(partition)
            plan[apart.id].setdefault(topic, []).append(last)
        return plan


def test_an_assignor_of_twenty_lines_assigns_in_a_group_of_three(
    join: Join, new_kafka_topic: NewKafkaTopic, produce: Callable[[str, int, int], None]
) -> None:
    topic = new_kafka_topic(partitions=7)
    produce(topic, 7, 50)

    members = [
        join(name, [topic], partition_assignment_strategy=LastPartitionApart()) for name in ("a", "b", "c")
    ]
    wait_until(
        lambda: (
            sorted(len(member.owned) for member in members) == [1, 3, 3]
            and len({member.generation for member in members}) == 1
        ),
        "one partition apart, three for each of the others",
    )
    wait_until(
        lambda: len({entry for member in members for entry in member.consumed}) == 350,
        "every message to be consumed",
    )

    by_id = sorted(members, key=lambda member: member.consumer.memberid() or "")
    assert by_id[0].owned == {(topic, 6)}
    assert by_id[1].owned == {(topic, 0), (topic, 2), (topic, 4)}
    assert by_id[2].owned == {(topic, 1), (topic, 3), (topic, 5)}


class Confused(Assignor):
    """Assigns the same partition to every member."""

    name = "confused"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        return {member.id: {topic: [0] for topic in member.topics} for member in group.members}


def test_an_assignment_that_is_none_never_reaches_the_group(
    join: Join, new_kafka_topic: NewKafkaTopic
) -> None:
    """Two owners of a partition would consume it twice: the leader's application gets the error."""
    topic = new_kafka_topic(partitions=2)
    members = [join(name, [topic], partition_assignment_strategy=Confused()) for name in ("a", "b")]

    wait_until(
        lambda: any("confused" in str(error) for member in members for error in member.errors),
        "the leader to fail",
    )

    error = next(error for member in members for error in member.errors)
    assert isinstance(error, AssignorFailedError)
    assert "the assignor 'confused' failed: AssignorError: assignor 'confused': partition 0" in str(error)
    assert f"partition 0 of '{topic}' is assigned both to" in str(error)
