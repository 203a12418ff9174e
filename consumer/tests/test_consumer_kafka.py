"""A consumer with a real broker: polling, callbacks, measuring and leaving."""

import contextlib
import gc
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer import Consumer, Rebalance
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.core import RebalanceListener
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]


def offsets(messages: list[Message]) -> list[int | None]:
    return [message.offset() for message in messages]


# --- Polling --------------------------------------------------------------------------------------------


def test_a_poll_without_a_limit_waits_for_a_message(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer()
    # The message is written only once there is an assignment, which only the poll itself can bring.
    consumer.subscribe([topic], on_assign=lambda *_: scene.produce(topic, 1))

    message = consumer.poll()
    assert message is not None
    assert message.value() == b"0"


def test_polls_that_do_not_wait_get_there_too(scene: "Scene") -> None:
    topic = scene.topic(messages=3)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while len(messages) < 3 and time.monotonic() < deadline:
        message = consumer.poll(0)
        messages += [] if message is None else [message]

    assert offsets(messages) == [0, 1, 2]


def test_batches_hold_as_much_as_is_asked_for_or_as_is_there(scene: "Scene") -> None:
    topic = scene.topic(messages=25)
    consumer = scene.consumer()
    consumer.subscribe([topic])

    batches = [offsets(consumer.consume(10, PATIENCE)) for _ in range(2)]
    assert batches == [list(range(10)), list(range(10, 20))]
    rest: list[int | None] = []
    deadline = time.monotonic() + PATIENCE
    while len(rest) < 5 and time.monotonic() < deadline:
        rest += offsets(consumer.consume(10, 1))
    assert rest == list(range(20, 25))
    assert consumer.consume(10, 0) == []


def test_a_batch_is_returned_before_a_rebalance_is_dealt_with(scene: "Scene") -> None:
    """Else the messages in hand would be committed with the revocation, before anyone has seen them."""
    topic = scene.topic(partitions=2, messages=5)
    # A heartbeat reports the second's join three seconds later; by then all messages have been fetched.
    first, second = scene.consumer(heartbeat_interval_ms=3000), scene.consumer()
    calls: list[int] = []
    first.subscribe([topic], on_revoke=lambda *_: calls.append(len(seen)))
    seen = offsets(first.consume(1, PATIENCE))
    joining = threading.Thread(target=lambda: scene.own(second, 1), daemon=True)
    second.subscribe([topic])
    joining.start()
    started = time.monotonic()
    seen += offsets(first.consume(1000, PATIENCE))
    assert time.monotonic() - started < PATIENCE, "it waited for its batch, and the group for it"
    assert calls == []
    while not calls:
        seen += offsets(first.consume(1000, 0.1))
    joining.join(PATIENCE)

    assert len(seen) == calls[0] == 10


def test_seeking_pausing_and_resuming(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    assert scene.take(consumer, 4) == [0, 1, 2, 3]
    assert consumer.position([TopicPartition(topic, 0)])[0].offset == 4

    consumer.seek(TopicPartition(topic, 0, 8))
    assert scene.take(consumer, 1) == [8]
    consumer.pause([TopicPartition(topic, 0)])
    assert consumer.poll(0.3) is None
    consumer.resume([TopicPartition(topic, 0)])
    assert scene.take(consumer, 1) == [9]


def test_a_partition_may_be_paused_as_it_is_gained(scene: "Scene") -> None:
    topic = scene.topic(messages=2)
    consumer = scene.consumer()
    consumer.subscribe([topic], on_assign=lambda consumer, partitions: consumer.pause(partitions))
    scene.own(consumer, 1)
    assert consumer.poll(0.3) is None

    consumer.resume(consumer.assignment())
    assert scene.take(consumer, 2) == [0, 1]


def test_the_next_poll_after_unsubscribe_calls_on_revoke_even_with_a_timeout_of_0(scene: "Scene") -> None:
    topic, revoked = scene.topic(), list[int]()
    consumer = scene.consumer()
    for count in range(1, 4):
        consumer.subscribe([topic], on_revoke=lambda _, them: revoked.extend(p.partition for p in them))
        scene.own(consumer, 1)
        consumer.unsubscribe()
        consumer.poll(0)
        assert revoked == [0] * count


def test_a_pause_outlives_the_assignment(scene: "Scene") -> None:
    topic = scene.topic(messages=10)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    scene.take(consumer, 4)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.unsubscribe()
    scene.own(consumer, 0)
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    assert consumer.poll(0.3) is None
    assert consumer.paused() == [TopicPartition(topic, 0)]

    consumer.resume(consumer.assignment())
    assert scene.take(consumer, 6) == [4, 5, 6, 7, 8, 9]


def test_a_partition_without_an_offset_is_an_error_where_that_is_configured(scene: "Scene") -> None:
    topic = scene.topic()
    consumer = scene.consumer(auto_offset_reset="error")
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE)

    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET


@pytest.mark.parametrize("batch", [False, True], ids=["poll", "consume"])
def test_what_a_callback_raises_leaves_once_and_no_message_is_lost(scene: "Scene", *, batch: bool) -> None:
    """Raised inside a native call it would destroy the message that was about to be returned."""
    topic = scene.topic(partitions=2, messages=20)

    def fail(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
        raise ValueError(len(partitions))

    first, second = scene.consumer(), scene.consumer()
    first.subscribe([topic], on_assign=fail, on_revoke=fail)
    second.subscribe([topic])
    raised: list[object] = []
    seen: list[tuple[int | None, int | None]] = []
    deadline = time.monotonic() + PATIENCE
    while len(seen) < 40:
        assert time.monotonic() < deadline
        for consumer in (first, second):
            try:
                messages = consumer.consume(7, 0.1) if batch else [consumer.poll(0.1)]
            except ValueError as error:
                raised.append(error.args[0])
            else:
                seen += [(m.partition(), m.offset()) for m in messages if m is not None]

    assert sorted(seen) == sorted((partition, offset) for partition in range(2) for offset in range(20))
    # The first joins alone, or with the second: each of its callbacks is called once.
    assert raised in ([2, 2, 1], [1])
    first.subscribe([topic])  # and now without them


@pytest.mark.parametrize("batch", [False, True], ids=["poll", "consume"])
def test_what_librdkafkas_own_callbacks_raise_costs_no_message(scene: "Scene", *, batch: bool) -> None:
    """librdkafka destroys a message for it, and its close() then hangs."""
    raised = 0

    def stats_cb(_json: str) -> None:
        raise ValueError("mine")

    topic = scene.topic(messages=5000)
    consumer = scene.consumer(stats_cb=stats_cb, statistics_interval_ms=20)
    consumer.subscribe([topic], on_revoke=lambda *_: None)
    seen: list[int | None] = []
    while len(seen) < 5000 or raised < 10:
        try:
            messages = consumer.consume(10, 0.1) if batch else [consumer.poll(0.1)]
            seen += offsets([message for message in messages if message is not None])
        except ValueError:
            raised += 1
    with contextlib.suppress(ValueError):
        consumer.close()

    assert seen == list(range(5000))


# --- Measuring ------------------------------------------------------------------------------------------


@dataclass
class Listener(RebalanceListener):
    """Keeps the records of rebalances."""

    rebalances: list[Rebalance] = field(default_factory=list)

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)


def test_a_rebalance_is_measured_in_its_phases(scene: "Scene") -> None:
    topic = scene.topic(partitions=2)
    listener = Listener()
    consumer, other = scene.consumer(), scene.consumer()
    consumer.add_listener(listener)
    consumer.subscribe([topic])
    scene.own(consumer, 2)
    other.subscribe([topic])
    scene.poll_until(lambda: len(listener.rebalances) == 2, consumer, other)

    first, second = listener.rebalances
    assert (first.generation, first.protocol, first.outcome) == (1, "range", "completed")
    assert first.partitions == {topic: (0, 1)}
    assert list(map(str, first.phases)) == ["join", "sync", "assign"]
    assert (second.generation, len(second.partitions[topic])) == (2, 1)
    assert list(map(str, second.phases)) == ["revoke", "join", "sync", "assign"]
    assert 0 < sum(second.phases.values()) <= (second.duration or 0.0)


# --- Leaving --------------------------------------------------------------------------------------------


def test_one_that_is_dropped_leaves_its_group(
    local_kafka: LocalKafka, scene: "Scene", eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    topic = scene.topic()
    consumer = Consumer({"bootstrap.servers": local_kafka.bootstrap_servers, "group.id": scene.group})
    consumer.subscribe([topic])
    scene.own(consumer, 1)
    assert scene.members() == 1

    del consumer
    gc.collect()
    eventually(lambda: scene.members() == 0, "an empty group")


def test_one_that_is_not_closed_leaves_at_the_interpreters_end(scene: "Scene") -> None:
    config = {"bootstrap.servers": scene.kafka.bootstrap_servers, "group.id": scene.group}
    program = (
        "from groupwright.consumer import Consumer\n"
        "from groupwright.consumer._membership import classic_membership\n"
        f"classic_membership._STOP_TIMEOUT = {PATIENCE}  # a busy machine may take long to let it leave\n"
        f"consumer = Consumer({config!r})\n"
        f"consumer.subscribe([{scene.topic()!r}])\n"
        "while not consumer.assignment():\n"
        "    consumer.poll(0.1)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)

    assert scene.members() == 0


def test_a_close_during_a_parked_join_leaves_at_once(
    scene: "Scene",
    eventually: Callable[[Callable[[], bool], str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The coordinator answers one request at a time: LeaveGroup must not wait behind JoinGroup.

    That JoinGroup has no response then is no warning.
    """
    topic = scene.topic(partitions=2)
    listener = Listener()
    owner, visitor = scene.consumer(), scene.consumer()
    owner.add_listener(listener)
    owner.subscribe([topic])
    scene.own(owner, 2)
    visitor.subscribe([topic])
    eventually(lambda: scene.members() == 2, "the visitor's JoinGroup")

    started = time.monotonic()
    visitor.close()
    assert time.monotonic() - started < PATIENCE / 4  # the JoinGroup would wait for 5 minutes
    assert [entry.message for entry in caplog.records if entry.levelno >= logging.WARNING] == []
    assert scene.members() == 1
    scene.poll_until(lambda: len(listener.rebalances) == 2, owner)
    assert listener.rebalances[1].partitions == {topic: (0, 1)}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a member as much time to leave after the timeout of `close` as a busy machine needs."""
    monkeypatch.setattr("groupwright.consumer._membership.classic_membership._STOP_TIMEOUT", PATIENCE)


@pytest.mark.usefixtures("patient")
def test_a_member_leaves_and_its_commit_is_stored_however_short_the_timeout_of_close_is(
    scene: "Scene",
) -> None:
    """The commit of a slow on_revoke was reported as destroyed, and the partitions had no owner."""
    topic = scene.topic(messages=3)
    results: list[object] = []
    consumer = scene.consumer(enable_auto_commit=False, on_commit=lambda error, _: results.append(error))
    consumer.subscribe([topic], on_revoke=lambda consumer, _: consumer.commit())
    scene.take(consumer, 3)
    consumer.close(timeout=0)

    assert results == [None]
    assert scene.committed(topic) == [3]
    assert scene.members() == 0


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("signals", [1, 2])
def test_a_member_leaves_if_signal_handlers_raise_while_close_waits(
    scene: "Scene", monkeypatch: pytest.MonkeyPatch, signals: int
) -> None:
    """The second one ends the waiting; the first one is raised once the consumer is closed."""
    topic, calls = scene.topic(messages=1), list[str]()
    consumer = scene.consumer()
    consumer.subscribe([topic], on_revoke=lambda *_: calls.append("on_revoke"))
    scene.take(consumer, 1)
    assert isinstance(consumer._member, ClassicMembership)
    inbox = consumer._member.events._inbox
    wait, raised = inbox.wait, list[float]()

    def interrupted(seconds: float) -> None:
        if len(raised) < signals:
            raised.append(seconds)
            raise KeyboardInterrupt
        wait(seconds)

    monkeypatch.setattr(inbox, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.close()

    assert signals == 2 or calls == ["on_revoke"]
    assert scene.members() == 0


# --- Security -------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(new_scene: Callable[[LocalKafka], "Scene"]) -> Iterator["Scene"]:
    """A broker that asks for a password."""
    broker = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="me" password="secret" user_me="secret";'
        ),
    }
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
    }
    with LocalKafka(config=broker, client_config=client) as kafka:
        yield new_scene(kafka)


def test_the_membership_shows_its_password_too(guarded: "Scene") -> None:
    topic = guarded.topic()
    consumer = guarded.consumer(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="me",
        sasl_password="secret",  # noqa: S106 - the broker's of this test
    )
    consumer.subscribe([topic])
    guarded.own(consumer, 1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)


@pytest.mark.parametrize("auto_commit", [False, True])
def test_close_calls_on_revoke_and_on_commit_however_short_its_timeout_is(
    scene: "Scene", *, auto_commit: bool
) -> None:
    """The timeout limits how long answers are waited for."""
    topic = scene.topic(partitions=2, messages=3)
    calls: list[Any] = []
    consumer = scene.consumer(
        on_commit=lambda _error, partitions: calls.append(["commit", len(partitions)]),
        enable_auto_commit=auto_commit,
    )
    consumer.subscribe([topic], on_revoke=lambda _, partitions: calls.append(["revoke", len(partitions)]))
    scene.take(consumer, 6)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)])
    consumer.close(timeout=0)

    assert calls.count(["revoke", 2]) == 1
    assert calls.count(["commit", 1]) == 1
    assert calls.count(["commit", 2]) == auto_commit
    assert len(calls) == 2 + auto_commit
