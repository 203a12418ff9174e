"""Exceptions of signal handlers: none loses a message, wherever in `poll` or `consume` it is raised.

CPython runs signal handlers at certain bytecodes only: after a call, at the start of a function, at the end
of a loop. The fixture `interrupted` raises at one of these places; the tests raise at each of them in turn.
"""

import itertools
import signal
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, Message, TopicPartition

from groupwright.consumer import ConsumerInterceptor
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from consumer.tests.conftest import Scene

    Interrupted = Callable[..., tuple[int, Any]]

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]


class _HandlerError(BaseException):
    """Raised by the handler."""


_MESSAGES = 1000
_FEW = 20


@pytest.mark.parametrize("interceptors", [[], [ConsumerInterceptor()]], ids=["", "interceptors"])
@pytest.mark.parametrize("woken", [False, True], ids=["fast", "whole"])
@pytest.mark.parametrize("wait", [0.0, 0.1], ids=["at-once", "gathering"])
@pytest.mark.parametrize("method", ["poll", "consume"])
def test_no_message_is_lost(
    scene: "Scene",
    interrupted: "Interrupted",
    method: str,
    wait: float,
    *,
    woken: bool,
    interceptors: list[ConsumerInterceptor],
) -> None:
    consumer = scene.consumer(interceptors=interceptors, auto_commit_interval_ms=1)
    consumer.subscribe([scene.topic(messages=_MESSAGES)])
    scene.take(consumer, 1)
    seen, place = [0], 0
    calls: dict[str, Callable[[], Any]] = {
        "poll": lambda: consumer.poll(wait),
        "consume": lambda: consumer.consume(3, wait),
    }
    while len(seen) < _MESSAGES / 2:
        place += 1
        if woken:
            consumer._guard.wake()
        raised, result = interrupted(place, calls[method])
        assert consumer._guard.ident == 0
        seen += offsets(result)
        seen += offsets(consumer.consume(2, 0.5))
        if not raised:
            break

    assert place > 1
    # Of poll, the one that was about to be returned may go, as with confluent-kafka.
    most = 2 if method == "poll" and not woken else 1
    assert all(0 < after - before <= most for before, after in itertools.pairwise(seen))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised as a generator ends
@pytest.mark.parametrize(("method", "again"), [("poll", 1), ("consume", 1), ("consume", 3)])
def test_a_second_exception_loses_no_message_and_changes_no_order(
    scene: "Scene", interrupted: "Interrupted", method: str, again: int
) -> None:
    """On a busy machine the next alarm is there before the first one's exception is handled.

    A message was lost that was being put back. A later interruption had it fetched again, after the end of
    its partition had been returned.
    """
    consumer = scene.consumer(enable_partition_eof=True)
    # Each message that is prefetched adds a place, and each place repeats the way to it.
    consumer.subscribe([scene.topic(messages=_FEW)])
    scene.take(consumer, 1)
    calls: dict[str, Callable[[], Any]] = {
        "poll": lambda: consumer.poll(0.02),
        "consume": lambda: consumer.consume(3, 0.02),
    }
    seen, twice = [0], 0
    for place in itertools.count(1):
        consumer._guard.wake()
        raised, result = interrupted(place, calls[method], again)
        assert consumer._guard.ident == 0
        seen += offsets(result)
        twice += raised == 2
        if not raised:
            break
    seen += offsets(consumer.consume(2, 0.5))

    assert twice > 20
    assert len(seen) < _FEW
    assert seen == list(range(len(seen)))


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_handler_that_raises_while_messages_stream_costs_none(scene: "Scene", method: str) -> None:
    """The real thing, at random times."""
    most = 1 if method == "poll" else 10

    def raise_error(*_: object) -> None:
        raise _HandlerError

    consumer = scene.consumer()
    consumer.subscribe([scene.topic(messages=20_000)])
    scene.take(consumer, 1)
    seen = [0]
    before = signal.signal(signal.SIGALRM, raise_error)
    raised = 0
    deadline = time.monotonic() + PATIENCE
    try:
        while seen[-1] < 19_999:
            assert time.monotonic() < deadline, f"{seen[-1]} after {raised} interruptions"
            result: Any = None
            try:
                # At the topic's end consume() waits for more: a handler that always raises would starve it.
                seconds = 0.01 if method == "poll" else 0.04
                signal.setitimer(signal.ITIMER_REAL, seconds if seen[-1] < 19_900 else 0.0)
                while seen[-1] < 19_999:
                    result = None
                    result = consumer.poll(1.0) if method == "poll" else consumer.consume(most, 1.0)
                    seen += offsets(result)
            except _HandlerError:
                raised += 1
                done = set(seen[-200:])
                seen += [offset for offset in offsets(result) if offset not in done]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

    assert raised > 0
    missing = set(range(20_000)) - set(seen)
    assert len(missing) <= raised * most  # what a call was about to return, as with confluent-kafka
    assert seen == sorted(seen)


@pytest.mark.parametrize(("start", "first"), [(OFFSET_INVALID, 1), (OFFSET_BEGINNING, 0)])
def test_a_discarded_batch_of_an_assignment_without_an_offset_is_fetched_again(
    scene: "Scene", start: int, first: int
) -> None:
    """A handler raises in the first native call, so that the consumer has seen no offset yet."""
    topic = scene.topic(messages=4)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.assign([TopicPartition(topic, 0, start)])
    discarded = confluent_kafka.Consumer.consume(consumer, 4 - first, PATIENCE)
    consumer._prefetch.cut_short = True

    assert scene.take(consumer, 4 - first) == offsets(discarded) == list(range(first, 4))


def offsets(result: Message | list[Message] | None) -> list[int]:
    """Return the offsets of what `poll` or `consume` has returned."""
    messages = result if isinstance(result, list) else [result]
    return [
        offset
        for one in messages
        if one is not None and (offset := one.offset()) is not None and not one.error()
    ]
