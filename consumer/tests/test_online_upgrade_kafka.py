"""Kafka 4's online upgrade: classic members in a group with members of KIP-848, where the broker assigns."""

import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from groupwright.assignors import Assignor, Group
from groupwright.consumer import CommitError, Consumer, Rebalance
from groupwright.core import RebalanceListener

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("new_protocol", "no_thread_stays")]


class AllToFirst(Assignor):
    """An assignor that no broker has."""

    name = "all-to-first"

    def __init__(self) -> None:
        self.calls = 0

    def assign(self, group: Group) -> Mapping[str, Mapping[str, list[int]]]:
        self.calls += 1
        first = min(member.id for member in group.members)
        return {first: {name: list(range(topic.partitions)) for name, topic in group.topics.items()}}


class Rebalances(RebalanceListener):
    def __init__(self) -> None:
        self.seen: list[Rebalance] = []

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.seen.append(rebalance)


def newer_member(scene: "Scene") -> Consumer:
    """Return a member of KIP-848, which is librdkafka's."""
    config = {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "group.protocol": "consumer",
        "log_level": 0,
    }
    scene.consumers.append(Consumer(config))
    return scene.consumers[-1]


@pytest.mark.slow
def test_it_is_told_once_that_the_broker_assigns(scene: "Scene", caplog: pytest.LogCaptureFixture) -> None:
    topic = scene.topic(partitions=4)
    assignor, rebalances = AllToFirst(), Rebalances()
    classic = scene.consumer(partition_assignment_strategy=[assignor])
    classic.add_listener(rebalances)
    classic.subscribe([topic])
    scene.own(classic, 4)
    assert not any(each.assigned_by_broker for each in rebalances.seen)
    caplog.set_level(logging.INFO, "groupwright")
    before, calls = len(rebalances.seen), assignor.calls

    newer = newer_member(scene)
    newer.subscribe([topic])
    scene.own(newer, 2, classic)
    scene.own(classic, 2, newer)
    second = newer_member(scene)
    second.subscribe([topic])
    scene.own(second, 1, classic, newer)

    assert assignor.calls == calls
    ended = rebalances.seen[before:]
    assert {(each.assigned_by_broker, each.protocol) for each in ended} == {(True, "all-to-first")}
    (warning,) = [text for text in caplog.messages if "the broker assigns" in text]
    assert "assignor 'all-to-first' is not called" in warning

    newer.close()
    second.close()
    scene.own(classic, 4)
    assert not rebalances.seen[-1].assigned_by_broker
    assert assignor.calls > calls
    assert [text for text in caplog.messages if "the group has a leader again" in text]


@pytest.mark.parametrize("strategy", ["range", pytest.param("cooperative-sticky", marks=pytest.mark.slow)])
@pytest.mark.parametrize("request_name", ["Heartbeat", "OffsetCommit"])
def test_a_static_member_whose_id_is_taken_does_not_take_it_back(
    scene: "Scene", strategy: str, request_name: str
) -> None:
    """The coordinator answers its commits with UNKNOWN_MEMBER_ID, only Heartbeat with FENCED_INSTANCE_ID."""
    topic = scene.topic(partitions=4)
    beat = 1500 if request_name == "OffsetCommit" else 100
    first = scene.consumer(
        partition_assignment_strategy=strategy, group_instance_id="one", heartbeat_interval_ms=beat
    )
    lost: list[int] = []
    first.subscribe([topic], on_lost=lambda _, partitions: lost.append(len(partitions)))
    scene.own(first, 4)
    newer = newer_member(scene)
    newer.subscribe([topic])
    scene.own(newer, 2, first)
    scene.own(first, 2, newer)
    usurper = scene.consumer(partition_assignment_strategy=strategy, group_instance_id="one")
    usurper.subscribe([topic])
    errors: list[str] = []

    def is_fenced() -> bool:
        if request_name == "OffsetCommit" and not errors:
            with contextlib.suppress(CommitError):
                first.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        message = first.poll(0.05)
        error = None if message is None else message.error()
        if error is not None:
            errors.append(error.name())
        return bool(errors)

    scene.poll_until(is_fenced, usurper, newer, what="the fencing")
    scene.own(usurper, 2, newer, first)

    assert errors == ["_FATAL"]
    assert sum(lost) == 2
    assert first.assignment() == []
