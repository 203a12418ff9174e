"""Metrics agree with the actions of the test and with the coordinator's records."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from groupwright.consumer import Consumer, Outcome
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import coordinator, offsets_topic
from integration_tests.harness.members import RunningMember
from integration_tests.harness.offsets_topic import StoredOffset
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until, take
from integration_tests.harness.waiting import holds_within, wait_until
from integration_tests.metrics.conftest import MeasuredMember, Value

pytestmark = pytest.mark.kafka

Produce = Callable[[str, int, int], None]
STRATEGIES = pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
COUNTERS = {
    "assign": "partitions_assigned_total",
    "revoke": "partitions_revoked_total",
    "lost": "partitions_lost_total",
}


def counted(member: RunningMember, kind: str) -> int:
    """Return the number of partitions passed to the member's callbacks of that kind."""
    return sum(len(partitions) for called, partitions in member.callbacks if called == kind)


def agree_with_the_coordinator(
    kafka: Kafka, group: str, topic: str, value: Value, members: Sequence[RunningMember]
) -> None:
    """Wait until each member's generation and partitions are those of the coordinator and the callbacks."""
    stored = [entry for entry in offsets_topic.generations(kafka.bootstrap_servers, group) if entry.members][
        -1
    ]
    owned = coordinator.owned(kafka.admin(), group)
    assert set(owned) == {member.name for member in members}
    node = kafka.coordinator_of(group)

    def differences() -> list[tuple[str, str, float | None, float]]:
        found = [
            comparison
            for member in members
            for comparison in (
                (member.name, "generation", value(member.name, "generation"), stored.number),
                (member.name, "coordinator", value(member.name, "coordinator_node"), node),
                (
                    member.name,
                    "owned",
                    value(member.name, "partitions_owned", topic=topic),
                    len(owned[member.name]),
                ),
                *(
                    (member.name, kind, value(member.name, metric, topic=topic) or 0, counted(member, kind))
                    for kind, metric in COUNTERS.items()
                ),
            )
        ]
        return [each for each in found if each[2] != each[3]]

    # A callback's metrics follow it by a moment.
    holds_within(lambda: not differences(), PATIENCE)
    assert differences() == []


@STRATEGIES
def test_members_that_come_and_go_and_partitions_that_are_added_are_counted_as_they_were(
    kafka: Kafka,
    measured: MeasuredMember,
    value: Value,
    new_kafka_topic: NewKafkaTopic,
    group: str,
    strategy: str,
) -> None:
    """After each step, counters equal the sums over the callbacks, and gauges the coordinator's records."""
    topic = new_kafka_topic(partitions=6)
    members: list[RunningMember] = []

    def settled(partitions: int) -> bool:
        owned = sorted(number for member in members for _, number in member.owned)
        stable = all(value(each.name, "membership_state", state="stable") == 1 for each in members)
        return stable and owned == list(range(partitions)) and len({each.generation for each in members}) == 1

    def counted_once(expected: list[int]) -> bool:
        # A late second round may count as a separate rebalance for a member that revoked nothing.
        most = [
            len(each.rebalances) if strategy == "cooperative-sticky" else count
            for each, count in zip(members, expected, strict=True)
        ]
        counts = [
            value(each.name, "rebalances_total", protocol=strategy, outcome="completed") or 0
            for each in members
        ]
        return all(low <= count <= high for low, count, high in zip(expected, counts, most, strict=True))

    for number, name in enumerate(("a", "b", "c")):
        members.append(measured(name, [topic], partition_assignment_strategy=strategy))
        wait_until(lambda: settled(6), f"{name} and the others to share the partitions")
        agree_with_the_coordinator(kafka, group, topic, value, members)
        # One each since the member joined, of however many rounds.
        expected = list(range(number + 1, 0, -1))
        wait_until(partial(counted_once, expected), f"the rebalances to be {expected}")

    members.pop().close()
    wait_until(lambda: settled(6), "the others to share what c had")
    agree_with_the_coordinator(kafka, group, topic, value, members)
    wait_until(partial(counted_once, [4, 3]), "the rebalances to be [4, 3]")

    kafka.admin().create_partitions([NewPartitions(topic, 8)], request_timeout=PATIENCE)[topic].result()
    wait_until(lambda: settled(8), "the members to share the new partitions")
    agree_with_the_coordinator(kafka, group, topic, value, members)


@STRATEGIES
def test_what_was_lost_is_counted_as_lost_and_by_whose_fault(
    measured: MeasuredMember, value: Value, new_kafka_topic: NewKafkaTopic, strategy: str
) -> None:
    topic = new_kafka_topic(partitions=4)
    stalled = measured("stalled", [topic], partition_assignment_strategy=strategy, max_poll_interval_ms=6_000)
    wait_until(lambda: len(stalled.owned) == 4, "the member to own everything")

    stalled.pause_polling()
    wait_until(lambda: value("stalled", "max_poll_exceeded_total") == 1, "the member to have left")
    used = value("stalled", "poll_interval_used_ratio")
    assert used is not None
    assert used > 1
    stalled.resume_polling()
    wait_until(lambda: stalled.rebalances[-1].outcome is Outcome.LOST, "the member to be back")

    wait_until(
        lambda: value("stalled", "rebalances_total", protocol=strategy, outcome="lost") == 1,
        "the loss to be counted",
    )
    wait_until(lambda: value("stalled", "partitions_owned", topic=topic) == 4, "all partitions")
    assert value("stalled", "partitions_lost_total", topic=topic) == 4
    assert value("stalled", "partitions_assigned_total", topic=topic) == 8
    assert not value("stalled", "partitions_revoked_total", topic=topic)
    assert value("stalled", "rebalances_total", protocol=strategy, outcome="completed") == 1


def test_commits_are_counted_as_often_as_the_coordinator_stored_or_refused_them(
    kafka: Kafka,
    new_instrumented: Callable[..., Consumer],
    value: Value,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
    group: str,
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 5)
    consumer = new_instrumented("committer", enable_auto_commit=False)
    consumer.subscribe([topic])
    take(consumer, 5)

    for offset in (1, 2, 3):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition(topic, 0, 4, metadata="x" * 5_000)], asynchronous=False)

    stored = [
        record.value.offset
        for record in offsets_topic.records_of(kafka.bootstrap_servers, group)
        if isinstance(record.value, StoredOffset)
    ]
    assert stored == [1, 2, 3]
    assert value("committer", "commits_total") == 4
    assert value("committer", "commit_failures_total", error="OFFSET_METADATA_TOO_LARGE") == 1
    assert value("committer", "commit_duration_seconds_count") == 4


def test_the_lag_is_what_there_is_to_consume(
    new_instrumented: Callable[..., Consumer], value: Value, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """Three of eight messages are consumed; then two more are written, and finally all are consumed."""
    topic = new_kafka_topic()
    produce(topic, 1, 8)
    consumer = new_instrumented("reader")
    consumer.subscribe([topic])
    take(consumer, 3)
    consumer.pause([TopicPartition(topic, 0)])

    poll_until(consumer, lambda _: value("reader", "lag", topic=topic) == 5, "a lag of 5")
    consumer.resume([TopicPartition(topic, 0)])
    produce(topic, 1, 2)
    take(consumer, 7)

    poll_until(consumer, lambda _: value("reader", "lag", topic=topic) == 0, "no lag")


def test_a_member_whose_place_is_taken_counts_it_and_owns_nothing(
    measured: MeasuredMember, value: Value, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=2)
    first = measured("first", [topic], group_instance_id="host-7")
    wait_until(lambda: len(first.owned) == 2, "the member to own everything")

    successor = measured("second", [topic], group_instance_id="host-7")
    wait_until(lambda: bool(first.errors), "the member to be fenced")

    wait_until(lambda: value("first", "fenced_total") == 1, "the fencing to be counted")
    wait_until(lambda: value("first", "partitions_owned", topic=topic) == 0, "it to own nothing")
    assert value("first", "partitions_lost_total", topic=topic) == 2
    wait_until(
        lambda: value("second", "partitions_owned", topic=topic) == 2, "its successor to own everything"
    )
    assert value("second", "fenced_total") == 0
    wait_until(lambda: successor.generation == 1, "its successor's generation")
    assert value("first", "generation") == value("second", "generation") == 1
