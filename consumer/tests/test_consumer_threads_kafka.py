"""Threads that share a consumer, on a real broker."""

import asyncio
import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message, TopicPartition
from confluent_kafka.error import ConsumeError, ValueDeserializationError
from confluent_kafka.serialization import StringDeserializer

from groupwright.consumer import Consumer, ConsumerInterceptor, DeserializingConsumer
from groupwright.consumer.errors import CommitError
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene
    from groupwright.consumer import AIOConsumer

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]
needs_aio = pytest.mark.skipif(
    find_spec("confluent_kafka.aio") is None, reason="confluent-kafka has no asyncio consumer"
)

WORDS: list[Any] = ["0", "1"]


def config(scene: "Scene", **keys: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100,
        "fetch.wait.max.ms": 50,
        "log_level": 0,
        **keys,
    }


# --- Threads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_hand", [False, True])
def test_workers_commit_what_another_thread_polls(scene: "Scene", *, by_hand: bool) -> None:
    topic = scene.topic(partitions=2, messages=100)
    consumer = scene.consumer(enable_auto_commit=False, enable_auto_offset_store=not by_hand)
    consumer.subscribe([topic])

    def work(message: Message) -> None:
        if by_hand:
            consumer.store_offsets(message)
        else:
            consumer.commit(message)

    with ThreadPoolExecutor(1) as pool:
        for message in scene.poll(consumer, 200):
            pool.submit(work, message).result(PATIENCE)
        # Nothing more will come, so this poll ends with the close.
        stop = threading.Event()
        polling = threading.Thread(target=lambda: stop.wait(PATIENCE), daemon=True)
        polling.start()
        if by_hand:
            committed = pool.submit(consumer.commit, asynchronous=False).result(PATIENCE)
        else:
            last = [TopicPartition(topic, number, 100) for number in (0, 1)]
            committed = pool.submit(consumer.commit, offsets=last, asynchronous=False).result(PATIENCE)
        stop.set()
        polling.join(PATIENCE)
    assert committed is not None
    assert sorted(p.offset for p in committed) == [100, 100]
    assert scene.committed(topic, partitions=2) == [100, 100]


def test_a_commit_does_not_wait_for_the_poll(scene: "Scene") -> None:
    topic = scene.topic(messages=3)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.take(consumer, 3)
    ended: list[str] = []

    def poll() -> None:
        with pytest.raises(RuntimeError, match="Consumer closed"):
            consumer.poll()
        ended.append("poll")

    thread = threading.Thread(target=poll)
    thread.start()
    while consumer._guard.ident != thread.ident:
        threading.Event().wait(0.001)
    assert consumer.commit(asynchronous=False) == [TopicPartition(topic, 0, 3)]
    assert scene.committed(topic) == [3]
    assert ended == []
    assert consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)[0].offset == 3
    consumer.close()
    thread.join(PATIENCE)
    assert ended == ["poll"]


def test_a_close_by_another_thread_gives_up_in_order_on_that_thread(scene: "Scene") -> None:
    topic = scene.topic(messages=3)
    consumer = scene.consumer()
    calls: list[tuple[str, str]] = []
    consumer.subscribe(
        [topic], on_revoke=lambda *_: calls.append(("revoke", threading.current_thread().name))
    )
    scene.take(consumer, 3)

    def poll() -> None:
        with pytest.raises(RuntimeError, match="Consumer closed"):
            consumer.poll()
        calls.append(("poll", threading.current_thread().name))

    thread = threading.Thread(target=poll, name="poller")
    thread.start()
    while consumer._guard.ident != thread.ident:
        threading.Event().wait(0.001)
    consumer.close()
    thread.join(PATIENCE)

    assert set(calls) == {("poll", "poller"), ("revoke", "MainThread")}
    assert scene.committed(topic) == [3]
    assert scene.members() == 0


def test_a_revocation_may_wait_for_workers_that_commit(scene: "Scene") -> None:
    """The usual pattern: on_revoke waits until the workers have committed the messages that they hold."""
    topic = scene.topic(messages=5)
    consumer = scene.consumer(enable_auto_commit=False)
    with ThreadPoolExecutor(2) as pool:

        def work() -> None:
            consumer.position([TopicPartition(topic, 0)])
            consumer.commit(asynchronous=False)

        def on_revoke(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
            pool.submit(work).result(PATIENCE)

        consumer.subscribe([topic], on_revoke=on_revoke)
        scene.take(consumer, 5)
        consumer.close()
    assert scene.committed(topic) == [5]


def test_what_was_stored_of_a_partition_that_went_is_refused(scene: "Scene") -> None:
    topic = scene.topic(messages=5)
    consumer = scene.consumer(enable_auto_commit=False, enable_auto_offset_store=False)
    consumer.subscribe([topic])
    (message, *_) = scene.poll(consumer, 5)
    consumer.unsubscribe()
    scene.own(consumer, 0)

    with pytest.raises(CommitError, match="none of these partitions is assigned"):
        consumer.store_offsets(message)


# --- Interceptors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_interceptors_see_messages_and_commits(
    scene: "Scene", request: pytest.FixtureRequest, protocol: str, *, batch: bool
) -> None:
    if protocol == "consumer":
        request.getfixturevalue("new_protocol")

    class Even(ConsumerInterceptor):
        def __init__(self) -> None:
            self.stored: list[int] = []

        def on_consume(self, messages: list[Message]) -> list[Message]:
            return [message for message in messages if (message.offset() or 0) % 2 == 0]

        def on_commit(self, offsets: list[TopicPartition]) -> None:
            self.stored += [p.offset for p in offsets]

    topic = scene.topic(messages=6)
    even = Even()
    own = {"group.protocol": protocol, "interceptors": [even], "enable.auto.commit": False}
    if protocol == "consumer":
        settings = {key: value for key, value in config(scene).items() if key != "heartbeat.interval.ms"}
    else:
        settings = config(scene)
    with Consumer(settings | own) as consumer:
        consumer.subscribe([topic])
        if batch:
            offsets: list[int | None] = []
            while len(offsets) < 3:
                offsets += [message.offset() for message in consumer.consume(3, 1.0)]
        else:
            offsets = scene.take(consumer, 3)
        assert offsets == [0, 2, 4]
        scene.poll_until(
            lambda: consumer.position([TopicPartition(topic, 0)])[0].offset == 6, consumer, what="the last"
        )
        consumer.commit(asynchronous=False)
        assert even.stored == [6]


# --- Deserializing --------------------------------------------------------------------------------------


def test_a_deserializing_consumer_deserializes(scene: "Scene") -> None:
    topic = scene.topic(messages=2)
    with DeserializingConsumer[Any, Any](
        config(scene, **{"value.deserializer": StringDeserializer()})
    ) as consumer:
        consumer.subscribe([topic])
        # Before 2.16, confluent-kafka puts it in the place of the value.
        read = Message.deserialized_value if hasattr(Message, "deserialized_value") else Message.value
        assert [read(message) for message in scene.poll(consumer, 2)] == WORDS
        with pytest.raises(NotImplementedError):
            consumer.consume()
    assert scene.committed(topic) == [2]


def test_a_value_that_cannot_be_deserialized_is_told_with_its_message(scene: "Scene") -> None:
    def refuse(_value: object, _context: object) -> None:
        raise ValueError("no")

    topic = scene.topic(messages=2)
    with DeserializingConsumer[Any, Any](config(scene, **{"value.deserializer": refuse})) as consumer:
        consumer.subscribe([topic])
        for offset in (0, 1):
            with pytest.raises(ValueDeserializationError) as caught:
                consumer.poll(PATIENCE)
            assert caught.value.kafka_message is not None
            assert caught.value.kafka_message.offset() == offset


def test_a_membership_error_is_a_consume_error_there(scene: "Scene") -> None:
    topic = scene.topic()
    short = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000}
    with DeserializingConsumer[Any, Any](config(scene, **short)) as consumer:
        consumer.subscribe([topic])
        scene.own(consumer, 1)
        member = scene.member_of(consumer)
        while not member.due:
            threading.Event().wait(0.05)
        with pytest.raises(ConsumeError, match=r"max\.poll\.interval\.ms"):
            consumer.poll(PATIENCE)


# --- asyncio --------------------------------------------------------------------------------------------


@needs_aio
def test_an_asyncio_consumer_polls_commits_and_calls_back(scene: "Scene") -> None:
    topic = scene.topic(messages=6)
    calls: list[str] = []

    async def on_assign(consumer: "AIOConsumer", partitions: list[TopicPartition]) -> None:
        await consumer.assign([TopicPartition(p.topic, p.partition, 2) for p in partitions])
        calls.append(f"assigned {len(await consumer.assignment())}")

    async def on_revoke(consumer: "AIOConsumer", partitions: list[TopicPartition]) -> None:
        calls.append(f"revoked {len(partitions)}")
        await consumer.commit(asynchronous=False)

    async def run() -> list[int | None]:
        from groupwright.consumer import AIOConsumer  # confluent-kafka 2.13 or later has one

        consumer = AIOConsumer(config(scene, **{"enable.auto.commit": False}))
        await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        offsets: list[int | None] = []
        offsets += [message.offset() for message in await consumer.consume(1, PATIENCE)]
        offsets += [message.offset() for message in await consumer.consume(3, PATIENCE)]
        waiting = asyncio.create_task(consumer.poll(PATIENCE))
        # Neither the commit nor the close waits for the poll's end.
        await consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        assert not waiting.done()
        await consumer.close()
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await waiting
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await consumer.poll(0)
        return offsets

    assert asyncio.run(asyncio.wait_for(run(), PATIENCE)) == [2, 3, 4, 5]
    assert calls == ["assigned 1", "revoked 1"]
    assert scene.committed(topic) == [6]


@needs_aio
def test_a_poll_that_is_cancelled_loses_no_message(scene: "Scene") -> None:
    """Its thread goes on for a moment, and may take a message for it: that is the next call's."""
    topic = scene.topic(messages=300)

    async def run() -> list[int | None]:
        from groupwright.consumer import AIOConsumer

        consumer = AIOConsumer(config(scene))
        await consumer.subscribe([topic])
        seen: list[int | None] = []
        delays = itertools.cycle(range(5))
        while len(seen) < 300:
            take = consumer.consume(2, 0.2) if len(seen) % 2 else consumer.poll(PATIENCE)
            waiting = asyncio.ensure_future(take)
            for _ in range(next(delays)):
                await asyncio.sleep(0.0001)
            if next(delays):
                waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                result = await waiting
                taken = result if isinstance(result, list) else [result]
                seen += [message.offset() for message in taken if message is not None]
        # Nor does one without an end keep the next from its turn.
        endless = asyncio.ensure_future(consumer.poll())
        await asyncio.sleep(0.1)
        endless.cancel()
        assert await consumer.poll(0.1) is None
        await consumer.close()
        return seen

    assert asyncio.run(asyncio.wait_for(run(), PATIENCE)) == list(range(300))
    assert scene.committed(topic) == [300]
