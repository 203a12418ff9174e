"""The loop of a member with a stub consumer: which events it records, and when it calls which hook."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.testing.groups import (
    Assigned,
    Committed,
    Consumed,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Hooks,
    Left,
    MemberLoop,
    Revoked,
    Span,
    Started,
    WithDetails,
)

T = "t"
P = (T, 0)


class Returned:
    """A message, or an error, that a call of consume returns."""

    def __init__(self, offset: int, code: int | None = None, topic: str | None = T) -> None:
        self._error = None if code is None else KafkaError(code)
        self._topic, self._offset = topic, offset

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str | None:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"m%d" % self._offset


class StubConsumer:
    """Its `consume` calls the functions of `script` in turn, and then makes the loop leave."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.script: list[Callable[[], Any]] = []
        self.callbacks: dict[str, Callable[..., None]] = {}
        self.end: Callable[[], None] = lambda: None

    def subscribe(self, _: list[str], **callbacks: Callable[..., None]) -> None:
        self.callbacks = callbacks

    def consume(self, _: int, __: float) -> list[Returned]:
        if not self.script:
            self.end()
            return []
        found: list[Returned] = self.script.pop(0)() or []
        return found

    def commit(self, message: Any = None, offsets: Any = None, asynchronous: bool = True) -> Any:  # noqa: FBT001, FBT002
        assert message is None
        if offsets is not None and offsets[0].offset == 13:
            raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))
        return None if asynchronous else offsets

    def close(self) -> None: ...


def start(hooks: Hooks | None = None) -> tuple[MemberLoop, StubConsumer, list[Event]]:
    recorded: list[Event] = []
    loop = MemberLoop(
        StubConsumer, {"client.id": "m"}, [T], lambda *events: recorded.extend(events), batch=10, hooks=hooks
    )
    loop.consumer.end = loop.leave
    loop.start()
    return loop, loop.consumer, recorded


def run(*script: Callable[[], Any], hooks: Hooks | None = None) -> list[Event]:
    loop, consumer, recorded = start(hooks)
    consumer.script += script
    loop.run()
    assert isinstance(recorded[0], Started)
    assert isinstance(recorded[-1], Left)
    return recorded[1:-1]


def raise_(error: Exception) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_messages_ends_and_errors_are_recorded_in_the_order_of_their_return() -> None:
    eof, gone = KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART
    returned = [Returned(3), Returned(4), Returned(5, eof), Returned(5), Returned(0, gone, "u")]

    first, end, second, error = run(
        lambda: returned, hooks=Hooks(value=lambda m: (m.value() or b"").decode())
    )

    assert isinstance(first, Consumed)
    assert (first.spans, first.values) == ((Span(T, 0, 3, 5),), ("m3", "m4"))
    assert end == EndReached(end.time, first.polled, P, 5)
    assert isinstance(second, Consumed)
    assert second.spans == (Span(T, 0, 5, 6),)
    assert isinstance(error, ErrorReturned)
    assert (error.code, error.topic) == ("UNKNOWN_TOPIC_OR_PART", "u")


def test_errors_of_the_group_and_of_a_poll_are_failures_and_a_long_pause_is_none() -> None:
    found = run(
        lambda: [Returned(0, KafkaError.GROUP_AUTHORIZATION_FAILED, None)],
        lambda: [Returned(0, KafkaError._MAX_POLL_EXCEEDED, None)],
        raise_(KafkaException(KafkaError(KafkaError._FATAL))),
    )

    assert [type(event) for event in found] == [Failed, ErrorReturned, Failed]


def test_messages_are_processed_before_they_are_recorded_and_committed_afterwards() -> None:
    calls: list[str] = []
    hooks = Hooks(
        process=lambda _, messages: calls.append(f"process {len(messages)}"),
        on_messages=lambda _, messages: calls.append(f"on_messages {len(messages)}"),
    )
    loop, consumer, recorded = start(hooks)
    record = loop.record

    def recording(*events: Event) -> None:
        calls.extend(type(event).__name__ for event in events)
        record(*events)

    loop.record = recording
    consumer.script += [lambda: [Returned(0), Returned(1)], list]
    loop.run()

    assert calls == ["process 2", "Consumed", "on_messages 2", "on_messages 0", "on_messages 0", "Left"]
    assert any(isinstance(event, Consumed) for event in recorded)


def test_an_exception_that_the_application_expects_ends_nothing() -> None:
    seen: list[tuple[str, bool]] = []

    def on_exception(error: Exception, polled: float) -> bool:
        seen.append((str(error), polled > 0))
        return "expected" in str(error)

    hooks = Hooks(on_exception=on_exception)
    assert run(raise_(ValueError("expected")), hooks=hooks) == []
    with pytest.raises(ValueError, match="surprise"):
        run(raise_(ValueError("surprise")), hooks=hooks)
    assert seen == [("expected", True), ("surprise", True)]


def test_a_revocation_ends_when_the_hook_returns_even_if_it_raises() -> None:
    loop, consumer, recorded = start()

    def commit_and_fail(_: list[TopicPartition]) -> None:
        loop.consumer.commit(offsets=[TopicPartition(T, 0, 5)], asynchronous=False)
        raise ValueError("unforeseen")

    loop.hooks.on_revoke = commit_and_fail
    consumer.callbacks["on_assign"](consumer, [TopicPartition(T, 0)])
    with pytest.raises(ValueError, match="unforeseen"):
        consumer.callbacks["on_revoke"](consumer, [TopicPartition(T, 0)])
    consumer.callbacks["on_lost"](consumer, [])

    _, assigned, committed, revoked, lost = recorded
    assert isinstance(assigned, Assigned)
    assert isinstance(committed, Committed)
    assert isinstance(revoked, Revoked)
    assert revoked.began is not None
    assert committed.began is not None
    assert revoked.began <= committed.began <= committed.time <= revoked.time
    assert isinstance(lost, Revoked)
    assert (revoked.lost, lost.lost) == (False, True)


def test_commits_are_recorded_with_their_errors() -> None:
    loop, consumer, recorded = start()
    with pytest.raises(KafkaException):
        loop.consumer.commit(offsets=[TopicPartition(T, 0, 13)])
    fenced = KafkaError(KafkaError.FENCED_INSTANCE_ID)
    consumer.config["on_commit"](fenced, [TopicPartition(T, 0, 7)])
    consumer.config["on_commit"](None, [TopicPartition(T, 0, 8), TopicPartition(T, 1, -1001)])

    _, refused, later, done = recorded
    assert isinstance(refused, Committed)
    assert isinstance(later, Committed)
    assert isinstance(done, Committed)
    assert (refused.offsets, refused.began is None, later.offsets) == ({P: 13}, False, {P: 7})
    assert "ILLEGAL_GENERATION" in str(refused.error)
    assert "FENCED_INSTANCE_ID" in str(later.error)
    assert done == Committed(done.time, {P: 8})


def test_a_signal_handler_knows_whether_it_interrupts_a_call_or_a_callback() -> None:
    found: list[bool] = []

    def look() -> None:
        found.append(MemberLoop.is_polling(sys._getframe()))

    loop, consumer, _ = start(Hooks(on_assign=lambda _: look(), on_messages=lambda _, __: look()))
    consumer.script += [look, lambda: consumer.callbacks["on_assign"](consumer, [])]
    loop.run()

    assert found[:3] == [True, False, False]
    assert not MemberLoop.is_polling(None)
    assert not MemberLoop.is_polling(sys._getframe())


def test_a_factory_returns_hooks_that_get_the_loop_before_the_consumer_subscribes() -> None:
    started: list[tuple[MemberLoop, bool]] = []
    hooks = Hooks(on_start=lambda loop: started.append((loop, bool(loop.consumer.callbacks))))
    loop = MemberLoop(
        lambda config: WithDetails(StubConsumer(config), {"a": "b"}, hooks),
        {"client.id": "m"},
        [T],
        lambda *_: None,
    )
    loop.start()

    assert started == [(loop, False)]
    assert loop.hooks is hooks
    assert not loop.is_leaving
    loop.leave()
    assert loop.is_leaving
