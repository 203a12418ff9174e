"""One thread polls, others commit, query, pause and close; worker pools; changing threads."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from confluent_kafka import Message, TopicPartition

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

_PAUSE = 0.02
"""Seconds between two polls, without which the original's other threads may wait forever."""


def _polling(lab: Lab, consumer: Client, stop: threading.Event, *, pause: float = _PAUSE) -> threading.Thread:
    """Have another thread poll until the event is set."""

    def loop() -> None:
        while not stop.is_set():
            consumer.poll(0.05)
            if pause:
                stop.wait(pause)

    return lab.spawn("poller", loop)


def _beside(lab: Lab, program: Callable[[Client, str], None], **settings: Any) -> None:
    """Run a program on the main thread while another polls 20 messages and goes on polling."""
    topic = lab.topic(2, messages=10)
    consumer = lab.consumer(enable_auto_commit=False, **settings)
    consumer.subscribe([topic])
    stop = threading.Event()
    thread = _polling(lab, consumer, stop)
    lab.wait(lambda: len(consumer.messages) == 20, "20 messages")
    program(consumer, topic)
    stop.set()
    thread.join()
    consumer.close()


@scenario(seconds=15)
def commit_beside_a_polling_thread(lab: Lab) -> None:
    """Another thread may commit while one polls, in each way."""

    def program(consumer: Client, topic: str) -> None:
        consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)
        # Before the asynchronous one: what that has committed already has no offset in the result.
        consumer.attempt("commit", asynchronous=False)
        last = max(consumer.messages, key=lambda message: (message.partition(), message.offset()))
        consumer.attempt("commit", message=last, asynchronous=True)

    _beside(lab, program)


@scenario(seconds=10)
def commit_beside_a_thread_that_polls_without_a_pause(lab: Lab) -> None:
    """A thread that polls without a pause does not keep others from committing."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    stop = threading.Event()
    thread = _polling(lab, consumer, stop, pause=0)
    lab.wait(lambda: len(consumer.messages) == 10, "10 messages")
    for offset in range(1, 11):
        consumer.attempt("commit", offsets=partitions(topic, offset), asynchronous=False)
    stop.set()
    thread.join()
    consumer.close()


@scenario(seconds=15)
def questions_beside_a_polling_thread(lab: Lab) -> None:
    """Position, committed, assignment, watermarks, topics and times answer while another thread polls."""

    def program(consumer: Client, topic: str) -> None:
        both = partitions(topic, -1001, -1001)
        consumer.attempt("position", both)
        consumer.attempt("committed", both, timeout=10)
        consumer.attempt("assignment")
        consumer.attempt("get_watermark_offsets", both[0], timeout=10)
        consumer.attempt("list_topics", topic, timeout=10)
        consumer.attempt("offsets_for_times", partitions(topic, 1, 1), timeout=10)
        consumer.attempt("memberid")
        consumer.attempt("consumer_group_metadata")

    _beside(lab, program)


@scenario(seconds=15)
def store_offsets_beside_a_polling_thread(lab: Lab) -> None:
    """Offsets stored by another thread are committed."""

    def program(consumer: Client, topic: str) -> None:
        consumer.attempt("store_offsets", offsets=partitions(topic, 4, 6))
        consumer.attempt("commit", asynchronous=False)

    _beside(lab, program, enable_auto_offset_store=False)


@scenario(seconds=15)
def pause_and_resume_beside_a_polling_thread(lab: Lab) -> None:
    """A partition that another thread pauses is silent until it is resumed."""

    def program(consumer: Client, topic: str) -> None:
        consumer.pause(partitions(topic, -1001)[:1])
        lab.produce(topic, 3, 0)
        lab.produce(topic, 3, 1)
        lab.wait(lambda: len(consumer.messages) == 23, "the other partition's messages")
        consumer.resume(partitions(topic, -1001)[:1])
        lab.wait(lambda: len(consumer.messages) == 26, "all messages")

    _beside(lab, program)


@scenario(seconds=15)
def seek_beside_a_polling_thread(lab: Lab) -> None:
    """A seek from another thread than the polling one."""

    def program(consumer: Client, topic: str) -> None:
        consumer.attempt("seek", TopicPartition(topic, 0, 7))
        lab.wait(lambda: len(consumer.messages) == 23, "messages again", seconds=3)

    _beside(lab, program)


@scenario(seconds=20)
def subscribe_beside_a_polling_thread(lab: Lab) -> None:
    """Another thread subscribes to one more topic while one polls, and that goes on with both."""
    more = lab.topic(messages=5, name="more")

    def program(consumer: Client, topic: str) -> None:
        consumer.commit(asynchronous=False)
        consumer.subscribe([topic, more])
        lab.wait(lambda: len(consumer.messages) == 25, "messages of both")

    _beside(lab, program)


@scenario(seconds=15)
def a_worker_pool_commits_each_message(lab: Lab) -> None:
    """Workers commit synchronously while the main thread polls; the last stored offset is the highest."""
    topic = lab.topic(4, messages=25)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    locks = [threading.Lock() for _ in range(4)]
    pause = threading.Event()

    def work(message: Message) -> None:
        partition = message.partition()
        assert partition is not None
        with locks[partition]:
            consumer.raw.commit(message=message, asynchronous=False)

    with ThreadPoolExecutor(4) as pool:
        futures: list[Future[None]] = []
        while len(futures) < 100:
            message = consumer.poll(0.05)
            if message is not None:
                futures.append(pool.submit(work, message))
            pause.wait(0.002)
        lab.wait(lambda: all(future.done() for future in futures), "all are done")
        lab.note(f"failed {sum(future.exception() is not None for future in futures)}")
    consumer.commit(offsets=partitions(topic, 25, 25, 25, 25), asynchronous=False)
    consumer.close()


@scenario(seconds=15)
def a_consumer_made_in_another_thread(lab: Lab) -> None:
    """A consumer that one thread has made and subscribed is polled, committed and closed by another."""
    topic = lab.topic(messages=10)
    made: list[Client] = []

    def make() -> None:
        consumer = lab.consumer(enable_auto_commit=False)
        consumer.subscribe([topic], **callbacks())
        made.append(consumer)

    lab.spawn("maker", make).join()
    consumer = made[0]
    consumer.read(10)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=15)
def a_consumer_that_changes_threads(lab: Lab) -> None:
    """Threads that take turns in polling read everything once."""
    topic = lab.topic(messages=30)
    consumer = lab.consumer()
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    lab.spawn("second", lambda: consumer.read(10)).join()
    lab.spawn("third", lambda: consumer.read(10, batch=5)).join()
    consumer.close()


@scenario(seconds=15)
def close_beside_a_polling_thread(lab: Lab) -> None:
    """Close from another thread ends the polls: what was returned is committed, and nothing is lost."""
    topic = lab.topic(messages=10)
    for _ in range(3):
        consumer = lab.consumer()
        consumer.subscribe([topic])
        thread = _polling(lab, consumer, threading.Event())
        lab.wait(lambda consumer=consumer: len(consumer.messages) == 10, "10 messages")  # type: ignore[misc]
        consumer.close()
        thread.join(10)
        lab.note_members(0)
        lab.produce(topic, 10)


@scenario(seconds=15)
def close_beside_a_thread_that_waits_in_poll(lab: Lab) -> None:
    """Close while another thread is inside a long poll."""
    topic = lab.topic(messages=1)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(1)
    inside = threading.Event()

    def poll() -> None:
        inside.set()
        consumer.poll(3.0)

    thread = lab.spawn("poller", poll)
    inside.wait()
    consumer.close()
    thread.join(10)
    consumer.attempt("poll", 0)


@scenario(seconds=15)
def close_beside_a_thread_that_waits_in_consume(lab: Lab) -> None:
    """Close during another thread's consume: the messages it fetched are returned, or not committed."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(5)
    got: list[int] = []
    inside = threading.Event()

    def consume() -> None:
        inside.set()
        try:
            got.extend(message.offset() or 0 for message in consumer.raw.consume(1000, 2.0))
        except RuntimeError:
            lab.note("consume raises")

    thread = lab.spawn("consumer", consume)
    inside.wait()
    lab.produce(topic, 7)
    consumer.attempt("close")
    thread.join(10)
    committed = lab.stored(topic)[0]
    lab.note(f"lost: {[offset for offset in range(5, committed) if offset not in got]}")


@scenario(seconds=15)
def close_beside_a_synchronous_commit(lab: Lab) -> None:
    """Close during another thread's loop of synchronous commits: the loop ends by an exception."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(5)
    committed = threading.Event()

    def commit() -> None:
        while True:
            consumer.raw.commit(offsets=partitions(topic, 5), asynchronous=False)
            committed.set()
            pause.wait(_PAUSE)

    pause = threading.Event()
    thread = lab.spawn("committer", commit)
    committed.wait(10)
    consumer.close()
    thread.join(10)
    lab.note(f"alive: {thread.is_alive()}")


@scenario(seconds=25, breaks_kafka=True)
def close_beside_a_synchronous_commit_that_is_not_answered(lab: Lab) -> None:
    """The commit of another thread ends with the consumer, not with its own time."""
    assert lab.kafka.running
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(5)
    lab.link.silence()
    commits = threading.Event()

    def commit() -> None:
        commits.set()
        consumer.raw.commit(offsets=partitions(topic, 5), asynchronous=False)

    thread = lab.spawn("committer", commit)
    commits.wait()
    consumer.idle(0.5)
    consumer.close()
    thread.join(5)
    lab.note(f"alive: {thread.is_alive()}")
    lab.link.restore()


@scenario(seconds=15)
def two_threads_close(lab: Lab) -> None:
    """Both calls of close return, and the consumer is closed once."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(5)
    lab.spawn("closer", consumer.close).join()
    consumer.close()
    lab.note_members(0)


@scenario(seconds=15)
def two_threads_poll(lab: Lab) -> None:
    """Two threads poll one consumer."""
    topic = lab.topic(2)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.until_assigned(2)
    lab.produce(topic, 50, 0)
    lab.produce(topic, 50, 1)
    seen: list[tuple[int | None, int | None]] = []
    errors: set[str] = set()
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            try:
                message = consumer.raw.poll(0.1)
            except RuntimeError as error:
                errors.add(type(error).__name__)
                stop.wait(0.01)
                continue
            if message is not None and message.error() is None:
                seen.append((message.partition(), message.offset()))

    threads = [lab.spawn(name, poll) for name in ("first", "second")]
    lab.wait(lambda: len(seen) >= 100, "all messages")
    stop.set()
    for thread in threads:
        thread.join()
    lab.note(f"messages {len(set(seen))}, errors {sorted(errors)}")
    consumer.close()


@scenario(seconds=15)
def a_callback_runs_in_the_thread_that_polls(lab: Lab) -> None:
    """Rebalance callbacks and on_commit run in the thread that polls."""
    topic = lab.topic(messages=3)
    names: list[str] = []

    def note(*_: object) -> None:
        names.append(threading.current_thread().name)

    consumer = lab.consumer(enable_auto_commit=False, on_commit=note)
    consumer.subscribe([topic], on_assign=note, on_revoke=note)
    stop = threading.Event()
    thread = _polling(lab, consumer, stop)
    lab.wait(lambda: len(consumer.messages) == 3, "messages")
    consumer.commit()
    lab.wait(lambda: len(names) == 2, "on_commit")
    stop.set()
    thread.join()
    consumer.close()
    lab.note(f"threads {[name.replace('MainThread', 'main') for name in names]}")


@scenario(seconds=20)
def many_consumers_in_one_process(lab: Lab) -> None:
    """Six members in threads of one process have a partition each, and read everything once."""
    topic = lab.topic(6)
    consumers = [lab.consumer(enable_auto_commit=False) for _ in range(6)]
    seen: list[list[Message]] = [[] for _ in consumers]
    stop = threading.Event()
    threads = []
    for number, consumer in enumerate(consumers):
        consumer.subscribe([topic])

        def loop(consumer: Client = consumer, seen: list[Message] = seen[number]) -> None:
            while not stop.is_set():
                message = consumer.raw.poll(0.05)
                if message is not None:
                    seen.append(message)
                stop.wait(_PAUSE)

        threads.append(lab.spawn(f"member{number}", loop))
    lab.wait(lambda: all(len(consumer.raw.assignment()) == 1 for consumer in consumers), "one partition each")
    for partition in range(6):
        lab.produce(topic, 10, partition)
    lab.wait(lambda: sum(map(len, seen)) == 60, "all messages")
    lab.note(f"each {[len(messages) for messages in seen]}")
    stop.set()
    for thread in threads:
        thread.join()


@scenario(seconds=20)
def a_rebalance_while_workers_are_busy(lab: Lab) -> None:
    """on_revoke waits for a worker, which commits meanwhile: its commit is accepted."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    revoking, stop = threading.Event(), threading.Event()

    def on_revoke(_consumer: object, _owned: object) -> None:
        if not revoking.is_set():
            revoking.set()
            worker.join(2)

    def work() -> None:
        revoking.wait(10)
        consumer.attempt("commit", offsets=partitions(topic, 5, 5), asynchronous=False)

    consumer.raw.subscribe([topic], on_revoke=on_revoke)
    consumer.read(10)
    worker = lab.spawn("worker", work)
    other = lab.other_member(enable_auto_commit=False)

    def second() -> None:
        other.raw.subscribe([topic])
        while not stop.is_set():
            other.raw.poll(0.1)

    joining = lab.spawn("second", second)
    deadline = time.monotonic() + 15
    while not (revoking.is_set() and len(consumer.raw.assignment()) == 1) and time.monotonic() < deadline:
        consumer.raw.poll(0.05)
        stop.wait(_PAUSE)
    lab.note(f"stored {lab.stored(topic, partitions=2)}")
    stop.set()
    joining.join()
