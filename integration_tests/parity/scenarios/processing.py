"""Slow applications: long processing, slow callbacks, bursts, and stopped processes."""

import os
import subprocess
import threading
import time
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

_INTERVAL = 6.0
"""The least max.poll.interval.ms that goes with the least session.timeout.ms, in seconds."""


def _consumer(lab: Lab, topic: str, count: int, **settings: Any) -> Client:
    consumer = lab.consumer(max_poll_interval_ms=int(_INTERVAL * 1000), **settings)
    consumer.subscribe([topic], **callbacks())
    consumer.read(count)
    return consumer


def _process(seconds: float) -> None:
    """Be busy with a message, as far as a consumer can see."""
    time.sleep(seconds)


@scenario(seconds=40)
def processing_below_the_poll_interval(lab: Lab) -> None:
    """Processing that takes half of max.poll.interval.ms: nothing is revoked, and nothing comes twice."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 2, enable_auto_commit=False)
    _process(_INTERVAL / 2)
    consumer.read(2)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def processing_beyond_the_poll_interval_then_poll(lab: Lab) -> None:
    """Poll returns the error, the partitions are lost, and uncommitted messages are consumed again."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 4, enable_auto_commit=False)
    _process(_INTERVAL + 2)
    consumer.read(4)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def processing_beyond_the_poll_interval_then_commit(lab: Lab) -> None:
    """A commit after the interval was exceeded fails; after the next polls one works."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 4, enable_auto_commit=False)
    _process(_INTERVAL + 2)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 4), asynchronous=False)
    consumer.read(4)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def processing_beyond_the_poll_interval_then_close(lab: Lab) -> None:
    """Close after the interval was exceeded."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 4, enable_auto_commit=False)
    _process(_INTERVAL + 2)
    consumer.attempt("close")
    lab.note_members(0)


@scenario(seconds=40)
def processing_beyond_the_poll_interval_with_auto_commit(lab: Lab) -> None:
    """Auto commit went on while the application was busy, so little comes again."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 4, auto_commit_interval_ms=300)
    _process(_INTERVAL + 2)
    consumer.until(lambda: consumer.revoked and consumer.raw.assignment(), "assigned again")
    lab.produce(topic, 2)
    consumer.until(lambda: consumer.messages[-1].offset() == 5, "the last message")
    consumer.close()


@scenario(seconds=40)
def another_member_takes_over_from_a_slow_one(lab: Lab) -> None:
    """While one member is busy beyond the interval, another gets its partitions; both go on afterwards."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(max_poll_interval_ms=int(_INTERVAL * 1000), enable_auto_commit=False)
    consumer.raw.subscribe([topic])
    lab.wait(lambda: consumer.raw.poll(0.1) is not None, "a message")
    other = lab.other_member(enable_auto_commit=False, max_poll_interval_ms=int(_INTERVAL * 1000))
    done = threading.Event()
    stop = threading.Event()

    def take_over() -> None:
        other.raw.subscribe([topic])
        while not stop.is_set():
            other.raw.poll(0.1)
            if len(other.raw.assignment()) == 2:
                done.set()

    thread = lab.spawn("other", take_over)
    lab.note(f"taken over: {done.wait(15)}")
    lab.wait(lambda: _polled(consumer) and len(consumer.raw.assignment()) == 1, "one each")
    lab.note("one each")
    stop.set()
    thread.join()
    consumer.raw.close()
    consumer.closed = True


def _polled(consumer: Client) -> bool:
    consumer.raw.poll(0.05)
    return True


@scenario(seconds=40)
def auto_commit_while_the_application_is_busy(lab: Lab) -> None:
    """Messages returned before a long processing are committed meanwhile, at the interval."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 4, auto_commit_interval_ms=300)
    _process(2)
    lab.note(f"stored {lab.stored(topic)}")
    consumer.close()


@scenario(seconds=40)
def a_slow_on_assign(lab: Lab) -> None:
    """on_assign takes its time, below every limit."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer()
    consumer.subscribe([topic], on_assign=lambda *_: _process(2))
    consumer.read(4)
    consumer.close()


@scenario(seconds=60)
def an_on_assign_beyond_the_poll_interval(lab: Lab) -> None:
    """on_assign loads state for longer than max.poll.interval.ms: messages come nevertheless."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer(max_poll_interval_ms=int(_INTERVAL * 1000), enable_auto_commit=False)
    consumer.subscribe([topic], on_assign=lambda *_: _process(_INTERVAL + 2))
    consumer.read(4, timeout=30)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


def _two_members_of_one_thread(lab: Lab) -> tuple[Client, Client]:
    """Return two members whose next polls assign a partition each; the first one's on_assign is slow."""
    topic = lab.topic(2)
    interval = int(_INTERVAL * 1000)
    slow, other = (lab.consumer(client_id=name, max_poll_interval_ms=interval) for name in ("a", "b"))

    def on_assign(_: Client, found: list[TopicPartition]) -> None:
        if len(found) == 1 and not other.errors:
            _process(_INTERVAL + 1.5)

    slow.subscribe([topic], **{**callbacks(), "on_assign": on_assign})
    slow.until_assigned(2)
    other.subscribe([topic], **callbacks())
    slow.until(lambda: slow.revoked, "revoked", pause=0.01)
    lab.wait(lambda: lab.group_is_stable() and lab.members() == 2, "both have joined")
    return slow, other


def _until_one_each(lab: Lab, one: Client, other: Client) -> None:
    both = one, other
    lab.together(*both, until=lambda: [len(c.raw.assignment()) for c in both] == [1, 1], what="one each")


@scenario(seconds=60)
def a_slow_on_assign_before_another_member_of_the_thread_is_assigned(lab: Lab) -> None:
    """max.poll.interval.ms begins with the first assignment: the other member stays."""
    slow, other = _two_members_of_one_thread(lab)
    slow.until(slow.raw.assignment, "assigned")
    _until_one_each(lab, slow, other)
    slow.idle(1.0)
    slow.close()
    other.close()


@scenario(seconds=60)
def a_slow_on_assign_after_another_member_of_the_thread_was_assigned(lab: Lab) -> None:
    """The other member exceeds max.poll.interval.ms, and the slow one gets its partition."""
    slow, other = _two_members_of_one_thread(lab)
    other.until_assigned(1)
    slow.until(lambda: len(slow.raw.assignment()) == 2, "the other has left")
    _until_one_each(lab, slow, other)
    slow.close()
    other.close()


@scenario(seconds=60)
def a_member_that_joins_during_an_on_assign_beyond_the_poll_interval(lab: Lab) -> None:
    """The coordinator waits for the slow member for max.poll.interval.ms, and then removes it."""
    topic = lab.topic(2)
    interval = int(_INTERVAL * 1000)
    slow, other = (lab.consumer(client_id=name, max_poll_interval_ms=interval) for name in ("a", "b"))

    def on_assign(_: Client, __: list[TopicPartition]) -> None:
        if "b" not in joined:
            joined.append("b")
            other.subscribe([topic], **callbacks())
            other.until_assigned(2)
            _process(0.7)  # longer than a heartbeat's interval: the slow member learns of its removal

    joined: list[str] = []
    slow.subscribe([topic], **{**callbacks(), "on_assign": on_assign})
    slow.until(lambda: slow.revoked, "lost")
    _until_one_each(lab, slow, other)
    slow.close()
    other.close()


@scenario(seconds=60)
def an_on_commit_beyond_the_poll_interval(lab: Lab) -> None:
    """In a poll that waits, the time of a callback does not count towards max.poll.interval.ms."""
    _commit_with_a_slow_on_commit(lab, 0.1)


@scenario(seconds=60)
def an_on_commit_beyond_the_poll_interval_in_polls_that_do_not_wait(lab: Lab) -> None:
    """The same with a timeout of 0, where librdkafka counts it."""
    _commit_with_a_slow_on_commit(lab, 0.0)


def _commit_with_a_slow_on_commit(lab: Lab, timeout: float) -> None:
    topic = lab.topic(messages=4)
    done = threading.Event()

    def on_commit(*_: object) -> None:
        _process(_INTERVAL + 1.5)
        done.set()

    consumer = _consumer(lab, topic, 4, enable_auto_commit=False, on_commit=on_commit)
    consumer.commit()
    lab.wait(lambda: consumer.poll(timeout) is None and done.is_set(), "on_commit has returned")
    consumer.idle(2.0)
    consumer.close()


@scenario(seconds=60)
def the_first_poll_after_max_poll_interval(lab: Lab) -> None:
    """The first poll may come later than max.poll.interval.ms after subscribe, as while loading state."""
    topic = lab.topic(2, messages=10)
    consumer = lab.consumer(max_poll_interval_ms=int(_INTERVAL * 1000), enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    lab.wait(lab.group_is_stable, "the group is stable")
    time.sleep(_INTERVAL + 1.5)
    lab.note(f"members {lab.members()}")
    consumer.read(20)
    consumer.close()


@scenario(seconds=40)
def an_on_assign_beyond_the_session(lab: Lab) -> None:
    """on_assign takes longer than session.timeout.ms: heartbeats go on, and the member stays."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], on_assign=lambda *_: _process(8), on_lost=lambda *_: None)
    consumer.read(4)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def a_slow_on_revoke_holds_the_partitions(lab: Lab) -> None:
    """No other member gets the partitions until on_revoke has returned; nothing is read twice."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    revoking = threading.Event()
    early: list[bool] = []

    def on_revoke(raw: Any, _owned: list[TopicPartition]) -> None:
        if not revoking.is_set():
            revoking.set()
            _process(2)
            early.append(bool(other.messages))
            raw.commit(asynchronous=False)

    consumer.raw.subscribe([topic], on_revoke=on_revoke)
    consumer.read(10)
    other = lab.other_member(enable_auto_commit=False)
    stop = threading.Event()
    seen: list[object] = []

    def second() -> None:
        other.raw.subscribe([topic])
        while not stop.is_set():
            message = other.raw.poll(0.1)
            if message is not None:
                seen.append(message)

    thread = lab.spawn("other", second)
    lab.wait(
        lambda: _polled(consumer) and revoking.is_set() and len(consumer.raw.assignment()) == 1, "one each"
    )
    stop.set()
    thread.join()
    lab.note(f"read early {early}, read twice {len(seen)}")
    other.raw.close()
    other.closed = True
    consumer.raw.close()
    consumer.closed = True


@scenario(seconds=40)
def bursts_of_messages(lab: Lab) -> None:
    """Bursts with silence between: each message once, in order, and committed."""
    topic = lab.topic(2)
    consumer = lab.consumer(auto_commit_interval_ms=200)
    consumer.subscribe([topic], **callbacks())
    consumer.until_assigned(2)
    for _ in range(4):
        lab.produce(topic, 500, 0)
        lab.produce(topic, 500, 1)
        consumer.read(1000, batch=300)
        consumer.idle(0.3)
    consumer.close()


@scenario(seconds=40)
def paused_while_a_worker_processes(lab: Lab) -> None:
    """The pattern for long jobs: pause, poll on while a worker is busy, resume; longer than the interval."""
    topic = lab.topic(messages=4)
    consumer = _consumer(lab, topic, 1, enable_auto_commit=False)
    consumer.pause(partitions(topic, -1001))
    worker = lab.spawn("worker", lambda: _process(_INTERVAL + 1.5))
    consumer.until(lambda: not worker.is_alive(), "the worker is done")
    consumer.commit(message=consumer.messages[0], asynchronous=False)
    consumer.resume(partitions(topic, -1001))
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def each_message_is_committed_after_slow_processing(lab: Lab) -> None:
    """At-least-once as it is written by the book: poll, process, commit."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    for _ in range(5):
        (message,) = consumer.read(1)
        _process(0.2)
        consumer.commit(message=message, asynchronous=False)
    consumer.close()


def _stand_still(seconds: float) -> None:
    """Have this whole process stopped for a while."""
    program = f"kill -STOP {os.getpid()}; sleep {seconds}; kill -CONT {os.getpid()}"
    stopper = subprocess.Popen(["sh", "-c", program])  # noqa: S607 - a shell's own words
    stopper.wait(30)


@scenario(seconds=40)
def a_process_that_stands_still_below_its_session(lab: Lab) -> None:
    """A process that is stopped for less than its session goes on as if nothing had been."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False, session_timeout_ms=10_000)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    _stand_still(3)
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def a_process_that_stands_still_beyond_its_session_then_polls(lab: Lab) -> None:
    """The partitions are lost, and what was not committed comes again."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.read(2)
    _stand_still(9)
    consumer.read(2)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def a_process_that_stands_still_beyond_its_session_then_commits(lab: Lab) -> None:
    """A commit as a dead member fails, and the next polls bring the member back."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    _stand_still(9)
    consumer.attempt("commit", offsets=partitions(topic, 5), asynchronous=False)
    consumer.until(lambda: consumer.revoked and consumer.raw.assignment(), "assigned again")
    consumer.attempt("commit", offsets=partitions(topic, 5), asynchronous=False)
    consumer.close()


@scenario(seconds=40)
def a_process_that_stands_still_beyond_its_session_then_closes(lab: Lab) -> None:
    """Close of a member that the group has forgotten."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    _stand_still(9)
    consumer.attempt("close")
    lab.note_members(0)
