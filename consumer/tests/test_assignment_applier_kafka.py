"""Start offsets of partitions without a committed offset.

The consumer gives librdkafka offsets, never OFFSET_END. Otherwise librdkafka looks the end of the log up, and
a late response moved a partition that had been revoked and assigned again. The soak found this: a stopped
process lost its assignment when it woke, got the same partitions again, and skipped messages 0.5 s later.
"""

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition

from groupwright.consumer._protocol.events import Assign
from groupwright.consumer._protocol.model import MemberIdentity
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene
    from groupwright.consumer import Consumer
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.handle import Native

pytestmark = pytest.mark.kafka


def prepare(applier: AssignmentApplier, consumer: "Consumer", event: Assign) -> None:
    """Prepare an assignment as `poll` does: no call waits for a broker."""
    while not applier.prepare(consumer, event):
        applier.wait_for_offsets(0.01)


def gain(scene: "Scene", consumer: "Consumer", topic: str) -> None:
    """Assign a partition as the membership does, of a group that has committed nothing."""
    applier = scene.member_of(consumer).applier
    partitions = {topic: (0,)}
    event = Assign(1, partitions, partitions, {}, MemberIdentity(3, "m-1", "range"), None)
    prepare(applier, consumer, event)
    applier.assign(consumer, event, {})


def test_the_end_of_a_log_is_an_offset(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer(auto_offset_reset="latest")

    gain(scene, consumer, topic)

    assert [p.offset for p in Native.assignment(consumer)] == [10]
    scene.produce(topic, 1, first=10)
    assert scene.take(consumer, 1) == [10]


def test_an_open_transaction_has_no_end_yet(scene: "Scene") -> None:
    """Under read_committed "latest" is the last stable offset, as in librdkafka."""
    topic = scene.topic(messages=3)
    producer = Producer(
        {"bootstrap.servers": scene.kafka.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"pending", partition=0)
    producer.flush(PATIENCE)
    consumer = scene.consumer(auto_offset_reset="latest")

    gain(scene, consumer, topic)

    assert [p.offset for p in Native.assignment(consumer)] == [3]
    producer.commit_transaction(PATIENCE)
    assert scene.take(consumer, 1) == [3]


def test_the_beginning_of_a_log_is_an_offset(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()

    gain(scene, consumer, topic)

    assert [p.offset for p in Native.assignment(consumer)] == [0]
    assert scene.member_of(consumer).snapshot.start_offsets == {(topic, 0): 0}


def test_a_seek_right_after_the_assignment_is_not_undone(scene: "Scene") -> None:
    """librdkafka moved the partition to the beginning when its own look-up was answered: duplicates."""
    topic = scene.topic(messages=10)
    consumer = scene.consumer()

    gain(scene, consumer, topic)
    consumer.seek(TopicPartition(topic, 0, 8))
    assert scene.member_of(consumer).snapshot.start_offsets == {(topic, 0): 8}

    assert scene.take(consumer, 2) == [8, 9]
    assert consumer.poll(0.7) is None  # librdkafka asks again half a second later


def test_a_seek_in_on_assign_goes_where_it_says(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()

    def on_assign(consumer: "Consumer", partitions: list[TopicPartition]) -> None:
        consumer.assign(partitions)
        consumer.seek(TopicPartition(topic, 0, 8))

    consumer.subscribe([topic], on_assign=on_assign)

    assert scene.take(consumer, 2) == [8, 9]


def test_topics_that_are_gone_do_not_keep_the_others_waiting(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()
    applier = scene.member_of(consumer).applier
    gone = {f"gone-{number}": (0,) for number in range(8)}
    event = Assign(
        1, {topic: (0,), **gone}, {topic: (0,), **gone}, {}, MemberIdentity(3, "m-1", "range"), None
    )
    prepare(applier, consumer, event)
    applier.assign(consumer, event, {})

    assert {p.topic: p.offset for p in Native.assignment(consumer)} == {topic: 0} | dict.fromkeys(
        gone, OFFSET_BEGINNING
    )


def test_a_rebalance_asks_for_the_leaders_of_topics_that_were_assigned_before(scene: "Scene") -> None:
    """They may have moved since. With librdkafka's own membership it asks in each rebalance, too."""
    asked: list[int] = []
    """Requests so far, by each statistics."""

    def count(statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        asked.append(sum(broker["req"].get("Metadata", 0) for broker in brokers))

    def newest() -> int:
        seen = len(asked)
        scene.poll_until(lambda: len(asked) > seen + 1, first, what="statistics")
        return asked[-1]

    topic = scene.topic(partitions=2)
    quiet = {"topic_metadata_refresh_interval_ms": -1, "statistics_interval_ms": 50}
    first, second = scene.consumer(stats_cb=count, **quiet), scene.consumer()
    first.subscribe([topic])
    scene.own(first, 2)
    before = newest()

    second.subscribe([topic])
    scene.own(second, 1, first)
    scene.own(first, 1)

    assert newest() > before
