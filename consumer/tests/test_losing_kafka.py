"""Losing the group, the coordinator or the whole broker, and coming back."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, TopicPartition

from groupwright.consumer import CommitError, Consumer
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]


@pytest.fixture(scope="module")
def fast_kafka() -> Iterator[LocalKafka]:
    """A broker that may be killed."""
    with LocalKafka() as kafka:
        yield kafka


@pytest.fixture
def fast(new_scene: Callable[[LocalKafka], "Scene"], fast_kafka: LocalKafka) -> "Scene":
    return new_scene(fast_kafka)


def subscribe(consumer: Consumer, topic: str) -> list[str]:
    """Subscribe, and return the list of what will be called."""
    called: list[str] = []
    consumer.subscribe(
        [topic],
        on_assign=lambda *_: called.append("assign"),
        on_revoke=lambda *_: called.append("revoke"),
        on_lost=lambda *_: called.append("lost"),
    )
    return called


def test_an_expelled_member_commits_nothing_and_hears_of_its_loss_by_that(scene: "Scene") -> None:
    """The coordinator's refusal may stand behind another partition's, as of a topic that does not exist."""
    topic = scene.topic(messages=10)
    consumer = scene.consumer(enable_auto_commit=False, heartbeat_interval_ms=44_000)
    called = subscribe(consumer, topic)
    scene.take(consumer, 4)
    scene.expel(consumer)

    with pytest.raises(CommitError) as caught:
        consumer.commit(
            offsets=[TopicPartition("absent", 0, 1), TopicPartition(topic, 0, 4)], asynchronous=False
        )
    assert caught.value.args[0].code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_MEMBER_ID}
    assert scene.committed(topic) == [-1001]
    messages = scene.poll_until(lambda: called == ["assign", "lost", "assign"], consumer, what="the loss")
    messages += scene.poll(consumer, 1)
    assert messages[0].offset() == 0


@pytest.mark.slow
def test_a_member_that_does_not_poll_is_told_so_and_joins_again(fast: "Scene") -> None:
    topic = fast.topic(messages=10)
    slow, other = fast.consumer(session_timeout_ms=6000, max_poll_interval_ms=6000), fast.consumer()
    called = subscribe(slow, topic)
    fast.take(slow, 3)
    other.subscribe([topic])
    fast.own(other, 1)
    assert slow.poll_age is not None
    assert slow.poll_age > 5.9

    message = slow.poll(PATIENCE)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._MAX_POLL_EXCEEDED
    assert "max.poll.interval.ms (6000)" in error.str()
    assert called == ["assign"]
    other.close()
    messages = fast.poll_until(lambda: called == ["assign", "lost", "assign"], slow)
    assert [message.error() for message in messages] == [None] * len(messages)


def test_a_frozen_coordinator_ends_the_session_and_a_thawed_one_begins_another(fast: "Scene") -> None:
    topic = fast.topic()
    consumer = fast.consumer(session_timeout_ms=6000)
    called = subscribe(consumer, topic)
    fast.own(consumer, 1)
    fast.kafka.pause()
    try:
        fast.poll_until(lambda: called[-1] == "lost", consumer, what="the loss")
    finally:
        fast.kafka.resume()
    fast.own(consumer, 1)

    assert called == ["assign", "lost", "assign"]


def test_a_consumer_goes_on_after_the_broker_was_killed(fast: "Scene") -> None:
    """KAFKA-13214: its member id outlives the connection, so nothing is lost; no message is duplicated."""
    topic = fast.topic(partitions=2, messages=50)
    consumer = fast.consumer(session_timeout_ms=30_000, enable_auto_commit=False)
    called = subscribe(consumer, topic)
    messages = fast.poll(consumer, 30)
    consumer.commit(asynchronous=False)

    fast.kafka.kill()
    starting = threading.Thread(target=fast.kafka.start)
    starting.start()
    messages += fast.poll_until(lambda: not starting.is_alive(), consumer, what="the broker")
    messages = [message for message in messages if message.error() is None]
    fast.produce(topic, 50, partitions=2, first=50)
    messages += fast.poll(consumer, 200 - len(messages))

    taken = sorted((message.partition(), message.offset()) for message in messages)
    assert taken == [(partition, offset) for partition in range(2) for offset in range(100)]
    assert called == ["assign"]
    consumer.commit(asynchronous=False)
    assert fast.committed(topic, partitions=2) == [100, 100]


@pytest.mark.slow
def test_a_broker_that_freezes_is_soon_asked_no_more_for_the_coordinator(
    fast: "Scene", caplog: pytest.LogCaptureFixture
) -> None:
    """Seen in a cluster: a member sent FindCoordinator to the frozen coordinator, and waited a minute."""
    topic = fast.topic(messages=10)
    consumer = fast.consumer(session_timeout_ms=6000, heartbeat_interval_ms=500)
    called = subscribe(consumer, topic)
    fast.take(consumer, 5)

    fast.kafka.pause()
    try:
        asked = "the group's coordinator could not be looked up: "
        fast.poll_until(lambda: asked in caplog.text, consumer, what="the end of its patience")
    finally:
        fast.kafka.resume()

    fast.poll_until(lambda: called == ["assign", "lost", "assign"], consumer, what="the way back")


def test_a_close_without_a_broker_ends_in_time_and_gives_everything_up(
    fast: "Scene", monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka's close() waits for ever there, once a commit is under way."""
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", 1.0)
    topic = fast.topic(messages=10)
    consumer = fast.consumer(session_timeout_ms=30_000)
    called = subscribe(consumer, topic)
    fast.take(consumer, 5)
    fast.kafka.kill()
    try:
        started = time.monotonic()
        consumer.close()
        assert time.monotonic() - started < PATIENCE / 4
    finally:
        fast.kafka.start()

    assert called == ["assign", "revoke"]
    assert fast.committed(topic) == [-1001]
