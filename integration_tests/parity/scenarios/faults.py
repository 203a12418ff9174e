"""A broker that is unreachable, silent, slow or restarted while an application uses its consumer."""

import contextlib
import threading
from collections.abc import Callable

from confluent_kafka import KafkaException, TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


def _later(seconds: float, action: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


def _subscribed(lab: Lab, topic: str, count: int, **settings: object) -> Client:
    settings = {"enable_auto_commit": False, "session_timeout_ms": 20_000} | settings
    consumer = lab.consumer(**settings)
    consumer.subscribe([topic], **callbacks())
    consumer.read(count)
    return consumer


def _until_committed(consumer: Client, partition: TopicPartition) -> None:
    """Poll until a synchronous commit works."""

    def commit() -> bool:
        with contextlib.suppress(KafkaException):
            consumer.raw.commit(offsets=[partition], asynchronous=False)
            return True
        return False

    consumer.until(commit, "a commit works")


@scenario(breaks_kafka=True)
def a_synchronous_commit_waits_for_a_short_silence(lab: Lab) -> None:
    """A commit that meets a silence of two seconds is stored when that ends."""
    link = lab.link
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, 5)
    link.silence()
    timer = _later(2, link.restore)
    consumer.attempt("commit", asynchronous=False)
    timer.join()
    consumer.close()


@scenario(breaks_kafka=True)
def a_synchronous_commit_during_a_cut(lab: Lab) -> None:
    """A commit while connections are reset for two seconds."""
    link = lab.link
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, 5)
    link.cut()
    timer = _later(2, link.restore)
    with contextlib.suppress(KafkaException):
        consumer.raw.commit(asynchronous=False)
    timer.join()
    _until_committed(consumer, TopicPartition(topic, 0, 5))
    consumer.close()


@scenario(breaks_kafka=True)
def an_asynchronous_commit_during_a_silence(lab: Lab) -> None:
    """on_commit is called with the commit's success after a silence."""
    link = lab.link
    topic = lab.topic(messages=5)
    called = threading.Event()
    consumer = _subscribed(lab, topic, 5, on_commit=lambda *_: called.set())
    link.silence()
    consumer.commit(offsets=partitions(topic, 5))
    consumer.idle(2)
    link.restore()
    consumer.until(called.is_set, "on_commit")
    consumer.close()


@scenario(breaks_kafka=True)
def auto_commit_goes_on_after_a_cut(lab: Lab) -> None:
    """Nothing comes twice after a cut of two seconds, and what was returned is committed."""
    link = lab.link
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, 5, enable_auto_commit=True, auto_commit_interval_ms=300)
    link.cut()
    consumer.idle(2)
    link.restore()
    lab.produce(topic, 5)
    consumer.read(5)
    consumer.close()


@scenario(breaks_kafka=True)
def connections_that_are_reset_again_and_again(lab: Lab) -> None:
    """Five resets of all connections: each message once."""
    link = lab.link
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, 10)
    for _ in range(5):
        link.reset()
        lab.produce(topic, 10)
        consumer.read(10)
    _until_committed(consumer, TopicPartition(topic, 0, 60))
    consumer.close()


@scenario(seconds=90, breaks_kafka=True)
def a_session_that_ends_during_a_silence(lab: Lab) -> None:
    """Beyond the session the partitions are lost; what was not committed comes again, once."""
    link = lab.link
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, 5, session_timeout_ms=6000)
    consumer.commit(asynchronous=False)
    consumer.read(5)
    link.silence()
    consumer.until(lambda: consumer.revoked, "lost", timeout=12)
    consumer.idle(3)
    link.restore()
    consumer.until(lambda: len(consumer.messages) == 15, "assigned again")
    lab.produce(topic, 2)
    consumer.until(lambda: consumer.messages[-1].offset() == 11, "the last message")
    _until_committed(consumer, TopicPartition(topic, 0, 12))
    consumer.close()


@scenario(breaks_kafka=True)
def a_join_during_a_silence(lab: Lab) -> None:
    """A member that begins while nothing answers has its partitions once something does."""
    link = lab.link
    topic = lab.topic(messages=5)
    link.silence()
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.idle(3)
    link.restore()
    consumer.read(5)
    consumer.close()


@scenario(breaks_kafka=True)
def a_slow_link(lab: Lab) -> None:
    """With 200 ms more in each direction everything takes longer, and nothing else changes."""
    link = lab.link
    topic = lab.topic(messages=20)
    link.delay(0.2)
    consumer = _subscribed(lab, topic, 20, on_commit=record)
    consumer.commit(asynchronous=False)
    consumer.commit(offsets=partitions(topic, 15))
    consumer.attempt("committed", partitions(topic, -1001), timeout=10)
    consumer.attempt("get_watermark_offsets", TopicPartition(topic, 0), timeout=10)
    consumer.close()
    link.restore()


@scenario(breaks_kafka=True)
def questions_during_a_cut(lab: Lab) -> None:
    """Calls that query a broker time out; the others return."""
    link = lab.link
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, 5)
    link.cut()
    consumer.idle(0.5)
    consumer.attempt("position", partitions(topic, -1001))
    consumer.attempt("assignment")
    consumer.attempt("get_watermark_offsets", TopicPartition(topic, 0), cached=True)
    consumer.attempt("committed", partitions(topic, -1001), timeout=1)
    consumer.attempt("list_topics", timeout=1)
    consumer.attempt("offsets_for_times", partitions(topic, 1), timeout=1)
    consumer.attempt("pause", partitions(topic, -1001))
    consumer.attempt("resume", partitions(topic, -1001))
    link.restore()
    _until_committed(consumer, TopicPartition(topic, 0, 5))
    consumer.close()


@scenario(seconds=90, breaks_kafka=True)
def a_static_member_through_a_restart(lab: Lab) -> None:
    """A static member keeps its partitions through a broker's restart."""
    kafka = lab.kafka
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, 5, group_instance_id="one", session_timeout_ms=30_000)
    consumer.commit(asynchronous=False)
    kafka.kill()
    consumer.idle(1)
    starting = threading.Thread(target=kafka.start)
    starting.start()
    while starting.is_alive():
        consumer.idle(0.1)
    lab.produce(topic, 5)
    consumer.read(5)
    _until_committed(consumer, TopicPartition(topic, 0, 10))
    consumer.close()


@scenario(seconds=90, breaks_kafka=True)
def a_seek_and_a_pause_during_a_cut(lab: Lab) -> None:
    """A seek made while the broker is away holds when it is back."""
    link = lab.link
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, 10)
    link.cut()
    consumer.idle(1)
    consumer.seek(TopicPartition(topic, 0, 6))
    consumer.idle(1)
    link.restore()
    consumer.read(4)
    consumer.close()


@scenario(seconds=90, breaks_kafka=True)
def partitions_assigned_by_hand_through_a_cut(lab: Lab) -> None:
    """Without a group: each message once, and commits work again."""
    link = lab.link
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.assign(partitions(topic, 0))
    consumer.read(10)
    link.cut()
    consumer.idle(2)
    link.restore()
    lab.produce(topic, 5)
    consumer.read(5)
    _until_committed(consumer, TopicPartition(topic, 0, 15))
    consumer.close()
