"""Methods that Java's consumer has and confluent-kafka's lacks, on a real broker."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from groupwright.consumer import (
    Consumer,
    ConsumerError,
    GroupMembershipOperation,
    Rebalance,
    WakeupError,
)
from groupwright.core import RebalanceListener
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]

STATIC = {"group_instance_id": "one"}


class Recorder(RebalanceListener):
    """A listener that keeps rebalances."""

    def __init__(self) -> None:
        self.rebalances: list[Rebalance] = []

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)


def broker_assigned(scene: "Scene", **keys: Any) -> Consumer:
    """Make a member whose partitions the broker assigns."""
    config = {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **keys,
    }
    consumer = Consumer(config)
    scene.consumers.append(consumer)
    return consumer


def wakeups(poll: Callable[[], object]) -> int:
    """Poll twice; return how many of these polls were woken."""
    woken = 0
    for _ in range(2):
        try:
            poll()
        except WakeupError:
            woken += 1
    return woken


# --- enforce_rebalance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_an_enforced_rebalance_has_its_reason(scene: "Scene", strategy: str) -> None:
    topic = scene.topic(partitions=2)
    recorder = Recorder()
    consumer = scene.consumer(partition_assignment_strategy=strategy)
    consumer.add_listener(recorder)
    consumer.subscribe([topic])
    scene.poll_until(lambda: len(recorder.rebalances) == 1, consumer)
    consumer.enforce_rebalance("the load has changed")
    scene.poll_until(lambda: len(recorder.rebalances) == 2, consumer)
    consumer.enforce_rebalance()
    scene.poll_until(lambda: len(recorder.rebalances) == 3, consumer)

    first, second, third = recorder.rebalances
    assert second.reason == "the load has changed"
    assert third.reason == "the application enforced a rebalance"
    assert first.generation < second.generation < third.generation
    assert len(consumer.assignment()) == 2


def test_a_rebalance_needs_a_subscription(scene: "Scene") -> None:
    consumer = scene.consumer()
    for _ in range(2):
        with pytest.raises(ConsumerError, match=r"call subscribe\(\) first") as caught:
            consumer.enforce_rebalance()
        assert caught.value.code == KafkaError._STATE
        consumer.subscribe([scene.topic()])
        consumer.unsubscribe()


# --- close ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "leave", "stay"),
    [
        ({}, GroupMembershipOperation.DEFAULT, 0),
        ({}, GroupMembershipOperation.LEAVE_GROUP, 0),
        ({}, GroupMembershipOperation.REMAIN_IN_GROUP, 1),
        (STATIC, GroupMembershipOperation.DEFAULT, 1),
        (STATIC, GroupMembershipOperation.LEAVE_GROUP, 0),
        (STATIC, GroupMembershipOperation.REMAIN_IN_GROUP, 1),
    ],
)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_whether_a_member_leaves(
    scene: "Scene", strategy: str, keys: dict[str, Any], leave: GroupMembershipOperation, stay: int
) -> None:
    """Either way what was consumed is committed, and on_revoke is called."""
    topic = scene.topic(messages=5)
    revoked: list[TopicPartition] = []
    consumer = scene.consumer(partition_assignment_strategy=strategy, **keys)
    consumer.subscribe([topic], on_revoke=lambda _, partitions: revoked.extend(partitions))
    scene.take(consumer, 3)
    consumer.close(leave=leave)

    assert scene.members() == stay
    assert len(revoked) == 1
    assert scene.committed(topic) == [3]


@pytest.mark.usefixtures("new_protocol")
@pytest.mark.parametrize(
    ("keys", "leave"),
    [
        ({}, GroupMembershipOperation.REMAIN_IN_GROUP),
        ({"group.instance.id": "one"}, GroupMembershipOperation.LEAVE_GROUP),
    ],
)
def test_what_librdkafkas_close_cannot_do_is_refused(
    scene: "Scene", keys: dict[str, Any], leave: GroupMembershipOperation
) -> None:
    consumer = broker_assigned(scene, **keys)
    with pytest.raises(ConsumerError) as caught:
        consumer.close(leave=leave)
    assert caught.value.code == KafkaError._NOT_IMPLEMENTED
    assert consumer.poll(0) is None  # it is open still
    consumer.close(leave=GroupMembershipOperation.DEFAULT)


def test_close_takes_nothing_else(scene: "Scene") -> None:
    with pytest.raises(TypeError, match="GroupMembershipOperation"):
        scene.consumer().close(leave=True)  # type: ignore[arg-type] # on purpose


# --- subscription, paused, seek_to_…, current_lag -------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda scene: scene.consumer(), broker_assigned], ids=["classic", "consumer"]
)
@pytest.mark.usefixtures("new_protocol")
def test_what_a_consumer_says_of_itself(
    scene: "Scene",
    make: Callable[["Scene"], Consumer],
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    topic = scene.topic(partitions=2, messages=5)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = make(scene)
    assert consumer.subscription() == []
    with pytest.raises(ConsumerError, match="needs an assigned partition"):
        consumer.current_lag(first)
    consumer.subscribe([topic])
    assert consumer.subscription() == [topic]
    scene.poll(consumer, 10)
    assert [consumer.current_lag(first), consumer.current_lag(second)] == [0, 0]
    scene.produce(topic, 3, first=5)
    consumer.pause([first, TopicPartition("elsewhere", 0)])
    assert consumer.paused() == [first]
    consumer.resume([first])
    assert consumer.paused() == []
    scene.poll(consumer, 1)
    eventually(lambda: consumer.current_lag(first) == 2, "the end of the log")  # whatever was prefetched
    scene.poll(consumer, 2)
    consumer.seek_to_beginning([first])
    assert scene.take(consumer, 8) == list(range(8))
    consumer.seek_to_beginning()
    assert sorted((m.partition(), m.offset()) for m in scene.poll(consumer, 13)) == [
        *((0, offset) for offset in range(8)),
        *((1, offset) for offset in range(5)),
    ]
    consumer.seek_to_beginning([])
    consumer.seek_to_end()
    came: list[int | None] = []

    def goes_on() -> bool:
        """Write a message, and poll. Those that are written before the end is looked up are skipped."""
        scene.produce(topic, 1, first=8)
        message = consumer.poll(1.0)
        came.extend([] if message is None else [message.offset()])
        return bool(came)

    eventually(goes_on, "a message that was written after seek_to_end")
    assert (came[0] or 0) >= 8
    consumer.unsubscribe()
    assert consumer.subscription() == []


def test_a_lag_is_known_before_the_first_message(scene: "Scene") -> None:
    """The position is the committed offset, so a member that has caught up reports 0, not an unknown lag."""
    topic = scene.topic(messages=5)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    scene.take(consumer, 5)
    consumer.close()
    back = scene.consumer()
    back.subscribe([topic])
    scene.own(back, 1)
    scene.poll_until(lambda: back.current_lag(TopicPartition(topic, 0)) == 0, back, what="the lag")


# --- wakeup ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_wakeup_ends_the_poll_that_waits_or_the_next_one_once(scene: "Scene", method: str) -> None:
    consumer = scene.consumer()
    wait = (PATIENCE,) if method == "poll" else (10, PATIENCE)
    now = (0,) if method == "poll" else (10, 0)
    threading.Timer(0.1, consumer.wakeup).start()
    with pytest.raises(WakeupError):
        getattr(consumer, method)(*wait)
    consumer.wakeup()
    consumer.wakeup()

    assert wakeups(lambda: getattr(consumer, method)(*now)) == 1


def test_a_wakeup_loses_no_message(scene: "Scene") -> None:
    topic = scene.topic(messages=2_000)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    offsets: list[int | None] = []
    woken = at = 0
    while len(offsets) < 2_000:
        if len(offsets) >= at + 7:
            at = len(offsets)
            consumer.wakeup()
        try:
            messages = consumer.consume(5, 1.0) if len(offsets) % 2 else [consumer.poll(1.0)]
            offsets += [message.offset() for message in messages if message is not None]
        except WakeupError:
            woken += 1

    assert offsets == list(range(2_000))
    assert woken > 100


def test_a_signal_handler_may_wake(scene: "Scene") -> None:
    consumer = scene.consumer()
    before = signal.signal(signal.SIGUSR1, lambda *_: consumer.wakeup())
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(WakeupError):
            consumer.poll(PATIENCE)
    finally:
        signal.signal(signal.SIGUSR1, before)


# --- asyncio --------------------------------------------------------------------------------------------


def test_an_asyncio_consumer_has_them_too(scene: "Scene") -> None:
    pytest.importorskip("confluent_kafka.aio", reason="confluent-kafka has no asyncio consumer")
    from groupwright.consumer import AIOConsumer  # confluent-kafka 2.13 or later has one

    topic = scene.topic(messages=5)
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group}
        consumer = AIOConsumer(config | {"auto.offset.reset": "earliest", "group.instance.id": "one"})
        await consumer.subscribe(topics=[topic])
        assert await consumer.subscription() == [topic]
        assert [(await consumer.poll(PATIENCE)).offset() for _ in range(2)] == [0, 1]
        assert await consumer.current_lag(partition) == 3
        await consumer.seek_to_beginning()
        assert (await consumer.poll(PATIENCE)).offset() == 0
        await consumer.seek_to_end([partition])
        await consumer.pause([partition])
        assert await consumer.paused() == [partition]
        await consumer.enforce_rebalance("because")
        poll = asyncio.create_task(consumer.poll(PATIENCE))
        await asyncio.sleep(0)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            await poll
        await consumer.close(timeout=PATIENCE, leave=GroupMembershipOperation.LEAVE_GROUP)

    asyncio.run(run())
    assert scene.members() == 0
