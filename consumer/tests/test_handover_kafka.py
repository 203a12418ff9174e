"""Where partitions begin, with a broker to answer."""

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition

from groupwright.consumer.events import Assign, Revoke
from groupwright.consumer.protocol import Identity, Offset, Partitions

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

    from groupwright.consumer import Consumer

pytestmark = pytest.mark.kafka

ME = Identity(3, "m-1", "range")


class Stage:
    """A consumer in no group, and the events that a membership would bring it."""

    def __init__(self, scene: "Scene", consumer: "Consumer") -> None:
        self.consumer = consumer
        self.handover = scene.member_of(consumer)._handover
        self.ticket = 0

    def gain(self, partitions: Partitions, committed: int | None = None) -> None:
        offsets = (
            {}
            if committed is None
            else {(t, n): Offset(committed) for t in partitions for n in partitions[t]}
        )
        event = Assign(self._next(), partitions, partitions, offsets, ME, None)
        self.handover.introduce(self.consumer, partitions)
        self.handover.assign(self.consumer, event)

    def lose(self, partitions: Partitions) -> None:
        self.handover.revoke(self.consumer, Revoke(self._next(), partitions, lost=True, identity=ME))

    def _next(self) -> int:
        self.ticket += 1
        return self.ticket


def test_a_partition_that_comes_back_at_once_goes_on_where_it_was_committed(scene: "Scene") -> None:
    """It was given up before librdkafka knew where its log begins, came back, and began at 5, and once more at 0.

    Found by the soak: a process that had been stopped lost its first assignment when it woke, and was assigned the same
    again. librdkafka had asked for the first offset meanwhile; it asked again half a second later, and went there.
    """
    topic = scene.topic(messages=10)
    stage = Stage(scene, scene.consumer())
    partitions = {topic: (0,)}

    stage.gain(partitions)
    stage.lose(partitions)
    stage.gain(partitions, committed=5)
    assert scene.take(stage.consumer, 5) == [5, 6, 7, 8, 9]

    settled = time.monotonic() + 1.0  # twice the time after which librdkafka asks again
    while time.monotonic() < settled:
        assert stage.consumer.poll(0.1) is None
    scene.produce(topic, 1, first=10)
    assert scene.take(stage.consumer, 1) == [10]


@pytest.mark.parametrize(("reset", "first"), [("earliest", 4), ("latest", 10)])
def test_what_was_never_committed_begins_at_an_end_of_its_log(scene: "Scene", reset: str, first: int) -> None:
    """Which need not be 0: old messages are deleted."""
    topic = scene.topic(messages=10)
    scene.kafka.admin().delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0, 4)].result(30)
    consumer = scene.consumer(auto_offset_reset=reset)
    stage = Stage(scene, consumer)

    stage.gain({topic: (0,)})

    assert [p.offset for p in consumer.assignment()] == [first]
    scene.produce(topic, 1, first=10)
    assert scene.take(consumer, 1) == [first]


def test_an_open_transaction_has_no_end_yet(scene: "Scene") -> None:
    """Under read_committed "latest" is the last stable offset, as in librdkafka: what is committed later is consumed."""
    topic = scene.topic(messages=3)
    producer = Producer(
        {"bootstrap.servers": scene.kafka.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"pending", partition=0)
    producer.flush(30)
    consumer = scene.consumer(auto_offset_reset="latest")

    Stage(scene, consumer).gain({topic: (0,)})
    assert [p.offset for p in consumer.assignment()] == [3]
    producer.commit_transaction(30)

    assert scene.take(consumer, 1) == [3]
