"""Commits that a real coordinator stores: from which member, and when."""

import threading
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from groupwright.consumer import CommitError
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]


def test_a_synchronous_commit_is_stored_when_it_returns(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    results: list[object] = []
    consumer = scene.consumer(enable_auto_commit=False, on_commit=lambda *args: results.append(args))
    consumer.subscribe([topic])
    scene.take(consumer, 4)

    assert consumer.commit(asynchronous=False) == [TopicPartition(topic, 0, 4)]
    assert scene.committed(topic) == [4]
    assert consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset == 4
    # As with librdkafka, nothing is left to commit, and on_commit is not called for a synchronous commit.
    with pytest.raises(CommitError, match="No offset stored") as caught:
        consumer.commit(asynchronous=False)
    assert caught.value.args[0].code() == KafkaError._NO_OFFSET
    consumer.poll(0)
    assert results == []


def test_an_asynchronous_commit_is_told_to_on_commit(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    results: list[tuple[KafkaError | None, list[TopicPartition]]] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        results.append((error, partitions))

    consumer = scene.consumer(enable_auto_commit=False, on_commit=on_commit)
    consumer.subscribe([topic])
    scene.take(consumer, 4)
    consumer.commit()
    assert results == []
    scene.poll_until(lambda: bool(results), consumer, what="on_commit")

    assert results == [(None, [TopicPartition(topic, 0, 4)])]
    assert scene.committed(topic) == [4]


def test_what_on_commit_raises_leaves_poll(scene: "Scene") -> None:
    def on_commit(_error: object, _partitions: object) -> None:
        raise ValueError("mine")

    topic = scene.topic(messages=2)
    consumer = scene.consumer(enable_auto_commit=False, on_commit=on_commit)
    consumer.subscribe([topic])
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)])

    with pytest.raises(ValueError, match="mine"):
        consumer.poll(PATIENCE)
    assert scene.take(consumer, 1) == [1]  # stored before the member has joined


def test_a_message_and_offsets_of_ones_own_can_be_committed(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    assert scene.committed(topic) == [1]

    consumer.commit(offsets=[TopicPartition(topic, 0, 7, metadata="mine")], asynchronous=False)
    assert scene.committed(topic) == [7]
    found = scene.ask(lambda network: network.fetch_offsets({topic: [0]}))
    assert found.offsets[topic, 0].metadata == "mine"


def test_a_later_commit_is_never_overtaken(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    for offset in range(1, 200):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)])
    consumer.commit(offsets=[TopicPartition(topic, 0, 200)], asynchronous=False)

    assert scene.committed(topic) == [200]


def test_one_refused_partition_fails_the_commit_and_the_others_are_stored(scene: "Scene") -> None:
    topic = scene.topic(partitions=2)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.own(consumer, 2)
    too_much = TopicPartition(topic, 0, 3, metadata="m" * 5000)
    with pytest.raises(CommitError) as caught:
        consumer.commit(offsets=[too_much, TopicPartition(topic, 1, 4)], asynchronous=False)

    assert caught.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    assert str(caught.value) == (
        f"Commit failed: Broker: Offset metadata string too large: {topic} [0] (OFFSET_METADATA_TOO_LARGE)"
    )
    assert scene.committed(topic, partitions=2) == [-1001, 4]


def test_what_was_consumed_is_committed_at_intervals(scene: "Scene") -> None:
    topic = scene.topic()
    called: list[float] = []
    began = time.monotonic()
    consumer = scene.consumer(
        auto_commit_interval_ms=100, on_commit=lambda *_: called.append(time.monotonic())
    )
    consumer.subscribe([topic])
    written = 0
    while len(called) < 4:
        scene.produce(topic, 1, first=written)
        written += len(scene.take(consumer, 1))
    assert called[3] - began > 0.3

    scene.poll_until(lambda: scene.committed(topic) == [written], consumer, what="the last commit")


def test_what_was_consumed_is_committed_at_the_close_after_on_revoke(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()
    seen: list[list[int]] = []
    consumer.subscribe([topic], on_revoke=lambda *_: seen.append(scene.committed(topic)))
    scene.take(consumer, 6)
    consumer.close()

    assert seen == [[-1001]]
    assert scene.committed(topic) == [6]


def test_without_auto_commit_nothing_is_committed(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer(enable_auto_commit=False, auto_commit_interval_ms=10)
    consumer.subscribe([topic])
    scene.take(consumer, 10)
    consumer.poll(0.1)
    consumer.unsubscribe()
    scene.own(consumer, 0)
    consumer.close()

    assert scene.committed(topic) == [-1001]


def test_by_hand_only_what_was_stored_is_committed(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer(enable_auto_offset_store=False)
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE)
    assert message is not None
    scene.take(consumer, 4)
    with pytest.raises(CommitError) as caught:
        consumer.commit(asynchronous=False)
    assert caught.value.args[0].code() == KafkaError._NO_OFFSET

    consumer.store_offsets(message)
    assert consumer.commit(asynchronous=False) == [TopicPartition(topic, 0, 1)]
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 3)])
    consumer.close()
    assert scene.committed(topic) == [3]


def test_a_rebalance_delivers_every_message_once(scene: "Scene") -> None:
    """KAFKA-14196: what was handed out between the last commit and the revocation came again, elsewhere."""
    topic = scene.topic(partitions=4, messages=500)
    first, second = scene.consumer(), scene.consumer()
    first.subscribe([topic])
    messages = scene.own(first, 4)
    second.subscribe([topic])
    messages += scene.own(second, 2, first)
    second.close()
    messages += scene.own(first, 4)
    messages += scene.poll(first, 2000 - len(messages))
    first.close()

    seen = [(message.partition(), message.offset()) for message in messages]
    assert sorted(seen) == [(partition, offset) for partition in range(4) for offset in range(500)]
    assert scene.committed(topic, partitions=4) == [500] * 4


def test_partitions_assigned_by_hand_need_no_group(scene: "Scene") -> None:
    topic = scene.topic(partitions=2, messages=10)
    consumer = scene.consumer(auto_commit_interval_ms=60_000)
    consumer.assign([TopicPartition(topic, 0, 2)])
    assert scene.take(consumer, 3) == [2, 3, 4]
    assert consumer.memberid() is None
    consumer.commit(asynchronous=False)
    assert scene.committed(topic, partitions=2) == [5, -1001]

    # As with librdkafka, partitions unassigned by hand are committed, and so are the others at the close.
    scene.take(consumer, 2)
    consumer.assign([TopicPartition(topic, 1)])
    scene.take(consumer, 6)
    consumer.close()
    assert scene.committed(topic, partitions=2) == [7, 6]


def test_a_commit_of_another_thread_ends_when_a_static_member_closes(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer(enable_auto_commit=False, group_instance_id="me")
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    committed, ended = threading.Event(), threading.Event()

    def commit_for_ever() -> None:
        while True:
            consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
            committed.set()

    def work() -> None:
        with pytest.raises((CommitError, RuntimeError)):
            commit_for_ever()
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert committed.wait(PATIENCE)
    consumer.close()
    thread.join(PATIENCE)
    assert ended.is_set()


# --- Transactions ---------------------------------------------------------------------------------------


def send_offsets(scene: "Scene", topic: str, offset: int, metadata: object) -> None:
    """Commit an offset in a transaction of its own."""
    producer = Producer(
        {
            "bootstrap.servers": scene.kafka.bootstrap_servers,
            "transactional.id": uuid.uuid4().hex,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], metadata, PATIENCE)
        producer.commit_transaction(PATIENCE)
    except KafkaException:
        producer.abort_transaction(PATIENCE)
        raise


def test_a_transaction_commits_with_the_members_generation(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    send_offsets(scene, topic, 5, consumer.consumer_group_metadata())

    assert scene.committed(topic) == [5]


def test_a_transaction_of_an_earlier_generation_is_refused(scene: "Scene") -> None:
    topic = scene.topic(partitions=2)
    first, second = scene.consumer(enable_auto_commit=False), scene.consumer(enable_auto_commit=False)
    first.subscribe([topic])
    scene.own(first, 2)
    stale = first.consumer_group_metadata()
    second.subscribe([topic])
    scene.own(second, 1, first)
    scene.own(first, 1, second)

    with pytest.raises(KafkaException) as caught:
        send_offsets(scene, topic, 5, stale)
    assert caught.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
    send_offsets(scene, topic, 6, first.consumer_group_metadata())
    assert scene.committed(topic) == [6]


@pytest.mark.parametrize("knows", [False, True], ids=["before it knows", "after it knows"])
def test_the_transaction_of_a_zombie_is_fenced(scene: "Scene", *, knows: bool) -> None:
    """Also once it knows: without a member id the coordinator accepts offsets from any owner."""
    topic = scene.topic()
    zombie, successor = scene.consumer(enable_auto_commit=False), scene.consumer(enable_auto_commit=False)
    zombie.subscribe([topic])
    scene.own(zombie, 1)
    scene.expel(zombie)
    successor.subscribe([topic])
    scene.own(successor, 1)
    if knows:
        scene.poll_until(
            lambda: not scene.member_of(zombie).membership.identity.valid,
            successor,
            what="the zombie's heartbeat",
        )

    with pytest.raises(KafkaException) as caught:
        send_offsets(scene, topic, 5, zombie.consumer_group_metadata())
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert scene.committed(topic) == [-1001]
