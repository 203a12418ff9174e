"""The members vote for an assignor: each for the first in its list that all of them have; most votes win."""

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError

from groupwright.assignors import Assignor, Group, RangeAssignor
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka


class FirstTakesAll(Assignor):
    """Gives everything to the first member."""

    name = "first-takes-all"

    def assign(self, group: Group) -> Mapping[str, Mapping[str, list[int]]]:
        first = min(group.members, key=lambda member: member.id)
        return {first.id: {topic: list(range(group.topics[topic].partitions)) for topic in first.topics}}


def protocols(*members: RunningMember) -> list[str | None]:
    """Return the protocol of each member's last rebalance."""
    return [each.protocol for member in members for each in member.rebalances[-1:]]


def test_a_group_ends_with_the_assignor_that_all_members_have(
    join: Join, new_kafka_topic: NewKafkaTopic
) -> None:
    """A custom assignor is preferred by one member, but the other knows only range: range it is."""
    topic = new_kafka_topic(partitions=4)

    alone = join("prefers-custom", [topic], partition_assignment_strategy=[FirstTakesAll(), RangeAssignor()])
    wait_until(lambda: len(alone.owned) == 4, "the first member to own everything")
    wait_until(lambda: protocols(alone) == ["first-takes-all"], "its rebalance to be reported")

    other = join("only-range", [topic], partition_assignment_strategy="range")
    wait_until(lambda: len(alone.owned) == len(other.owned) == 2, "two partitions each")

    wait_until(lambda: protocols(alone, other) == ["range", "range"], "their rebalances to be reported")
    assert alone.generation == other.generation


def test_the_preferred_assignor_wins_when_all_members_have_it(
    join: Join, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=4)
    strategy = [FirstTakesAll(), RangeAssignor()]

    members = [join(name, [topic], partition_assignment_strategy=strategy) for name in ("a", "b")]
    wait_until(
        lambda: (
            all(member.generation == members[0].generation > 0 for member in members)
            and sorted(len(member.owned) for member in members) == [0, 4]
        ),
        "one member to own everything",
    )

    wait_until(lambda: set(protocols(*members)) == {"first-takes-all"}, "their rebalances to be reported")


def test_a_member_with_nothing_in_common_is_refused_and_told_what_the_others_have(
    join: Join, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=2)
    settled = join("settled", [topic], partition_assignment_strategy="range")
    wait_until(lambda: len(settled.owned) == 2, "the first member to own everything")

    stranger = join("stranger", [topic], partition_assignment_strategy=FirstTakesAll())
    wait_until(lambda: bool(stranger.errors), "the stranger to be refused")

    error = stranger.errors[0]
    assert error.args[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    message = str(error)
    assert "this member supports 'first-takes-all'" in message
    assert "(settled) have agreed on 'range'" in message
    assert "Add 'range' to this consumer's partition.assignment.strategy" in message
    assert len(settled.owned) == 2
    assert settled.errors == []


def test_a_refused_member_joins_once_the_cause_is_gone(join: Join, new_kafka_topic: NewKafkaTopic) -> None:
    topic = new_kafka_topic(partitions=2)
    settled = join("settled", [topic], partition_assignment_strategy="range")
    wait_until(lambda: len(settled.owned) == 2, "the first member to own everything")
    stranger = join("stranger", [topic], partition_assignment_strategy=FirstTakesAll())
    wait_until(lambda: bool(stranger.errors), "the stranger to be refused")

    settled.close()

    wait_until(lambda: len(stranger.owned) == 2, "the stranger to own everything")
