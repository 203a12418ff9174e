"""Results of poll and consume: errors of partitions, batches beside commits, long callbacks."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client
from integration_tests.parity.lab import PATIENCE, Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


@scenario()
def a_replay_to_the_end_reads_it_all(lab: Lab) -> None:
    """A seek discards a fetched end of the partition: the next end is that of the replay."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.seek(TopicPartition(topic, 0, 0))
    consumer.read(10)
    consumer.idle(0.5)
    consumer.close()


@scenario()
def nothing_comes_of_a_partition_that_is_paused(lab: Lab) -> None:
    """Its end neither, until it is resumed."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(4)
    consumer.until(lambda: consumer.errors, "the error about the end")
    consumer.close()


@scenario()
def nothing_comes_of_a_partition_that_was_unassigned(lab: Lab) -> None:
    """Its end neither."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(6)
    consumer.unassign()
    consumer.idle(0.5)
    consumer.close()


@scenario(seconds=90.0)
def a_callback_may_take_longer_than_the_poll_interval(lab: Lab) -> None:
    """Time inside poll, including its callbacks (such as loading state in on_assign), counts as polling."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(max_poll_interval_ms=6000, session_timeout_ms=6000)

    def on_assign(*_: object) -> None:
        time.sleep(8)

    consumer.subscribe([topic], **{**callbacks(), "on_assign": on_assign})
    consumer.read(10)
    consumer.close()


@contextmanager
def steady_messages(lab: Lab, topic: str) -> Iterator[None]:
    """Write a message every 5 ms."""
    stopped = threading.Event()

    def write() -> None:
        while not stopped.wait(0.005):
            lab.producer.produce(topic, b"0")
            lab.producer.poll(0)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        lab.producer.flush()


COMMITS: dict[str, tuple[dict[str, Any], Callable[[Any, Any], object]]] = {
    "asynchronous commits": ({"enable_auto_commit": False}, lambda consumer, _: consumer.commit()),
    "synchronous commits": (
        {"enable_auto_commit": False},
        lambda consumer, _: consumer.commit(asynchronous=False),
    ),
    "automatic commits": ({"auto_commit_interval_ms": 50}, lambda *_: None),
    "stored offsets": (
        {"auto_commit_interval_ms": 50, "enable_auto_offset_store": False},
        lambda consumer, message: consumer.store_offsets(message=message),
    ),
}
"""For each kind of commit, the settings, and the call with the last message of each batch."""


@scenario()
def batches_are_not_cut_short_by_commits(lab: Lab) -> None:
    """Consume returns fewer messages than it was asked for after its timeout only, whatever is committed."""
    topic = lab.topic()
    with steady_messages(lab, topic):
        for kind, (settings, commit) in COMMITS.items():
            config = lab.config(**settings, on_commit=lambda *_: None, stats_cb=lambda _: None)
            config |= {"group.id": f"{lab.group}.{kind}", "statistics.interval.ms": 50}
            consumer = lab.consumer_class(config)
            consumer.subscribe([topic])
            (last,) = consumer.consume(1, PATIENCE)
            early = 0
            for _ in range(5):
                commit(consumer, last)
                began = time.monotonic()
                *_, last = [last, *consumer.consume(100_000, 0.3)]
                early += time.monotonic() - began < 0.29
            lab.note(f"{kind}: {early} of 5 calls return early")
            consumer.close()


def _act_in_on_commit(lab: Lab, act: Callable[[Client, str], object]) -> None:
    """Have on_commit act on the consumer within a consume, for which there are messages."""
    topic = lab.topic(messages=10)
    acted: list[object] = []

    def on_commit(*_: object) -> None:
        if not acted:
            acted.append(act(consumer, topic))

    consumer = lab.consumer(enable_auto_commit=False, on_commit=on_commit)
    consumer.subscribe([topic])
    consumer.read(10, batch=10)
    lab.produce(topic, 5)
    time.sleep(0.5)  # until they are fetched
    consumer.commit(offsets=partitions(topic, 1))
    consumer.consume(100, 2.0)
    consumer.consume(100, 0.5)
    consumer.close()


@scenario()
def on_commit_seeks_while_consume_has_messages(lab: Lab) -> None:
    """The batch continues at the new offset."""
    _act_in_on_commit(lab, lambda consumer, topic: consumer.seek(TopicPartition(topic, 0, 3)))


@scenario()
def on_commit_pauses_while_consume_has_messages(lab: Lab) -> None:
    """The batch has no message of the partition."""
    _act_in_on_commit(lab, lambda consumer, topic: consumer.pause([TopicPartition(topic, 0)]))


@scenario()
def on_commit_commits_while_consume_has_messages(lab: Lab) -> None:
    """A commit in on_commit is stored, and the batch is complete."""
    _act_in_on_commit(lab, lambda consumer, topic: consumer.commit(offsets=partitions(topic, 4)))
