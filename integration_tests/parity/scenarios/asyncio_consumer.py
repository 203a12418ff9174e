"""AIOConsumer: polls, commits, coroutines as callbacks, cancellation, several tasks, close."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.aio_client import AIOClient
from integration_tests.parity.lab import PATIENCE, Lab, partitions
from integration_tests.parity.scenarios import scenario
from integration_tests.parity.scenarios.polling import steady_messages


def _runs(program: Callable[[Lab], Awaitable[None]]) -> Callable[[Lab], None]:
    """Make a scenario of a coroutine."""

    @wraps(program)
    def run(lab: Lab) -> None:
        asyncio.run(program(lab))  # type: ignore[arg-type] # a coroutine function's

    return run


async def _nothing(*_: object) -> None:
    """Be called, no more."""


def _callbacks() -> dict[str, Any]:
    return {"on_assign": _nothing, "on_revoke": _nothing, "on_lost": _nothing}


async def _read(lab: Lab, topic: str, count: int, **settings: Any) -> AIOClient:
    consumer = lab.aio_consumer(**settings)
    await consumer.subscribe([topic], **_callbacks())
    await consumer.read(count)
    return consumer


@scenario(seconds=20)
@_runs
async def aio_polls_commits_and_closes(lab: Lab) -> None:
    """The loop of an asyncio service: poll, commit, close; callbacks are coroutines."""
    topic = lab.topic(2, messages=5)
    consumer = await _read(lab, topic, 10, enable_auto_commit=False, on_commit=_nothing)
    await consumer.commit(asynchronous=False)
    await consumer.commit(offsets=partitions(topic, 3))
    await consumer.poll(0.3)
    await consumer.close()
    lab.note_members(0)


@scenario(seconds=20)
@_runs
async def aio_consumes_batches(lab: Lab) -> None:
    """Consume returns batches, and auto commit's last commit is made by close."""
    topic = lab.topic(messages=50)
    consumer = lab.aio_consumer()
    await consumer.subscribe([topic], **_callbacks())
    await consumer.read(50, batch=20)
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_batches_are_not_cut_short_by_commits(lab: Lab) -> None:
    """Consume returns fewer messages than it was asked for after its timeout only."""
    topic = lab.topic()
    consumer = lab.aio_consumer(enable_auto_commit=False, on_commit=_nothing)
    with steady_messages(lab, topic):
        await consumer.raw.subscribe([topic])
        await consumer.raw.consume(1, PATIENCE)
        early = 0
        for _ in range(5):
            await consumer.raw.commit(offsets=partitions(topic, 1))
            began = time.monotonic()
            await consumer.raw.consume(100_000, 0.3)
            early += time.monotonic() - began < 0.29
    lab.note(f"{early} of 5 calls return early")
    await consumer.raw.close()


@scenario(seconds=20)
@_runs
async def aio_in_async_with(lab: Lab) -> None:
    """`async with` closes."""
    topic = lab.topic(messages=5)
    async with lab.aio_consumer() as consumer:
        await consumer.subscribe([topic], **_callbacks())
        await consumer.read(5)
    lab.note_members(0)


@scenario(seconds=20)
@_runs
async def aio_methods(lab: Lab) -> None:
    """Each of the methods is awaited, with the arguments and results of the synchronous consumer."""
    topic = lab.topic(2, messages=5)
    consumer = await _read(lab, topic, 10, enable_auto_commit=False, enable_auto_offset_store=False)
    both = partitions(topic, -1001, -1001)
    await consumer.store_offsets(offsets=partitions(topic, 2, 3))
    await consumer.commit(asynchronous=False)
    await consumer.committed(both, timeout=10)
    await consumer.position(both)
    await consumer.pause(both[:1])
    await consumer.resume(both[:1])
    await consumer.seek(TopicPartition(topic, 0, 4))
    await consumer.read(1)
    await consumer.get_watermark_offsets(both[0], timeout=10)
    await consumer.list_topics(topic, timeout=10)
    await consumer.offsets_for_times(partitions(topic, 1), timeout=10)
    await consumer.consumer_group_metadata()
    await consumer.unsubscribe()
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_methods_after_close(lab: Lab) -> None:
    """A closed consumer says so; a second close."""
    topic = lab.topic(messages=1)
    consumer = await _read(lab, topic, 1)
    await consumer.close()
    await consumer.attempt("poll", 0.1)
    await consumer.attempt("commit")
    await consumer.attempt("subscribe", [topic])
    await consumer.attempt("assignment")
    await consumer.attempt("close")


@scenario(seconds=20)
@_runs
async def aio_callbacks_await_methods(lab: Lab) -> None:
    """A rebalance callback awaits the consumer's own methods."""
    topic = lab.topic(messages=5)
    consumer = lab.aio_consumer(enable_auto_commit=False)

    async def on_assign(client: AIOClient, owned: list[TopicPartition]) -> None:
        await client.attempt("committed", owned, timeout=10)
        await client.attempt("assign", [TopicPartition(topic, 0, 2)])

    async def on_revoke(client: AIOClient, _owned: list[TopicPartition]) -> None:
        await client.attempt("commit", offsets=partitions(topic, 4), asynchronous=False)

    await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    await consumer.read(3)
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_callback_that_raises(lab: Lab) -> None:
    """An exception of on_assign propagates from poll, once, and messages follow."""
    topic = lab.topic(messages=5)
    consumer = lab.aio_consumer()

    async def on_assign(_client: AIOClient, _owned: list[TopicPartition]) -> None:
        raise ValueError("on purpose")

    await consumer.subscribe([topic], on_assign=on_assign)
    for _ in range(100):
        try:
            if await consumer.poll(0.1) is not None:
                break
        except ValueError:
            lab.note("poll raises")
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_polls_that_time_out(lab: Lab) -> None:
    """asyncio.wait_for cancels polls while there is nothing; once those have ended, nothing is lost."""
    topic = lab.topic(messages=5)
    consumer = await _read(lab, topic, 5)
    for _ in range(3):
        try:
            await asyncio.wait_for(consumer.raw.poll(0.4), 0.1)
        except TimeoutError:
            lab.note("timed out")
        await asyncio.sleep(0.6)
    lab.produce(topic, 5)
    await consumer.read(5)
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_consume_that_times_out(lab: Lab) -> None:
    """asyncio.wait_for cancels a consume while there is nothing; once it has ended, nothing is lost."""
    topic = lab.topic(messages=5)
    consumer = await _read(lab, topic, 5)
    try:
        await asyncio.wait_for(consumer.raw.consume(10, 0.4), 0.1)
    except TimeoutError:
        lab.note("timed out")
    await asyncio.sleep(0.6)
    lab.produce(topic, 5)
    await consumer.read(5, batch=5)
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_message_after_a_cancelled_poll(lab: Lab) -> None:
    """A message that comes after a poll was cancelled, and before its time was over."""
    topic = lab.topic(messages=5)
    consumer = await _read(lab, topic, 5)
    try:
        await asyncio.wait_for(consumer.raw.poll(3), 0.2)
    except TimeoutError:
        lab.note("timed out")
    lab.produce(topic, 1)
    await asyncio.sleep(0.5)
    lab.produce(topic, 2)
    await consumer.until(lambda: consumer.messages[-1].offset() == 7, "the last message")
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_cancelled_join(lab: Lab) -> None:
    """Polls cancelled while the member joins: it joins nevertheless, and reads everything."""
    topic = lab.topic(2)
    consumer = lab.aio_consumer()
    await consumer.subscribe([topic], **_callbacks())
    for _ in range(5):
        try:
            await asyncio.wait_for(consumer.raw.poll(0.05), 0.01)
        except TimeoutError:
            await asyncio.sleep(0.1)
    await consumer.poll(0.5)
    lab.produce(topic, 5, 0)
    lab.produce(topic, 5, 1)
    await consumer.read(10)
    await consumer.close()


@scenario(breaks_kafka=True)
@_runs
async def aio_cancelled_commit(lab: Lab) -> None:
    """A synchronous commit that is cancelled while the broker handles it is made nevertheless."""
    link = lab.link
    topic = lab.topic(messages=5)
    consumer = await _read(lab, topic, 5, enable_auto_commit=False)
    link.delay(0.5)  # so that the commit takes a second
    task = asyncio.create_task(consumer.raw.commit(offsets=partitions(topic, 5), asynchronous=False))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    link.restore()
    lab.note(f"cancelled: {task.cancelled()}")
    await asyncio.sleep(0.5)
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_commits_beside_a_task_that_polls(lab: Lab) -> None:
    """One task polls, another commits what it has processed."""
    topic = lab.topic(messages=20)
    consumer = lab.aio_consumer(enable_auto_commit=False)
    await consumer.subscribe([topic])
    queue: asyncio.Queue[Any] = asyncio.Queue()

    async def poll() -> None:
        for _ in range(200):
            message = await consumer.raw.poll(0.05)
            if message is not None:
                await queue.put(message)
                if message.offset() == 19:
                    return
            await asyncio.sleep(0.002)

    task = asyncio.create_task(poll())
    for _ in range(20):
        await consumer.raw.commit(message=await queue.get(), asynchronous=False)
    await task
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_two_tasks_that_poll(lab: Lab) -> None:
    """Two tasks that poll share the messages: each is returned once."""
    topic = lab.topic(messages=40)
    consumer = lab.aio_consumer()
    await consumer.subscribe([topic])
    offsets: list[int] = []

    async def poll() -> None:
        while len(offsets) < 40:
            message = await consumer.raw.poll(0.1)
            if message is not None:
                offsets.append(message.offset())

    await asyncio.gather(poll(), poll())
    lab.note(f"messages {len(set(offsets))} of {len(offsets)}")
    await consumer.close()


@scenario(seconds=20)
@_runs
async def aio_closes_while_a_task_polls(lab: Lab) -> None:
    """Close beside a task in poll: the task ends, what was returned is committed, the member is gone."""
    topic = lab.topic(messages=5)
    consumer = await _read(lab, topic, 5)

    async def poll() -> None:
        while True:
            await consumer.raw.poll(0.2)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(poll())
    await asyncio.sleep(0.3)
    await consumer.close()
    ended = (await asyncio.gather(task, return_exceptions=True))[0]
    lab.note(f"the task ends by {type(ended).__name__}")
    lab.note_members(0)


@scenario(seconds=20)
@_runs
async def aio_cancelled_service(lab: Lab) -> None:
    """A service's task is cancelled, and closes its consumer in finally."""
    topic = lab.topic(messages=5)
    reading = asyncio.Event()

    async def serve() -> None:
        consumer = lab.aio_consumer()
        await consumer.subscribe([topic], **_callbacks())
        try:
            await consumer.read(5)
            reading.set()
            while True:
                await consumer.raw.poll(0.3)
        finally:
            await consumer.close()

    task = asyncio.create_task(serve())
    await reading.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    lab.note(f"cancelled: {task.cancelled()}")
    lab.note_members(0)


@scenario(seconds=20)
@_runs
async def aio_two_members(lab: Lab) -> None:
    """Two consumers in one event loop share a topic."""
    topic = lab.topic(2)
    consumers = [lab.aio_consumer(enable_auto_commit=False) for _ in range(2)]
    counts = [0, 0]

    async def serve(number: int) -> None:
        await consumers[number].raw.subscribe([topic])
        while sum(counts) < 20:
            counts[number] += await consumers[number].raw.poll(0.1) is not None
        await consumers[number].raw.close()

    tasks = [asyncio.create_task(serve(number)) for number in range(2)]
    for _ in range(150):
        if [len(await consumer.raw.assignment()) for consumer in consumers] == [1, 1]:
            break
        await asyncio.sleep(0.1)
    lab.produce(topic, 10, 0)
    lab.produce(topic, 10, 1)
    await asyncio.gather(*tasks)
    lab.note(f"messages {counts}")


@scenario(seconds=20)
@_runs
async def aio_event_loop_is_free_meanwhile(lab: Lab) -> None:
    """While poll waits, other tasks run."""
    topic = lab.topic(messages=1)
    consumer = await _read(lab, topic, 1)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    task = asyncio.create_task(tick())
    await consumer.poll(1)
    task.cancel()
    lab.note(f"ran: {ticks > 10}")
    await consumer.close()
