"""KIP-848: the broker assigns, and librdkafka is the member, behind the same class."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

from groupwright.assignors import RangeAssignor
from groupwright.consumer import ConfigurationError, Consumer, Rebalance
from groupwright.core import RebalanceListener
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene


NOWHERE: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "group.protocol": "consumer",
    "log_level": 0,
}


@dataclass
class Listener(RebalanceListener):
    recorded: list[tuple[str, dict[str, tuple[int, ...]]]] = field(default_factory=list)

    def partitions_assigned(self, partitions: Any, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("assigned", partitions))

    def partitions_revoked(self, partitions: Any, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("revoked", partitions))

    def partitions_lost(self, partitions: Any, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("lost", partitions))

    def rebalanced(self, rebalance: Rebalance) -> None:
        raise AssertionError(rebalance)  # librdkafka shows none


def member(scene: "Scene", **keys: Any) -> Consumer:
    config: dict[str, Any] = {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **keys,
    }
    scene.consumers.append(Consumer(config))
    return scene.consumers[-1]


@pytest.mark.parametrize("strategy", ["range", [RangeAssignor()]])
def test_an_assignor_beside_it_is_refused(strategy: object) -> None:
    with pytest.raises(ConfigurationError, match=r"group\.remote\.assignor"):
        Consumer(NOWHERE | {"partition.assignment.strategy": strategy})


def test_it_is_the_same_class_and_closes_as_one() -> None:
    with Consumer(NOWHERE) as consumer:
        assert type(consumer) is Consumer
        assert isinstance(consumer, confluent_kafka.Consumer)
        assert consumer.poll(0) is None
        assert consumer.consume(1, 0) == []
    assert consumer.poll_age is None
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_what_librdkafkas_callbacks_raise_leaves_poll_here_too() -> None:
    failures = [ValueError("mine")]

    def stats_cb(_json: str) -> None:
        if failures:  # once: `close` calls it too
            raise failures.pop()

    config = NOWHERE | {"stats_cb": stats_cb, "statistics.interval.ms": 20}
    with Consumer(config) as consumer, pytest.raises(ValueError, match="mine"):
        consumer.poll(PATIENCE)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("new_protocol")
def test_two_members_share_a_topic_and_listeners_hear_of_it(scene: "Scene") -> None:
    topic = scene.topic(partitions=4, messages=5)
    called: list[tuple[str, int]] = []
    first, second = member(scene), member(scene)
    listener = Listener()
    first.add_listener(listener)
    first.subscribe(
        [topic],
        on_assign=lambda _, partitions: called.append(("assign", len(partitions))),
        on_revoke=lambda _, partitions: called.append(("revoke", len(partitions))),
    )
    scene.own(first, 4)
    assert first.memberid()
    assert first.consumer_group_metadata().startswith(b"CGMDv2:")
    second.subscribe([topic])
    scene.own(second, 2, first)
    assert len(first.assignment()) == 2
    first.close()

    assert sum(count for kind, count in called if kind == "assign") == 4
    assert sum(count for kind, count in called if kind == "revoke") == 4
    counts = {"assign": 0, "revoke": 0}
    for kind, partitions in listener.recorded:
        counts[kind.removesuffix("ed").removesuffix("d") if kind != "revoked" else "revoke"] += len(
            partitions.get(topic, ())
        )
    assert counts == {"assign": 4, "revoke": 4}


@pytest.mark.kafka
@pytest.mark.usefixtures("new_protocol")
def test_commits_and_on_commit_are_librdkafkas(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    recorded: list[tuple[KafkaError | None, list[int]]] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        recorded.append((error, [p.offset for p in partitions]))

    consumer = member(scene, **{"enable.auto.commit": False, "on_commit": on_commit})
    consumer.subscribe([topic])
    scene.take(consumer, 4)
    assert consumer.commit(asynchronous=False) == [TopicPartition(topic, 0, 4)]
    assert scene.committed(topic) == [4]
    consumer.commit(offsets=[TopicPartition(topic, 0, 6)])
    scene.poll_until(lambda: (None, [6]) in recorded, consumer, what="on_commit")
    assert scene.committed(topic) == [6]


@pytest.mark.kafka
@pytest.mark.usefixtures("new_protocol")
def test_what_a_rebalance_callback_raises_leaves_poll_once_and_no_message_is_lost(scene: "Scene") -> None:
    def on_assign(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        raise ValueError("mine")

    topic = scene.topic(messages=5)
    consumer = member(scene)
    consumer.subscribe([topic], on_assign=on_assign)
    with pytest.raises(ValueError, match="mine"):
        consumer.poll(PATIENCE)

    assert scene.take(consumer, 5) == [0, 1, 2, 3, 4]


@pytest.mark.kafka
@pytest.mark.usefixtures("new_protocol")
def test_on_assign_chooses_offsets(scene: "Scene") -> None:
    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign([TopicPartition(p.topic, p.partition, 3) for p in partitions])

    topic = scene.topic(messages=5)
    consumer = member(scene)
    consumer.subscribe([topic], on_assign=on_assign)

    assert scene.take(consumer, 2) == [3, 4]


@pytest.mark.kafka
@pytest.mark.usefixtures("new_protocol")
def test_a_closed_one_has_left(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = member(scene)
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    started = time.monotonic()
    consumer.close()

    assert scene.members() == 0
    assert time.monotonic() - started < PATIENCE / 4  # the session would end after 45 s
