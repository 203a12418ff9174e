"""Topics of a real cluster that are created, deleted or grow while a group consumes."""

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewPartitions

from groupwright.consumer import Consumer
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.known_brokers import Address
from groupwright.consumer._protocol.model import MetadataResponse
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]

REFRESH = {"topic_metadata_refresh_interval_ms": 200}


def topics(consumer: Consumer) -> set[str]:
    return {partition.topic for partition in consumer.assignment()}


def grow(scene: "Scene", topic: str, partitions: int) -> None:
    scene.kafka.admin().create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE)


def delete(scene: "Scene", topic: str) -> None:
    scene.kafka.admin().delete_topics([topic])[topic].result(PATIENCE)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_partitions_that_a_topic_gains_are_consumed(scene: "Scene", strategy: str) -> None:
    """librdkafka rebalances nothing under a manual assignment: the leader must detect the change."""
    topic = scene.topic(partitions=1, messages=5)
    consumer = scene.consumer(partition_assignment_strategy=strategy, **REFRESH)
    calls: list[tuple[str, list[int]]] = []
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: calls.append(("assign", [p.partition for p in partitions])),
        on_revoke=lambda _, partitions: calls.append(("revoke", [p.partition for p in partitions])),
    )
    scene.take(consumer, 5)
    grow(scene, topic, 3)
    scene.own(consumer, 3)
    scene.produce(topic, 1, partitions=3, first=5)
    seen = sorted((message.partition(), message.offset()) for message in scene.poll(consumer, 3))

    assert seen == [(0, 5), (1, 0), (2, 0)]
    if strategy == "range":
        assert calls == [("assign", [0]), ("revoke", [0]), ("assign", [0, 1, 2])]
    else:
        assert calls == [("assign", [0]), ("assign", [1, 2])]


def test_the_leader_monitors_topics_for_the_whole_group(scene: "Scene") -> None:
    """Also what it does not subscribe to itself."""
    mine, theirs = scene.topic(), scene.topic()
    leader = scene.consumer(**REFRESH)
    leader.subscribe([mine])
    scene.own(leader, 1)
    other = scene.consumer(topic_metadata_refresh_interval_ms=-1)
    other.subscribe([theirs])
    scene.own(other, 1, leader)
    grow(scene, theirs, 4)

    scene.poll_until(
        lambda: (len(leader.assignment()), len(other.assignment())) == (1, 4), leader, other, what="the rest"
    )


def test_a_topic_that_is_created_after_the_subscription_is_consumed(scene: "Scene") -> None:
    first, later = scene.topic(), f"{scene.group}-later"
    consumer = scene.consumer(**REFRESH)
    consumer.subscribe([first, later])
    scene.own(consumer, 1)
    scene.kafka.create_topic(later, 2)

    scene.own(consumer, 3)
    assert topics(consumer) == {first, later}


def test_an_expression_follows_the_topics_that_match_it(scene: "Scene") -> None:
    """Created or deleted; each member looks by itself, and a rebalance settles it for all."""
    names = [f"{scene.group}.{name}" for name in ("a", "b", "c")]
    others = scene.topic()
    for name in names[:2]:
        scene.kafka.create_topic(name, 2)
    members = [
        scene.consumer(partition_assignment_strategy="cooperative-sticky", **REFRESH) for _ in range(2)
    ]
    for member in members:
        member.subscribe([f"^{scene.group}\\.[abc]$", others])

    def owned() -> dict[str, int]:
        found = [p.topic for member in members for p in member.assignment()]
        return {topic: found.count(topic) for topic in found}

    scene.poll_until(lambda: owned() == {names[0]: 2, names[1]: 2, others: 1}, *members, what="a and b")
    scene.kafka.create_topic(names[2], 2)
    scene.poll_until(
        lambda: owned() == {names[0]: 2, names[1]: 2, names[2]: 2, others: 1}, *members, what="c"
    )
    delete(scene, names[0])
    scene.poll_until(lambda: owned() == {names[1]: 2, names[2]: 2, others: 1}, *members, what="the deletion")


def test_an_expression_that_matches_nothing_waits(scene: "Scene") -> None:
    consumer = scene.consumer(**REFRESH)
    consumer.subscribe([f"^{scene.group}"])
    scene.poll_until(lambda: scene.members() == 1, consumer)
    assert consumer.assignment() == []
    scene.kafka.create_topic(f"{scene.group}-1", 1)

    scene.own(consumer, 1)


def test_internal_and_ignored_topics_do_not_match(scene: "Scene") -> None:
    scene.kafka.create_topic(f"{scene.group}-a", 1)
    scene.kafka.create_topic(f"{scene.group}-b", 1)
    consumer = scene.consumer(topic_blacklist=f"^{scene.group}-b$, ^nothing$")
    consumer.subscribe(["^__consumer_offsets", f"^{scene.group}-"])
    scene.own(consumer, 1)

    assert topics(consumer) == {f"{scene.group}-a"}


def test_what_is_no_expression_is_refused_by_subscribe(scene: "Scene") -> None:
    consumer = scene.consumer()
    with pytest.raises(KafkaException, match=r"'\^\(' is no regular expression"):
        consumer.subscribe(["^("])


def test_a_topic_that_nobody_has_does_not_rebalance_the_group_in_a_loop(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer(**REFRESH)
    assigned: list[int] = []
    consumer.subscribe([topic, "of-nobody"], on_assign=lambda _, partitions: assigned.append(len(partitions)))
    scene.own(consumer, 1)
    looked: list[None] = []
    watch = scene.member_of(consumer).membership._topic_monitor
    found = watch.found

    def count(answer: MetadataResponse, now: float) -> None:
        looked.append(None)
        found(answer, now)

    watch.found = count  # type: ignore[method-assign, assignment] # to see it look
    scene.poll_until(lambda: len(looked) >= 5, consumer, what="five looks")

    assert assigned == [1]
    assert scene.kafka.admin().list_topics(timeout=PATIENCE).topics.get("of-nobody") is None


def test_a_client_that_was_told_of_no_broker_asks_the_configured_ones_again(scene: "Scene") -> None:
    """A broker that the controller has fenced answers without any broker, not even itself.

    A consumer that started at that moment knew its coordinator, and never asked for topics again.
    """
    topic = scene.topic(partitions=3)

    async def ask(network: Network) -> list[MetadataResponse]:
        answers: list[MetadataResponse] = []
        for _ in range(2):  # the second time over what the first has learned
            if not answers:
                network._known.learn({}, None, Address("", 0))
            answers.append(await network.fetch_topics([topic]))
        return answers

    assert [answer.topics[topic].partitions for answer in scene.ask(ask)] == [3, 3]
