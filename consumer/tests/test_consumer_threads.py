"""One thread polls: the calls that other threads may make meanwhile, and the errors of the rest."""

import asyncio
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, Message, TopicPartition

from groupwright.assignors import GroupwrightError
from groupwright.consumer import CommitError, ConcurrentAccessError, Consumer
from groupwright.consumer._membership.access import AccessGuard, exclusive
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._protocol.membership import Membership
from groupwright.core import RebalanceListener
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

NOWHERE: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "socket.timeout.ms": 1000,
    "log_level": 0,
}
T0 = TopicPartition("t", 0, 5)


@contextmanager
def polled(consumer: Consumer, method: str = "poll") -> Iterator[list[BaseException]]:
    """Have a thread of the name ``poller`` inside poll; yield what it ends with, once it has ended."""
    ended: list[BaseException] = []
    arguments: tuple[Any, ...] = () if method == "poll" else (10,)

    def poll() -> None:
        try:
            while getattr(consumer, method)(*arguments):
                pass
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            ended.append(error)

    thread = threading.Thread(target=poll, name="poller")
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while consumer._guard.ident != thread.ident:
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)
    try:
        yield ended
    finally:
        with suppress(KafkaException):
            consumer.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


POLLS: dict[str, tuple[Any, ...]] = {"consume": (1, 0), "poll": (0,)}
BETWEEN_POLLS: dict[str, tuple[Any, ...]] = {
    "assign": ([T0],),
    "seek": (T0,),
    "seek_to_beginning": (),
    "unassign": (),
    "subscribe": (["t"],),
    "unsubscribe": (),
}


def test_a_second_thread_that_polls_is_refused_at_once_with_the_name_of_the_first() -> None:
    """Java's ConcurrentModificationException. confluent-kafka lets it wait for the whole poll."""
    consumer = Consumer(NOWHERE)
    with polled(consumer):
        for name, arguments in POLLS.items():
            with pytest.raises(ConcurrentAccessError) as caught:
                getattr(consumer, name)(*arguments)
            assert str(caught.value).startswith(f"{name}() was called by the thread MainThread (")
            assert "while the thread poller (" in str(caught.value)
            assert "others may commit, store_offsets" in str(caught.value)
            assert isinstance(caught.value, RuntimeError | GroupwrightError)
            assert not isinstance(caught.value, KafkaException)


def test_the_polling_thread_leaves_for_another_that_subscribes_assigns_or_seeks() -> None:
    """As in confluent-kafka, where they wait for the poll to return; here the poll goes on afterwards."""
    consumer = Consumer(NOWHERE)
    with polled(consumer) as ended:
        for name, arguments in BETWEEN_POLLS.items():
            getattr(consumer, name)(*arguments)
            assert consumer._guard.ident != threading.get_ident()
        assert not ended


def test_a_poll_waits_for_another_thread_that_is_inside_between_polls() -> None:
    consumer = Consumer(NOWHERE)
    polled_once = threading.Event()

    def poll() -> None:
        consumer.poll(0)
        polled_once.set()

    thread = threading.Thread(target=poll)
    with consumer._guard.between_polls(lambda: False, "seek"):
        thread.start()
        assert not polled_once.wait(0.1)
    assert polled_once.wait(PATIENCE)
    thread.join(PATIENCE)
    consumer.close()


def test_a_change_of_the_assignment_beside_a_callback_is_refused() -> None:
    """The callback may wait for the thread that seeks: both would wait for ever."""
    polling = AccessGuard()
    polling.enter(1, "poll")
    with (
        pytest.raises(ConcurrentAccessError, match=r"seek\(\) was called"),
        polling.between_polls(lambda: True, "seek"),
    ):
        pass
    assert polling.ident == 1
    assert not polling.must_yield


@pytest.mark.medium
def test_other_threads_may_do_the_rest_while_one_polls_without_a_limit() -> None:
    consumer = Consumer(NOWHERE | {"enable.auto.offset.store": False, "enable.auto.commit": False})
    consumer.assign([T0])
    with polled(consumer):
        started = time.monotonic()
        assert [(p.topic, p.partition) for p in consumer.assignment()] == [("t", 0)]
        assert len(consumer.position([T0])) == 1
        consumer.pause([T0])
        consumer.resume([T0])
        consumer.store_offsets(new_message(topic="t", partition=0, offset=6))
        consumer.commit()
        with pytest.raises(CommitError):
            consumer.commit(offsets=[T0], asynchronous=False)
        assert consumer.memberid() is None
        assert consumer.consumer_group_metadata()
        assert consumer.poll_age is not None
        assert time.monotonic() - started < PATIENCE / 4


def test_a_thread_that_wants_the_handle_does_not_starve_beside_one_that_polls_without_a_pause() -> None:
    """The lock of librdkafka's handle is unfair: in confluent-kafka a polling loop never yields it."""
    consumer = Consumer(NOWHERE)
    consumer.assign([T0])
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            consumer.poll(0.01)

    with consumer, ThreadPoolExecutor(5) as pool:
        polling = pool.submit(poll)
        try:
            asked = [pool.submit(consumer.assignment) for _ in range(40)]
            assert all(len(one.result(PATIENCE)) == 1 for one in asked)
        finally:
            stop.set()
        polling.result(PATIENCE)


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_close_ends_the_poll_of_another_thread_at_once(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", PATIENCE)
    consumer = Consumer(NOWHERE)
    with polled(consumer, method) as ended:
        started = time.monotonic()
        consumer.close()
        assert time.monotonic() - started < PATIENCE / 4

    (error,) = ended
    assert isinstance(error, RuntimeError)
    assert str(error) == "Consumer closed"


def test_a_poll_that_begins_while_another_thread_closes_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that two threads are inside: which of both it was depended on a moment."""
    closing, release, leave = threading.Event(), threading.Event(), ClassicMembership.leave

    def wait(*arguments: Any) -> None:
        closing.set()
        assert release.wait(PATIENCE)
        leave(*arguments)

    monkeypatch.setattr(ClassicMembership, "leave", wait)
    consumer = Consumer(NOWHERE)
    with ThreadPoolExecutor(1) as pool:
        closed = pool.submit(consumer.close)
        assert closing.wait(PATIENCE)
        for call in (
            lambda: consumer.poll(0),
            lambda: consumer.consume(1, 0),
            lambda: consumer.subscribe(["t"]),
        ):
            with pytest.raises(RuntimeError, match="Consumer closed"):
                call()
        release.set()
        closed.result(PATIENCE)


def test_many_threads_may_close() -> None:
    consumer = Consumer(NOWHERE)
    together = threading.Barrier(4)

    def close() -> None:
        together.wait(PATIENCE)
        consumer.close()
        with pytest.raises(RuntimeError, match="Consumer closed"):
            consumer.poll(0)

    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(close) for _ in range(4)]:
            one.result(PATIENCE)


def test_a_close_does_not_wait_for_ever_for_a_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", 0.1)
    inside, release = threading.Event(), threading.Event()

    def stats_cb(_json: str) -> None:
        inside.set()
        release.wait(PATIENCE)

    consumer = Consumer(NOWHERE | {"stats_cb": stats_cb, "statistics.interval.ms": 20})
    with polled(consumer):
        assert inside.wait(PATIENCE)
        with pytest.raises(
            RuntimeError, match=r"close\(\) waited 0 s for the thread poller .* inside a callback"
        ):
            consumer.close()
        assert consumer.poll_age is not None  # it is still open
        release.set()


def test_a_callback_may_call_what_its_thread_may() -> None:
    refused: list[RuntimeError] = []

    def stats_cb(_json: str) -> None:
        if refused:
            return  # also called while librdkafka closes, when nothing can be assigned any more
        consumer.assign([T0])
        try:
            consumer.close()
        except RuntimeError as error:
            refused.append(error)

    with Consumer(NOWHERE | {"stats_cb": stats_cb, "statistics.interval.ms": 20}) as consumer:
        deadline = time.monotonic() + PATIENCE
        while not refused and time.monotonic() < deadline:
            consumer.poll(0.05)
        assert "is inside another method of the consumer, such as a callback or a signal handler" in str(
            refused[0]
        )
        assert len(consumer.assignment()) == 1


def test_threads_that_take_turns_are_no_mistake() -> None:
    with Consumer(NOWHERE) as consumer, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            assert consumer.poll(0) is None
            assert pool.submit(consumer.poll, 0).result(PATIENCE) is None


def test_a_poll_that_raises_lets_the_next_thread_in() -> None:
    with Consumer(NOWHERE) as consumer, ThreadPoolExecutor(1) as pool:
        for timeout in (None, "1"):
            with pytest.raises(TypeError):
                consumer.poll(timeout)  # type: ignore[arg-type] # what is refused
        assert pool.submit(consumer.poll, 0).result(PATIENCE) is None


def test_the_age_of_the_last_poll_ends_with_the_consumer() -> None:
    consumer = Consumer(NOWHERE)
    assert consumer.poll_age is not None
    consumer.close()
    assert consumer.poll_age is None


def test_a_listener_that_was_removed_is_told_nothing_more() -> None:
    class Same(RebalanceListener):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment] # as the rule of equality wants it

    first, second = Same(), Same()
    with Consumer(NOWHERE) as consumer:
        for listener in (first, second):
            consumer.add_listener(listener)
        consumer.remove_listener(second)
        consumer.remove_listener(second)
        assert [id(one) for one in consumer._member.listeners] == [id(first)]


def test_a_listener_of_another_class_is_refused() -> None:
    """The consumer calls every method of a listener, so it must have them all."""

    class Other:
        def rebalanced(self, rebalance: object) -> None: ...

    with Consumer(NOWHERE) as consumer, pytest.raises(TypeError, match="derive the class from it"):
        consumer.add_listener(Other())  # type: ignore[arg-type] # what is tested


# --- The lock itself ------------------------------------------------------------------------------------


def test_giving_way_waits_for_those_who_asked_before_and_for_nobody_else(
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    polling = AccessGuard()
    polling.fast_path_until = 1e9
    asked, release = threading.Event(), threading.Event()

    def use() -> None:
        with polling.shared():
            asked.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=use)
    thread.start()
    assert asked.wait(PATIENCE)
    assert polling.fast_path_until == 0.0
    assert polling.has_waiters
    polling.yield_to_waiters()  # for a turn at most: the other still has the handle
    assert polling.has_waiters
    release.set()
    thread.join(PATIENCE)
    eventually(lambda: not polling.has_waiters, "the end of its use")
    polling.yield_to_waiters()


def test_the_thread_inside_does_not_wait_for_itself() -> None:
    @exclusive
    def outer(consumer: Consumer) -> None:
        inner(consumer)
        assert consumer._guard.ident == threading.get_ident()

    @exclusive
    def inner(consumer: Consumer) -> None:
        with consumer._guard.shared():
            assert not consumer._guard.has_waiters

    with Consumer(NOWHERE) as consumer:
        outer(consumer)
        assert consumer._guard.ident == 0


def test_an_exception_leaves_no_thread_behind_that_seems_to_want_the_handle(
    interrupted: Callable[[int, Callable[[], Any]], tuple[bool, Any]],
) -> None:
    """A poll would wait 50 ms for it each time, for ever."""
    polling = AccessGuard()

    def use() -> None:
        with polling.shared():
            pass

    places = 1
    while interrupted(places, use)[0]:
        places += 1
        assert not polling.has_waiters

    assert places >= 5


def test_the_thread_inside_polls_as_long_as_it_is_inside() -> None:
    """As in librdkafka: max.poll.interval.ms limits the time between polls; callbacks are part of a poll."""
    polling = AccessGuard()
    polling.last = 100.0
    assert polling.polled(200.0) == 100.0

    polling.enter(threading.get_ident(), "poll")

    assert polling.polled(200.0) == 200.0


# --- Messages in hand -----------------------------------------------------------------------------------


def messages(consumer: Consumer, *offsets: int) -> None:
    """Have messages wait that librdkafka has handed over, and nothing due."""
    consumer._prefetch.waiting.extend(
        new_message(topic="t", partition=0, offset=offset) for offset in offsets
    )
    consumer._guard.fast_path_until = math.inf


def test_a_close_by_another_thread_does_not_take_the_messages_in_hand() -> None:
    consumer = Consumer(NOWHERE)
    consumer.poll(0)
    messages(consumer, 5, 6)
    returned: list[Message] = []
    thread = threading.Thread(target=lambda: returned.extend(consumer.consume(3, PATIENCE)))
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while consumer._guard.ident != thread.ident or consumer._prefetch.waiting:
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)

    consumer.close()

    thread.join(PATIENCE)
    assert [message.offset() for message in returned] == [5, 6]


@pytest.mark.medium
def test_a_second_thread_is_refused_while_the_first_gathers_and_takes_nothing_from_it() -> None:
    with Consumer(NOWHERE) as consumer, ThreadPoolExecutor(1) as pool:
        consumer.poll(0)
        messages(consumer, 5, 6)
        gathering = pool.submit(consumer.consume, 3, 1.0)
        deadline = time.monotonic() + PATIENCE
        while not consumer._guard.ident or consumer._prefetch.waiting:
            assert time.monotonic() < deadline
        while not gathering.done():
            with suppress(ConcurrentAccessError):
                assert consumer.consume(3, 0) == []
        assert [message.offset() for message in gathering.result()] == [5, 6]


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_waiting_consumer_serves_its_membership_only_when_something_is_due(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Serving it in each of the forty slices of a second took a third of an idle member's processor time."""
    with Consumer(NOWHERE) as consumer:
        consumer.poll(0)
        now = [0.0]
        slices: list[int] = []
        served: list[int] = []
        serve = consumer._member.serve

        def wait(*arguments: float) -> Any:
            now[0] += arguments[-1]
            slices.append(len(served))
            if len(slices) == 20:
                consumer._guard.wake()  # as for an event, or a commit that has ended
            return [] if method == "consume" else None

        def count(handle: Any) -> Message | None:
            served.append(len(slices))
            return serve(handle)

        for module in ("consumer", "_membership.polling"):
            monkeypatch.setattr(f"groupwright.consumer.{module}.monotonic", lambda: now[0])
        monkeypatch.setattr(
            consumer, "_native_consume", lambda *_: [] if method == "poll" else wait(*_), raising=False
        )
        monkeypatch.setattr(consumer, "_native_poll", wait, raising=False)
        monkeypatch.setattr(consumer._member, "serve", count)

        assert not (consumer.poll(1) if method == "poll" else consumer.consume(5, 1))

        assert now[0] == pytest.approx(1.0)
        assert served == [20]


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_a_settled_member_waits_in_long_slices_once_nothing_was_due_for_a_second(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """An idle member woke 40 times a second, which took six times confluent-kafka's processor time."""
    with Consumer(NOWHERE) as consumer:
        consumer.subscribe(["t"])
        consumer.poll(0)
        now, slices, arrives = [1000.0], list[float](), math.inf

        def wait(*arguments: float) -> Any:
            slices.append(arguments[-1])
            now[0] += min(arguments[-1], arrives)
            message = new_message(topic="t", partition=0) if arrives < arguments[-1] else None
            return message if method == "poll" else [] if message is None else [message]

        def waited(seconds: float) -> list[float]:
            slices.clear()
            assert not (consumer.poll(seconds) if method == "poll" else consumer.consume(5, seconds))
            assert sum(slices) == pytest.approx(seconds)
            return [each for each in slices if each > 1e-6]

        for module in ("consumer", "_membership.polling"):
            monkeypatch.setattr(f"groupwright.consumer.{module}.monotonic", lambda: now[0])
        native = (lambda *_: []) if method == "poll" else wait
        monkeypatch.setattr(consumer, "_native_consume", native, raising=False)
        monkeypatch.setattr(consumer, "_native_poll", wait, raising=False)
        monkeypatch.setattr(type(consumer._member), "fast_path_until", 1004.04)
        assert max(waited(1.5)) == pytest.approx(0.025)  # the member has not joined the group

        monkeypatch.setattr(type(consumer._member), "calm_until", 1010.0)
        consumer._guard.wake()
        assert max(waited(1.0)) == pytest.approx(0.025)  # something was due
        assert waited(1.0) == pytest.approx([0.2] * 5)
        # None is longer than the time until something is due: an automatic commit is made in time.
        assert waited(0.54) == pytest.approx([0.2] * 2 + [0.14])
        consumer._guard.wake()
        assert max(waited(0.5)) == pytest.approx(0.025)
        # One ends after the next heartbeat, whose response may begin a rebalance.
        monkeypatch.setattr(type(consumer._member), "fast_path_until", 1010.0)
        waited(1.0)
        for comes_after, expected in (
            (math.inf, [0.2, 0.06, 0.025, 0.025]),  # the heartbeat has no response yet
            (0.1, [0.2, 0.16, 0.06, 0.025]),  # messages come one by one
        ):
            arrives = comes_after
            monkeypatch.setattr(type(consumer._member), "calm_until", now[0] + 0.025 + 0.25)
            consumer._guard.calm_until = 0.0
            waited(0.025)
            slices.clear()
            while len(slices) < 4:
                _ = consumer.poll(1.0) if method == "poll" else consumer.consume(1, 1.0)
            assert slices[:4] == pytest.approx(expected)


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_messages_of_an_expired_session_are_not_returned(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The process was stopped inside the native call. If its session holds after all, no message is lost."""
    with Consumer(NOWHERE) as consumer:
        consumer.poll(0)
        owned_until = [math.inf]
        monkeypatch.setattr(Membership, "owned_until", property(lambda _: owned_until[0]))

        def stopped_inside(*_: object) -> list[Message]:
            owned_until[0] = 0.0
            consumer._guard.fast_path_until = 0.0
            return [new_message(topic="t", partition=0, offset=5)]

        monkeypatch.setattr(consumer, "_native_consume", stopped_inside, raising=False)
        consumer._guard.fast_path_until = math.inf
        call = (lambda: consumer.consume(1, 0)) if method == "consume" else (lambda: consumer.poll(0))
        assert not call()
        assert not call()

        owned_until[0] = math.inf
        found = call()

        (message,) = found if isinstance(found, list) else [found]
        assert message is not None
        assert message.offset() == 5


@pytest.mark.parametrize("method", ["poll", "consume"])
def test_messages_that_were_held_come_before_those_that_were_fetched_since_the_resumption(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Another thread resumes the partition inside the native call, which returns what was fetched since."""
    with Consumer(NOWHERE) as consumer:
        consumer.poll(0)
        prefetch, fetched = consumer._prefetch, [new_message(topic="t", partition=0, offset=6)]
        prefetch.pause([("t", 0)])
        prefetch.put_back([new_message(topic="t", partition=0, offset=5)])
        consumer._guard.wake()
        assert consumer.poll(0) is None

        def resumed_inside(*_: object) -> list[Message]:
            prefetch.resume([("t", 0)])
            consumer._guard.wake()
            found, fetched[:] = fetched.copy(), []
            return found

        monkeypatch.setattr(consumer, "_native_consume", resumed_inside, raising=False)
        consumer._guard.fast_path_until = math.inf
        seen: list[int | None] = []
        for _ in range(4):
            found = consumer.consume(1, 0) if method == "consume" else [consumer.poll(0)]
            seen += [each.offset() for each in found if each is not None]
    assert seen == [5, 6]


def test_what_a_cancelled_poll_raises_is_raised_by_the_next_one() -> None:
    aio = pytest.importorskip("groupwright.consumer.aio", exc_type=ImportError)

    async def play() -> None:
        consumer = aio.AIOConsumer(NOWHERE)
        member = consumer._consumer._member
        inside, released = threading.Event(), threading.Event()
        serve = member.serve

        def raises(_: object) -> None:
            member.serve = serve
            inside.set()
            released.wait(PATIENCE)
            raise ValueError("on_revoke")

        member.serve = raises
        polling = asyncio.create_task(consumer.poll(PATIENCE))
        await asyncio.to_thread(inside.wait, PATIENCE)
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        released.set()
        with pytest.raises(ValueError, match="on_revoke"):
            await consumer.poll(PATIENCE)
        await consumer.close()

    asyncio.run(play())


@pytest.mark.medium
def test_a_close_beside_calls_of_other_threads_is_survived() -> None:
    """Before confluent-kafka 2.16 nothing but this consumer keeps a handle from being freed under a call."""
    ended = run_alone(
        "import threading\n"
        "from confluent_kafka import KafkaException, TopicPartition\n"
        "from groupwright.consumer import Consumer\n"
        "partitions = [TopicPartition('t', 0, 5)]\n"
        "def use(consumer):\n"
        "    while True:\n"
        "        try:\n"
        "            consumer.assignment(), consumer.position(partitions)\n"
        "            consumer.pause(partitions), consumer.resume(partitions)\n"
        "        except KafkaException:\n"
        "            pass\n"
        "        except RuntimeError as error:\n"
        "            assert str(error) == 'Consumer closed'\n"
        "            return\n"
        "for _ in range(20):\n"
        f"    consumer = Consumer({NOWHERE!r})\n"
        "    consumer.assign(partitions)\n"
        "    threads = [threading.Thread(target=use, args=(consumer,)) for _ in range(3)]\n"
        "    for thread in threads:\n"
        "        thread.start()\n"
        "    consumer.poll(0.003)\n"
        "    consumer.close()\n"
        "    for thread in threads:\n"
        "        thread.join()\n"
        "print('done')"
    )

    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_a_close_leaves_the_handle_to_a_call_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", 0.1)
    consumer = Consumer(NOWHERE)
    inside_it, release = threading.Event(), threading.Event()

    def use() -> None:
        with consumer._guard.shared():
            inside_it.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=use)
    thread.start()
    assert inside_it.wait(PATIENCE)
    consumer.close()
    release.set()
    thread.join(PATIENCE)

    assert "still inside a call of this consumer" in caplog.text
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.assignment()


def test_a_handle_that_does_not_close_is_left_to_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """librdkafka can wait for the thread of a broker forever."""
    monkeypatch.setattr("groupwright.consumer.consumer._CLOSE_TIMEOUT", 0.1)
    closes, release = [], threading.Event()

    class Hanging(confluent_kafka.Consumer):
        def close(self) -> None:
            closes.append(threading.current_thread())
            release.wait(PATIENCE)
            super().close()

    class Hung(Consumer, Hanging):
        pass

    consumer = Hung(NOWHERE)
    consumer.close()
    consumer.close()

    assert "librdkafka has not closed within 0.1 s, and is left to itself" in caplog.text
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)
    release.set()
    (closing,) = closes
    closing.join(PATIENCE)
    assert not closing.is_alive()


def test_what_a_callback_of_librdkafka_raises_as_it_closes_leaves_close() -> None:
    class Raising(confluent_kafka.Consumer):
        def close(self) -> None:
            super().close()
            raise ZeroDivisionError("of stats_cb")

    class Raised(Consumer, Raising):
        pass

    consumer = Raised(NOWHERE)
    with pytest.raises(ZeroDivisionError, match="of stats_cb"):
        consumer.close()
    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def test_a_consumer_closes_although_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError(f"can't start new thread {thread.name}")

    consumer = Consumer(NOWHERE)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    consumer.close()

    with pytest.raises(RuntimeError, match="Consumer closed"):
        consumer.poll(0)


def run_alone(program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


# --- asyncio: the calls of callbacks --------------------------------------------------------------------


def played(callback: Callable[[Any, asyncio.Event], Any]) -> tuple[Exception | None, Any]:
    """Poll until a coroutine callback has run once; return what polls have raised, and its result.

    It gets the consumer, and an event that is set once the poll has returned.
    """
    aio = pytest.importorskip("groupwright.consumer.aio", exc_type=ImportError)
    results: list[Any] = []

    async def play() -> Exception | None:
        raised = None

        async def error_cb(_: object) -> None:
            if not results:
                results.append(None)
                results[0] = await callback(consumer, polled)

        polled = asyncio.Event()
        consumer = aio.AIOConsumer({**NOWHERE, "error_cb": error_cb})
        deadline = time.monotonic() + PATIENCE
        while not results or results[0] is None:
            assert time.monotonic() < deadline
            try:
                await consumer.poll(0.1)
            except Exception as error:  # noqa: BLE001 - it is returned
                raised = error
        polled.set()
        result = results[0]
        if isinstance(result, asyncio.Task):
            results[0] = await asyncio.wait_for(result, PATIENCE)
        await asyncio.wait_for(consumer.close(), PATIENCE)
        assert consumer._consumer._guard.closed
        return raised

    return asyncio.run(play()), results[0]


@pytest.mark.medium
def test_a_task_that_a_callback_creates_may_use_the_consumer_when_that_has_ended() -> None:
    """As a worker of an assigned partition does. Its calls waited for ever for the callback's thread."""

    async def callback(consumer: Any, polled: asyncio.Event) -> Any:
        async def work() -> object:
            await polled.wait()
            return await consumer.assignment()

        return asyncio.create_task(work())

    assert played(callback) == (None, [])


@pytest.mark.medium
def test_a_call_that_is_cancelled_within_a_callback_ends_alone() -> None:
    async def callback(consumer: Any, _: asyncio.Event) -> Any:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.committed([T0], 1), 0.01)
        return [await consumer.assignment()]

    assert played(callback) == (None, [[]])


@pytest.mark.medium
@pytest.mark.parametrize("leave", [None, "soon"])
def test_a_close_that_is_refused_leaves_the_consumer_open(leave: str | None) -> None:
    """From a callback it waited for the thread that waited for the callback."""
    refusals: list[str] = []

    async def callback(consumer: Any, _: asyncio.Event) -> Any:
        keys = {} if leave is None else {"leave": leave}
        with pytest.raises((RuntimeError, TypeError)) as caught:
            await consumer.close(**keys)
        refusals.append(str(caught.value))
        return [await consumer.assignment()]

    assert played(callback) == (None, [[]])
    assert refusals[0].startswith("close() cannot be called by a thread that is inside")


def test_a_close_with_a_wrong_argument_closes_nothing() -> None:
    aio = pytest.importorskip("groupwright.consumer.aio", exc_type=ImportError)

    async def play() -> None:
        consumer = aio.AIOConsumer(NOWHERE)
        with pytest.raises(TypeError, match="takes a GroupMembershipOperation"):
            await consumer.close(leave="soon")
        assert await consumer.assignment() == []
        await consumer.close()
        assert consumer._consumer._guard.closed

    asyncio.run(play())


@pytest.mark.medium
@pytest.mark.parametrize("method", ["position", "pause", "resume", "commit"])
def test_a_callback_within_a_poll_may_do_what_another_thread_does(
    method: str, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """Each had what the other waited for: librdkafka's handle, and the lock of the prefetched messages."""
    calls, ends = [0], threading.Event()

    def on_statistics(_: str) -> None:
        for _time in range(0 if ends.is_set() else 20):  # `close` calls it, too
            getattr(consumer, method)(*([] if method == "commit" else [[T0]]))
            ends.wait(0.001)
        calls[0] += 1

    def read_positions() -> None:
        while not ends.is_set():
            consumer.position([T0])

    def poll() -> None:
        while not ends.is_set():
            consumer.poll(0.05)

    consumer = Consumer({**NOWHERE, "stats_cb": on_statistics, "statistics.interval.ms": 50})
    consumer.assign([T0])
    # Daemons, so that a deadlock fails this test alone.
    threads = [threading.Thread(target=target, daemon=True) for target in (read_positions, poll)]
    for thread in threads:
        thread.start()
    eventually(lambda: calls[0] >= 3, "the callbacks' end")
    ends.set()
    for thread in threads:
        thread.join(PATIENCE)
    consumer.close()
