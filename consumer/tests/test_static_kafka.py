"""Static members (KIP-345, KIP-814) of a real group: restarts move nothing; a second instance takes over."""

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from groupwright.consumer import CommitError, Consumer
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]

STRATEGIES = pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])


def generation(scene: "Scene", consumer: Consumer) -> int:
    return scene.member_of(consumer).membership.identity.generation


def numbers(consumer: Consumer) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


def pair(scene: "Scene", topic: str, strategy: str) -> list[Consumer]:
    """Return two static members that share the topic; the first one leads."""
    members = [
        scene.consumer(
            partition_assignment_strategy=strategy,
            group_instance_id=name,
            topic_metadata_refresh_interval_ms=200,
        )
        for name in ("one", "two")
    ]
    members[0].subscribe([topic])
    scene.own(members[0], 4)
    members[1].subscribe([topic])
    scene.poll_until(lambda: [len(numbers(member)) for member in members] == [2, 2], *members)
    return members


def fencing(scene: "Scene", consumer: Consumer) -> KafkaError:
    """Poll until the consumer says that another one has its place; return the error."""
    errors: list[KafkaError] = []

    def is_fenced() -> bool:
        message = consumer.poll(0.05)
        errors.extend(filter(None, [message.error() if message is not None else None]))
        return bool(errors)

    scene.poll_until(is_fenced, what="the fencing")
    assert [error.code() for error in errors] == [KafkaError._FATAL]
    return errors[0]


@STRATEGIES
@pytest.mark.parametrize("restarted", [0, 1], ids=["the leader", "a follower"])
def test_a_restart_within_the_session_moves_nothing(scene: "Scene", strategy: str, restarted: int) -> None:
    """The remaining member sees no rebalance and goes on while the other is away; the generation stays."""
    topic = scene.topic(partitions=4, messages=10)
    members = pair(scene, topic, strategy)
    stays = members[1 - restarted]
    settled = generation(scene, stays)
    scene.poll_until(lambda: generation(scene, stays) == settled and bool(numbers(stays)), *members)
    before = numbers(members[restarted])
    members[restarted].close()
    assert scene.members() == 2
    back = scene.consumer(
        partition_assignment_strategy=strategy,
        group_instance_id=("one", "two")[restarted],
        topic_metadata_refresh_interval_ms=200,
    )
    calls: list[str] = []
    back.subscribe(
        [topic], on_assign=lambda *_: calls.append("assign"), on_revoke=lambda *_: calls.append("revoke")
    )
    scene.own(back, 2, stays)

    assert numbers(back) == before
    assert generation(scene, back) == generation(scene, stays) == settled
    assert calls == ["assign"]


@STRATEGIES
def test_a_leader_that_is_back_watches_the_topics(scene: "Scene", strategy: str) -> None:
    """KIP-814: it made no plan, and must know nevertheless what the group's is about."""
    topic = scene.topic(partitions=4)
    first, second = pair(scene, topic, strategy)
    first.close()
    back = scene.consumer(
        partition_assignment_strategy=strategy,
        group_instance_id="one",
        topic_metadata_refresh_interval_ms=200,
    )
    back.subscribe([topic])
    scene.own(back, 2, second)
    scene.kafka.admin().create_partitions([NewPartitions(topic, 8)])[topic].result(PATIENCE)

    scene.own(back, 4, second)


@STRATEGIES
def test_one_that_unsubscribes_gives_its_place_up(scene: "Scene", strategy: str) -> None:
    """As librdkafka's: the application has said that it wants nothing more."""
    topic = scene.topic(partitions=4)
    first, second = pair(scene, topic, strategy)
    first.unsubscribe()
    scene.own(first, 0, second)
    scene.own(second, 4, first)
    assert scene.members() == 1
    first.subscribe([topic])
    scene.own(first, 2, second)


@STRATEGIES
@pytest.mark.parametrize("request_name", ["Heartbeat", "OffsetCommit"])
def test_a_fenced_static_member_reports_it_for_good(scene: "Scene", strategy: str, request_name: str) -> None:
    topic = scene.topic(partitions=2)
    beat = {"heartbeat_interval_ms": 40_000} if request_name == "OffsetCommit" else {}
    first = scene.consumer(partition_assignment_strategy=strategy, group_instance_id="one", **beat)
    calls: list[tuple[str, int]] = []
    first.subscribe([topic], on_lost=lambda _, partitions: calls.append(("lost", len(partitions))))
    scene.own(first, 2)
    usurper = scene.consumer(partition_assignment_strategy=strategy, group_instance_id="one")
    usurper.subscribe([topic])
    scene.own(usurper, 2)

    if request_name == "OffsetCommit":
        with pytest.raises(CommitError):
            first.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    error = fencing(scene, first)
    assert "give every consumer its own" in error.str()
    assert first.poll(1.0) is None  # it is final, and reported once
    assert calls == [("lost", 2)]
    assert first.assignment() == []
    assert scene.committed(topic, partitions=2) == [-1001, -1001]
    scene.own(usurper, 2)


@STRATEGIES
def test_one_whose_place_was_taken_while_it_joined_is_told(scene: "Scene", strategy: str) -> None:
    """Its parked JoinGroup is answered FENCED_INSTANCE_ID."""
    topic = scene.topic(partitions=2)
    holder = scene.consumer(partition_assignment_strategy=strategy)
    holder.subscribe([topic])
    scene.own(holder, 2)
    first = scene.consumer(partition_assignment_strategy=strategy, group_instance_id="one")
    membership = scene.member_of(first).membership
    first.subscribe([topic])
    wait_until(lambda: scene.members() == 2, "the JoinGroup of the first")
    usurper = scene.consumer(partition_assignment_strategy=strategy, group_instance_id="one")
    usurper.subscribe([topic])

    fencing(scene, first)
    assert membership.identity.member_id == ""
    scene.poll_until(lambda: len(usurper.assignment()) == 1, usurper, holder)
