"""A consumer without a broker."""

import contextlib
import functools
import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    DeserializingConsumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from groupwright.assignors import GroupwrightError
from groupwright.consumer import CommitError, Consumer, ConsumerError, WakeupError
from groupwright.consumer._coordinator.inbox import LoadChecked, Reported
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._membership.committer import CommitEnded
from groupwright.consumer._membership.handle import Native
from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._protocol import group_metadata
from groupwright.consumer._protocol.commit_queue import CommitResult
from groupwright.consumer._protocol.events import Assign, MaxPollExceeded, Revoke, TopicUnavailable
from groupwright.consumer._protocol.model import MemberIdentity
from groupwright.core import LoadCheckOutcome, RebalanceListener
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

# Reserved and refused at once: nothing is to be reached.
NOWHERE: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "client.id": "nowhere",
    "log_level": 0,
}

T0 = TopicPartition("t", 0, 5)


class _LoadChecks(RebalanceListener):
    """Records that a load check was reported."""

    def __init__(self, called: list[str]) -> None:
        self._called = called

    def load_checked(self, *_: object) -> None:
        self._called.append("load_checked")


def member_of(consumer: Consumer) -> ClassicMembership:
    assert isinstance(consumer._member, ClassicMembership)
    return consumer._member


def thread_of(consumer: Consumer) -> threading.Thread:
    return member_of(consumer).driver._network._thread


# --- Making one -----------------------------------------------------------------------------------------


def test_a_subclass_that_does_not_call_init_is_closed() -> None:
    class Forgetful(Consumer):
        def __init__(self) -> None:
            pass

    consumer = Forgetful()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.subscribe(["t"])
    consumer.close()


def test_it_is_a_confluent_kafka_consumer() -> None:
    with Consumer(NOWHERE) as consumer:
        assert isinstance(consumer, confluent_kafka.Consumer)
        assert (consumer.group_id, consumer.client_id) == ("g", "nowhere")
        assert consumer.memberid() is None
        assert consumer.poll_age is not None
        assert 0 <= consumer.poll_age < 10


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        pytest.param((NOWHERE,), {}, id="a dict"),
        pytest.param((), NOWHERE, id="keywords"),
        pytest.param(({**NOWHERE, "client.id": "other"},), {"client.id": "nowhere"}, id="keywords win"),
    ],
)
def test_the_forms_of_its_configuration(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    before = [dict(arg) for arg in args]
    with Consumer(*args, **kwargs) as consumer:
        assert (consumer.group_id, consumer.client_id) == ("g", "nowhere")
    assert list(args) == before


@pytest.mark.parametrize("args", [(), (NOWHERE, NOWHERE), ("bootstrap.servers",), (7,)])
def test_other_forms_are_refused(args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="expected configuration dict"):
        Consumer(*args)


def test_a_missing_group_is_refused_as_confluent_kafka_does() -> None:
    config = {key: value for key, value in NOWHERE.items() if key != "group.id"}

    with pytest.raises(ValueError, match=r"group\.id must be set"):
        confluent_kafka.Consumer(config)
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        Consumer(config)


def test_an_unknown_key_is_refused_by_librdkafka(caplog: pytest.LogCaptureFixture) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(KafkaException) as caught:
        Consumer(NOWHERE | {"no.such.key": 1})

    assert caught.value.args[0].code() == KafkaError._INVALID_ARG
    assert 'No such configuration property: "no.such.key"' in str(caught.value)
    assert set(threading.enumerate()) <= threads
    assert caplog.messages == []


def test_a_misspelt_key_is_refused_with_the_closest_name() -> None:
    with pytest.raises(KafkaException) as caught:
        Consumer(NOWHERE | {"sesion.timeout.ms": 6000})

    assert caught.value.args[0].code() == KafkaError._INVALID_ARG
    assert caught.value.args[0].str() == (
        "No such configuration property: \"sesion.timeout.ms\", did you mean 'session.timeout.ms'?"
    )


def test_an_error_is_both_groupwrights_and_confluent_kafkas() -> None:
    with pytest.raises(ConsumerError) as caught:
        Consumer(NOWHERE | {"bootstrap.servers": "a:b"})

    assert isinstance(caught.value, GroupwrightError)
    assert isinstance(caught.value, KafkaException)
    assert caught.value.args[0].code() == caught.value.code == KafkaError._INVALID_ARG
    assert caught.value.args[0].str() == caught.value.message
    assert str(caught.value) == f"{caught.value.message} (_INVALID_ARG)"


def test_it_can_be_one_of_the_bases_of_a_deserializing_consumer() -> None:
    class Both(Consumer, DeserializingConsumer):
        pass

    with Both(NOWHERE) as consumer:
        assert consumer.poll(0) is None
        thread = thread_of(consumer)
    assert not thread.is_alive()


# --- Subscribing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", ["t", ("t",), ["t", 7], None])
def test_topics_are_a_list_of_names(topics: Any) -> None:
    with (
        Consumer(NOWHERE) as consumer,
        pytest.raises(TypeError, match="expected list of topic unicode strings"),
    ):
        consumer.subscribe(topics)


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        (["t", "^t.*("], "is no regular expression"),
        (["t", ""], "name is empty"),
        (["t", "u", "t"], "more than once"),
        ([], "unsubscribe"),
    ],
)
def test_topics_that_cannot_be_served_are_refused(topics: list[str], words: str) -> None:
    with Consumer(NOWHERE) as consumer, pytest.raises(ConsumerError, match=words) as caught:
        consumer.subscribe(topics)
    assert caught.value.code == KafkaError._INVALID_ARG
    assert str(caught.value).startswith(
        "Failed to set subscription: Local: Invalid argument or configuration"
    )


@pytest.mark.parametrize("callback", ["on_assign", "on_revoke", "on_lost"])
def test_callbacks_are_functions(callback: str) -> None:
    with (
        Consumer(NOWHERE) as consumer,
        pytest.raises(TypeError, match=f"{callback} expects a callable, not 7"),
    ):
        consumer.subscribe(["t"], **{callback: 7})  # type: ignore[arg-type] # what is refused


def test_unsubscribing_leaves_what_was_assigned_by_hand() -> None:
    with Consumer(NOWHERE) as consumer:
        consumer.assign([T0])
        consumer.unsubscribe()

        assert [(p.topic, p.partition) for p in consumer.assignment()] == [("t", 0)]


# --- Polling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, 0.01, 0.06])
def test_polling_ends_with_its_time(timeout: float) -> None:
    with Consumer(NOWHERE) as consumer:
        for method in (consumer.poll, consumer.consume):
            started = time.monotonic()
            assert not (method(timeout=timeout))
            assert timeout - 0.005 <= time.monotonic() - started < timeout + PATIENCE / 4


def test_polling_wants_a_time() -> None:
    with Consumer(NOWHERE) as consumer, pytest.raises(TypeError):
        consumer.poll(None)  # type: ignore[arg-type] # what is refused


def test_a_callback_of_librdkafka_that_raises_leaves_poll_once() -> None:
    def stats_cb(_json: str) -> None:
        raise ValueError("mine")

    consumer = Consumer(NOWHERE | {"stats_cb": stats_cb, "statistics.interval.ms": 20})
    with pytest.raises(ValueError, match="mine"):
        consumer.poll(PATIENCE)
    with pytest.raises(ValueError, match="mine"):
        consumer.consume(10, PATIENCE)
    with contextlib.suppress(ValueError):  # it may be called once more
        consumer.close()


def test_what_a_callback_raised_is_raised_before_the_next_event_is_served() -> None:
    with Consumer(NOWHERE) as consumer:
        member_of(consumer).failures.record(ValueError("mine"))
        member_of(consumer).events._inbox.put(MaxPollExceeded("the application did not poll"))

        with pytest.raises(ValueError, match="mine"):
            consumer.poll(0)
        message = consumer.poll(0)
        assert message is not None
        error = message.error()
        assert error is not None
        assert (error.code(), error.str()) == (KafkaError._MAX_POLL_EXCEEDED, "the application did not poll")
        assert consumer.poll(0) is None


def _taken(consumer: Consumer, call: str) -> list[Message]:
    """Return the messages of one call."""
    return list(filter(None, [consumer.poll(0)])) if call == "poll" else consumer.consume(5, 0)


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_an_error_of_the_group_is_handed_out_once_as_a_message(call: str) -> None:
    with Consumer(NOWHERE) as consumer:
        inbox = member_of(consumer).events._inbox
        inbox.put(
            Reported(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "JoinGroup failed: not allowed"))
        )
        inbox.put(Reported(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "the same"), repeated=True))
        inbox.put(TopicUnavailable("secret", KafkaError.TOPIC_AUTHORIZATION_FAILED))

        messages = [each for _ in range(3) for each in _taken(consumer, call)]

    codes = [message.error().code() for message in messages]  # type: ignore[union-attr] # each is an error
    assert codes == [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert [message.topic() for message in messages] == [None, "secret"]
    assert messages[0].value() == b"JoinGroup failed: not allowed"
    value = messages[1].value() or b""
    assert value.startswith(
        b"Subscribed topic not available: secret: Broker: Topic authorization failed: allow this client"
    )


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_an_error_of_the_group_is_returned_by_the_next_call_if_a_signal_handler_raises(
    interrupted: Callable[[int, Callable[[], Any]], tuple[int, Any]], call: str
) -> None:
    """A static member that was fenced never said so: the fatal error is returned once, and was lost."""
    fenced = Reported(KafkaError(KafkaError._FATAL, "another consumer has taken this one's place"))
    with Consumer(NOWHERE) as consumer:
        take = functools.partial(_taken, consumer, call)
        for place in itertools.count(1):
            member_of(consumer).events._inbox.put(fenced)
            raised, returned = interrupted(place, take)
            messages = [*(returned or ()), *take(), *take(), *take()]
            assert {message.error().code() for message in messages} == {KafkaError._FATAL}
            if not raised:
                break

    assert place > 20
    assert len(messages) == 1


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_an_error_that_was_returned_is_not_returned_again_if_a_signal_handler_raises_later(
    interrupted: Callable[[int, Callable[[], Any]], tuple[int, Any]], call: str
) -> None:
    exceeded = MaxPollExceeded("the application did not poll")
    with Consumer(NOWHERE) as consumer:
        take = functools.partial(_taken, consumer, call)
        for place in itertools.count(1):
            member_of(consumer).events._inbox.put(exceeded)
            assert len(take()) == 1
            raised, returned = interrupted(place, take)
            assert [*(returned or ()), *take(), *take()] == []
            if not raised:
                break

    assert place > 20


def _consume(consumer: Consumer, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> float:
    """Consume for a second in virtual time, with one message; return how long it took.

    `meanwhile` is called after a quarter of a second.
    """
    now = [0.0]
    arrived: list[Message] = []

    def native(_: int, seconds: float) -> list[Message]:
        now[0] += seconds
        if not arrived:
            arrived.append(new_message(topic="t", partition=0, offset=5))
            return arrived
        if now[0] - seconds < 0.25 <= now[0]:
            meanwhile()
        return []

    consumer.poll(0)
    with monkeypatch.context() as patch:
        for module in ("consumer", "_membership.polling"):
            patch.setattr(f"groupwright.consumer.{module}.monotonic", lambda: now[0])
        patch.setattr(consumer, "_native_consume", native, raising=False)
        assert [message.offset() for message in consumer.consume(500, 1.0)] == [5]
    return now[0]


@pytest.mark.medium
@pytest.mark.parametrize("due", ["commit", "load check", "assignment without offsets"])
def test_a_batch_is_not_cut_short(monkeypatch: pytest.MonkeyPatch, due: str) -> None:
    """A commit after each batch cut the next one short: 25 times as many calls, of 3 messages each."""
    called: list[str] = []
    with Consumer({**NOWHERE, "on_commit": lambda *_: called.append("on_commit")}) as consumer:
        member = member_of(consumer)
        consumer.add_listener(_LoadChecks(called))
        monkeypatch.setattr(member.applier, "is_prepared", lambda _: False)

        def meanwhile() -> None:
            if due == "commit":
                result = CommitResult({("t", 0): 0})
                member.committer.ended.append(CommitEnded([T0], {}, result, None))
                consumer._guard.wake()
            elif due == "load check":
                member.events._inbox.put(LoadChecked(1, LoadCheckOutcome.UNCHANGED))
            else:
                member.events._inbox.put(Assign(1, {"t": (0,)}, {"t": (0,)}, {}, MemberIdentity(), None))

        assert _consume(consumer, monkeypatch, meanwhile) == pytest.approx(1.0)

    assert called == {"commit": ["on_commit"], "load check": ["load_checked"]}.get(due, [])


@pytest.mark.parametrize("due", ["revocation", "error", "exception", "wakeup"])
def test_a_batch_is_returned_before_what_may_revoke_its_partitions_or_raise(
    monkeypatch: pytest.MonkeyPatch, due: str
) -> None:
    with Consumer(NOWHERE) as consumer:
        member = member_of(consumer)

        def meanwhile() -> None:
            if due == "revocation":
                member.events._inbox.put(Revoke(1, {"t": (0,)}, lost=False))
            elif due == "error":
                member.events._inbox.put(TopicUnavailable("u", 3))
            elif due == "exception":
                member.failures.record(ValueError("mine"))
            else:
                consumer.wakeup()

        assert _consume(consumer, monkeypatch, meanwhile) < 0.3
        if due in {"exception", "wakeup"}:
            with pytest.raises((ValueError, WakeupError)):
                consumer.consume(1, 0)


def test_a_revocation_that_comes_after_the_membership_was_lost_is_told_as_lost() -> None:
    """librdkafka #5604: the loss during a rebalance went unsaid."""
    called: list[str] = []
    with Consumer(NOWHERE) as consumer:
        consumer.subscribe(
            ["t"], on_revoke=lambda *_: called.append("revoke"), on_lost=lambda *_: called.append("lost")
        )
        assert not member_of(consumer).membership.identity.valid
        member_of(consumer).events._inbox.put(Revoke(1, {"t": (0,)}, lost=False))
        consumer.poll(0)

    assert called == ["lost"]


# --- Committing -----------------------------------------------------------------------------------------


def test_there_must_be_something_to_commit() -> None:
    with Consumer(NOWHERE) as consumer:
        for offsets in (None, [], [TopicPartition("t", 0)]):
            with pytest.raises(CommitError) as caught:
                consumer.commit(offsets=offsets, asynchronous=False)
            assert caught.value.args[0].code() == KafkaError._NO_OFFSET
            consumer.commit(offsets=offsets)


def test_a_commit_is_of_a_message_or_of_offsets() -> None:
    message = new_message(topic="t", partition=0, offset=4)
    with Consumer(NOWHERE) as consumer, pytest.raises(ValueError, match="mutually exclusive"):
        consumer.commit(message, [T0])


def test_a_commit_without_a_coordinator_ends_with_its_time() -> None:
    """librdkafka blocks for ever there."""
    with Consumer(NOWHERE | {"socket.timeout.ms": 200}) as consumer:
        with pytest.raises(CommitError) as caught:
            consumer.commit(offsets=[T0], asynchronous=False)

        assert caught.value.args[0].code() == KafkaError._TIMED_OUT
        assert str(caught.value) == (
            "Commit failed: Local: Timed out: the coordinator did not take it in time (_TIMED_OUT)"
        )


def test_what_on_commit_says_comes_before_on_revoke() -> None:
    calls: list[str] = []
    config = NOWHERE | {"enable.auto.commit": False, "on_commit": lambda *_: calls.append("on_commit")}
    with Consumer(config) as consumer:
        member = member_of(consumer)
        consumer.subscribe(["t"], on_revoke=lambda *_: calls.append("on_revoke"))
        member.events._inbox.put(Revoke(1, {}, lost=False))
        member.committer.ended.append(CommitEnded([], {}, CommitResult({}), None))
        consumer.poll(0)
        assert calls == ["on_commit", "on_revoke"]


def test_an_asynchronous_commit_without_a_coordinator_is_told_of_its_failure() -> None:
    results: list[tuple[KafkaError | None, list[TopicPartition]]] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        results.append((error, partitions))

    with Consumer(NOWHERE | {"socket.timeout.ms": 200, "on_commit": on_commit}) as consumer:
        consumer.commit(offsets=[T0])
        deadline = time.monotonic() + PATIENCE
        while not results and time.monotonic() < deadline:
            consumer.poll(0.05)

    ((error, partitions),) = results
    assert error is not None
    assert error.code() == KafkaError._TIMED_OUT
    assert partitions == [T0]


def test_offsets_are_stored_by_hand_only_where_that_is_configured() -> None:
    with Consumer(NOWHERE) as consumer:
        consumer.assign([T0])
        with pytest.raises(KafkaException) as caught:
            consumer.store_offsets(offsets=[T0])
        assert caught.value.args[0].code() == KafkaError._INVALID_ARG


@pytest.mark.parametrize("client", [Consumer, confluent_kafka.Consumer])
def test_an_error_in_place_of_a_message_has_no_offset_to_store(client: Any) -> None:
    config = NOWHERE | {"enable.auto.offset.store": False, "enable.partition.eof": True}
    end = new_message(topic="t", partition=0, offset=5, error=KafkaError(KafkaError._PARTITION_EOF))
    with contextlib.closing(client(config)) as consumer:
        consumer.assign([T0])
        with pytest.raises(KafkaException, match="Cannot store offsets for message with error: '") as caught:
            consumer.store_offsets(message=end)
        assert caught.value.args[0].code() == KafkaError._INVALID_ARG


def test_what_was_stored_goes_with_the_partition() -> None:
    """librdkafka #2782: an offset stored under a former assignment was committed later."""
    with Consumer(NOWHERE | {"enable.auto.offset.store": False, "enable.auto.commit": False}) as consumer:
        for give_up in (
            consumer.unassign,
            lambda: consumer.incremental_unassign([T0]),
            lambda: consumer.assign([TopicPartition("u", 0)]),
        ):
            consumer.assign([T0])
            consumer.store_offsets(offsets=[TopicPartition("t", 0, 9), TopicPartition("other", 0, 9)])
            assert list(
                member_of(consumer).offsets.pending(lambda: Native.position(consumer, consumer.assignment()))
            ) == [("t", 0)]
            give_up()
            assert (
                member_of(consumer).offsets.pending(lambda: Native.position(consumer, consumer.assignment()))
                == {}
            )


def test_the_metadata_of_a_consumer_outside_any_group_is_librdkafkas() -> None:
    # confluent-kafka's own is a context manager since 2.13.
    with Consumer(NOWHERE) as consumer, contextlib.closing(confluent_kafka.Consumer(NOWHERE)) as native:
        assert consumer.consumer_group_metadata() == native.consumer_group_metadata()


def test_the_metadata_after_a_loss_is_still_that_of_the_last_assignment() -> None:
    """Without a generation the coordinator would take the offsets of a transaction, from a zombie too."""
    former = MemberIdentity(3, "m-1", "range")
    with Consumer(NOWHERE) as consumer:
        member_of(consumer).ownership.identity = former
        member_of(consumer).manual.subscribed = True
        assert not member_of(consumer).membership.identity.valid
        assert consumer.consumer_group_metadata() == group_metadata.encode(former, "g", None)

        member_of(consumer).manual.subscribed = False
        consumer.assign([T0])
        assert consumer.consumer_group_metadata() == group_metadata.encode(MemberIdentity(), "g", None)


def test_the_metadata_of_a_member_that_keeps_partitions_have_the_groups_generation() -> None:
    """In a cooperative group they are consumed on while the new assignment is awaited."""
    former, present = MemberIdentity(3, "m-1", "cooperative-sticky"), MemberIdentity(4, "m-1", "c")
    with Consumer({**NOWHERE, "partition.assignment.strategy": "cooperative-sticky"}) as consumer:
        facts = member_of(consumer).membership.facts
        member_of(consumer).ownership.identity, facts.identity = former, present

        facts.owned = {"t": (0,)}
        assert consumer.consumer_group_metadata() == group_metadata.encode(present, "g", None)
        facts.owned = {}
        assert consumer.consumer_group_metadata() == group_metadata.encode(former, "g", None)
        facts.identity = MemberIdentity()


# --- Subclasses -----------------------------------------------------------------------------------------


def test_a_subclass_that_would_replace_a_private_method_is_refused() -> None:
    """Its own method would be called instead, with other arguments."""
    with pytest.raises(TypeError, match=r"Orders\._poll would replace what Consumer uses itself: rename it"):
        type("Orders", (Consumer,), {"_poll": lambda _: None})


def test_a_subclass_may_have_its_own_configuration_and_log() -> None:
    class Orders(Consumer):
        def __init__(self) -> None:
            self._config = {**NOWHERE, "enable.auto.commit": False}
            self._log: list[str] = []
            super().__init__(self._config)

    with Orders() as consumer:
        assert (consumer._config["enable.auto.commit"], consumer._log) == (False, [])
        assert consumer.settings["enable.auto.commit"] is False


# --- Closing --------------------------------------------------------------------------------------------

METHODS: dict[str, tuple[Any, ...]] = {
    "assign": ([T0],),
    "assignment": (),
    "cluster_id": (0.1,),
    "commit": (),
    "committed": ([T0], 0.1),
    "consume": (1, 0),
    "consumer_group_metadata": (),
    "get_watermark_offsets": (T0, 0.1),
    "incremental_assign": ([T0],),
    "incremental_unassign": ([T0],),
    "list_topics": ("t", 0.1),
    "memberid": (),
    "offsets_for_times": ([T0], 0.1),
    "pause": ([T0],),
    "poll": (0,),
    "position": ([T0],),
    "resume": ([T0],),
    "seek": (T0,),
    "set_sasl_credentials": ("me", "secret"),
    "store_offsets": (None, [T0]),
    "subscribe": (["t"],),
    "unassign": (),
    "unsubscribe": (),
}
if not hasattr(confluent_kafka.Consumer, "cluster_id"):  # before confluent-kafka 2.16
    del METHODS["cluster_id"]


def test_the_list_of_methods_is_whole() -> None:
    public = {name for name in dir(confluent_kafka.Consumer) if not name.startswith("_")}

    assert public == METHODS.keys() | {"close"}


def closed(method: str) -> str:
    """Return confluent-kafka's error of a method of a closed consumer."""
    of_the_handle = {"list_topics", "cluster_id", "set_sasl_credentials"}
    return f"^{'Handle has been' if method in of_the_handle else 'Consumer'} closed$"


@pytest.mark.parametrize("method", METHODS)
def test_one_that_was_never_initialised_is_closed(method: str) -> None:
    class Uninitialised(Consumer):
        def __init__(self, config: dict[str, Any]) -> None:
            pass

    with Uninitialised({}) as consumer, pytest.raises(RuntimeError, match=closed(method)) as ours:
        getattr(consumer, method)(*METHODS[method])
    assert isinstance(ours.value, RuntimeError)


@pytest.mark.parametrize("method", METHODS)
def test_after_the_close_every_method_says_so(method: str) -> None:
    consumer = Consumer(NOWHERE)
    consumer.close()

    with pytest.raises(RuntimeError, match=closed(method)):
        getattr(consumer, method)(*METHODS[method])


def test_a_second_close_does_nothing() -> None:
    consumer = Consumer(NOWHERE)
    consumer.close()
    consumer.close()


def test_a_with_block_closes() -> None:
    with Consumer(NOWHERE) as consumer:
        thread = thread_of(consumer)
        assert thread.is_alive()

    assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_a_member_that_found_no_coordinator_closes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", PATIENCE)
    consumer = Consumer(NOWHERE)
    consumer.subscribe(["t"])
    consumer.poll(0.1)
    started = time.monotonic()
    consumer.close()

    assert time.monotonic() - started < PATIENCE / 4


def test_a_close_does_not_wait_for_ever_for_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """An assignor's on_assignment runs there, and may hang: the handle is closed all the same."""
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", 0.1)
    monkeypatch.setattr("groupwright.consumer._membership.classic_membership._STOP_TIMEOUT", 0.1)
    consumer = Consumer(NOWHERE)
    thread, let_go = thread_of(consumer), threading.Event()
    member_of(consumer).driver._network.call_soon(lambda: let_go.wait(PATIENCE))
    consumer.close()

    assert thread.is_alive()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        confluent_kafka.Consumer.assignment(consumer)
    let_go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_what_a_callback_raises_in_close_leaves_close_after_everything_is_done() -> None:
    consumer = Consumer(NOWHERE)
    thread = thread_of(consumer)
    member_of(consumer).failures.record(ValueError("mine"))
    with pytest.raises(ValueError, match="mine"):
        consumer.close()

    assert not thread.is_alive()
    consumer.close()


def test_close_raises_the_first_exception_and_logs_the_others(caplog: pytest.LogCaptureFixture) -> None:
    errors = [ValueError("on_commit"), ValueError("on_revoke")]
    consumer = Consumer(NOWHERE)
    for error in errors:
        member_of(consumer).failures.record(error)
    with pytest.raises(ValueError, match="on_commit"):
        consumer.close()

    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == errors[1:]


def test_a_close_that_is_interrupted_logs_what_callbacks_raised(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer, error = Consumer(NOWHERE), ValueError("on_revoke")

    def interrupted(*_: object) -> None:
        member_of(consumer).failures.record(error)
        raise KeyboardInterrupt

    monkeypatch.setattr(member_of(consumer), "leave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.close()

    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]


def test_a_close_that_is_interrupted_while_its_thread_ends_has_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its handle stayed open, and the next close did not revoke what the first had not."""
    consumer = Consumer(NOWHERE)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(member_of(consumer).driver._network, "join_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.close()

    assert consumer._guard.closed
    consumer.close()


def test_what_callbacks_raise_is_raised_one_a_call() -> None:
    with Consumer(NOWHERE) as consumer:
        for error in (ValueError("on_commit"), ValueError("on_revoke"), SystemExit("a signal handler")):
            member_of(consumer).failures.record(error)
        for words in ("a signal handler", "on_commit", "on_revoke"):
            with pytest.raises((ValueError, SystemExit), match=words):
                consumer.poll(0)
        assert consumer.poll(0) is None


# --- Being dropped --------------------------------------------------------------------------------------


def test_one_that_is_dropped_ends_its_thread(eventually: Callable[[Callable[[], bool], str], None]) -> None:
    consumer = Consumer(NOWHERE)
    consumer.subscribe(["t"], on_assign=lambda *_: None)
    thread, gone = thread_of(consumer), weakref.ref(consumer)
    del consumer
    gc.collect()

    assert gone() is None
    eventually(lambda: not thread.is_alive(), "the end of the thread")


def test_one_that_is_collected_by_its_own_thread_ends_it(
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    """The collector runs on any thread, and may collect a consumer in a cycle with its owner's callbacks."""

    class Owner:
        def __init__(self) -> None:
            self.consumer = Consumer(NOWHERE)
            self.consumer.subscribe(["t"], on_assign=self.on_assign)

        def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None: ...

    gc.disable()
    try:
        owner = Owner()
        network, gone = member_of(owner.consumer).driver._network, weakref.ref(owner)
        thread = network._thread
        del owner
        assert gone() is not None
        network.call_soon(gc.collect)
        eventually(lambda: not thread.is_alive(), "the end of the thread")
    finally:
        gc.enable()
    assert gone() is None


def source(value: object) -> str:
    """Write a method's arguments as Python."""
    match value:
        case TopicPartition():
            return f"TopicPartition({value.topic!r}, {value.partition}, {value.offset})"
        case tuple() | list():
            begin, end = "()" if isinstance(value, tuple) else "[]"
            return begin + "".join(f"{source(item)}, " for item in value) + end
        case _:
            return repr(value)


def run(program: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program that has `consumer`, subscribed to a topic of a broker that is nowhere."""
    begin = (
        "import gc, os, sys, time, weakref\n"
        f"{before}"
        "from confluent_kafka import TopicPartition\n"
        "from groupwright.consumer import Consumer\n"
        f"consumer = Consumer({NOWHERE!r})\n"
        "consumer.subscribe(['t'])\n"
        "consumer.poll(0.05)\n"
    )
    command = [sys.executable, "-c", begin + program]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_interpreters_end_does_not_wait_for_a_consumer_that_was_not_closed() -> None:
    ended = run("print('done')")

    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert "Exception" not in ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_the_child_is_told_and_nothing_hangs() -> None:
    """librdkafka's threads are the parent's: in the child, its assignment() and close() wait for ever."""
    ended = run(
        f"methods = {{{', '.join(f'{name!r}: {source(args)}' for name, args in METHODS.items())}}}\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    for name, args in methods.items():\n"
        "        try:\n"
        "            getattr(consumer, name)(*args)\n"
        "        except RuntimeError as error:\n"
        "            assert 'created before a fork; create a new one' in str(error), error\n"
        "        else:\n"
        "            sys.exit(f'{name} did not refuse')\n"
        "    consumer.close()\n"
        "    consumer.close()\n"
        "    dropped = weakref.ref(consumer)\n"
        "    del consumer\n"
        "    gc.collect()\n"
        "    assert dropped() is not None, 'librdkafka was destroyed'\n"  # hangs one time in thirty
        "    sys.exit(0)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "assert code == 0, code\n"
        "assert consumer.assignment() == []\n"
        "consumer.close()\n"
        "print('done')"
    )

    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


@pytest.mark.parametrize("cycle", ["pass", "service.itself = service"], ids=["alone", "in-a-cycle"])
def test_a_finalizer_may_close_while_the_interpreter_ends(cycle: str) -> None:
    program = (
        "from groupwright.consumer import Consumer\n"
        "class Service:\n"
        f"    consumer = Consumer({NOWHERE!r})\n"
        "    def __del__(self):\n"
        "        self.consumer.close()\n"
        "        print('closed')\n"
        "service = Service()\n"
        f"{cycle}\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (ended.stdout, ended.stderr) == ("closed\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_consumer_that_is_garbage_already_is_not_destroyed_in_a_child() -> None:
    """The garbage collector ran in the child before the consumer was protected, and the child crashed."""
    ended = run(
        "import ctypes\n"  # which a fork imports: collects garbage
        "cycle = [consumer]\n"
        "cycle.append(cycle)\n"
        "dropped = weakref.ref(consumer)\n"
        "del consumer, cycle\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    gc.collect()\n"
        "    assert seen == [False], 'garbage could be collected in the first hook of the child'\n"
        "    assert gc.isenabled()\n"
        "    assert dropped() is not None, 'librdkafka was destroyed'\n"
        "    sys.exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "assert gc.isenabled()\n"
        "gc.collect()\n"
        "assert dropped() is None\n"
        "print('done')",
        before="seen = []\nos.register_at_fork(after_in_child=lambda: seen.append(gc.isenabled()))\n",
    )

    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_a_manual_assignment_starts_where_it_is_told() -> None:
    with Consumer(NOWHERE) as consumer:
        consumer.assign([T0])
        consumer.incremental_assign([TopicPartition("t", 1, OFFSET_BEGINNING)])

        assert {(p.topic, p.partition): p.offset for p in consumer.assignment()} == {
            ("t", 0): 5,
            ("t", 1): OFFSET_BEGINNING,
        }
