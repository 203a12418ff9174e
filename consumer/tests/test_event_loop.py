"""The network thread's loop: calls, timers, futures and defects."""

import logging
import socket
import threading
import time

import pytest

from groupwright.consumer._network.connection_errors import RequestTimedOutError
from groupwright.consumer._network.event_loop import READ, Future, Loop
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")


def test_calls_run_in_order_on_the_network_thread(loop: Loop) -> None:
    seen: list[tuple[int, str]] = []
    done = threading.Event()
    for number in range(100):
        loop.call_soon(lambda number=number: seen.append((number, threading.current_thread().name)))
    loop.call_soon(done.set)
    assert done.wait(PATIENCE)

    assert seen == [(number, "groupwright-test") for number in range(100)]


def test_timers_run_in_the_order_of_their_times_unless_they_are_cancelled(loop: Loop) -> None:
    seen: list[str] = []
    done = threading.Event()

    def start() -> None:
        now = time.monotonic()
        loop.call_at(now + 0.02, done.set)
        loop.call_at(now + 0.015, lambda: seen.append("second"))
        loop.call_at(now, lambda: seen.append("cancelled")).cancel()
        loop.call_at(now + 0.01, lambda: seen.append("first"))

    loop.call_soon(start)
    assert done.wait(PATIENCE)

    assert seen == ["first", "second"]


def test_cancelled_timers_are_not_kept(loop: Loop) -> None:
    """A commit has a timer of a minute, and its response comes in a millisecond."""
    kept: list[int] = []
    done = threading.Event()

    def start() -> None:
        for _ in range(10_000):
            loop.call_at(time.monotonic() + 3_600, start).cancel()
        kept.append(len(loop._timers))
        done.set()

    loop.call_soon(start)
    assert done.wait(PATIENCE)

    assert kept[0] < 300


def test_a_late_result_does_not_end_what_others_wait_for(loop: Loop) -> None:
    seen: list[object] = []
    done, shared = threading.Event(), Future()

    async def wait(seconds: float) -> None:
        try:
            seen.append(await loop.before(time.monotonic() + seconds, shared))
        except RequestTimedOutError as error:
            seen.append(str(error))
            shared.success("late")
        if len(seen) == 2:
            done.set()

    for seconds in (3_600, 0):
        loop.call_soon(lambda seconds=seconds: loop.spawn(wait(seconds)))
    assert done.wait(PATIENCE)

    assert seen == ["no response in time", "late"]


def test_a_defect_does_not_end_the_loop(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    async def fail() -> None:
        raise LookupError("of a coroutine")

    with caplog.at_level(logging.ERROR):
        loop.call_soon(dict[str, str]().pop, "of a call")
        loop.call_soon(lambda: loop.spawn(fail()))
        loop.call_soon(lambda: loop.call_at(0.0, done.set))
        assert done.wait(PATIENCE)

    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "'of a call'",
        "of a coroutine",
    ]


def test_the_end_closes_what_still_waits(loop: Loop) -> None:
    closed = threading.Event()

    async def wait() -> None:
        try:
            await Future()
        finally:
            closed.set()

    loop.call_soon(lambda: loop.spawn(wait()))
    loop.call_soon(lambda: loop.call_at(0.0, loop.end))

    assert closed.wait(PATIENCE)
    loop.join_thread(PATIENCE)
    loop.call_soon(closed.clear)  # without an effect
    assert closed.is_set()


def test_blocking_calls_of_one_name_share_a_thread(loop: Loop) -> None:
    """A resolver hung for minutes, and each attempt to connect left a thread behind."""
    release, done = threading.Event(), threading.Event()
    calls: list[int] = []
    results: list[object] = []

    def work() -> int:
        calls.append(len(calls))
        assert release.wait(PATIENCE)
        return calls[-1]

    async def ask(seconds: float) -> None:
        try:
            results.append(await loop.in_thread("look-up", work, time.monotonic() + seconds))
        except RequestTimedOutError:
            results.append("late")
            release.set()

    async def ask_thrice() -> None:
        loop.spawn(ask(PATIENCE))
        await ask(0.01)
        while len(results) < 2:
            await loop.sleep(0.001)
        await ask(PATIENCE)
        done.set()

    loop.call_soon(lambda: loop.spawn(ask_thrice()))
    assert done.wait(PATIENCE)
    assert results == ["late", 0, 1]


def test_a_socket_is_watched_while_it_is_waited_for(loop: Loop) -> None:
    near, far = socket.socketpair()
    done = threading.Event()
    seen: list[bytes] = []

    async def read() -> None:
        for _ in range(2):
            await loop.wait(near, READ)
            seen.append(near.recv(1))
        loop.call_soon(lambda: loop.spawn(forget()))
        await loop.wait(near, READ)
        done.set()

    async def forget() -> None:
        loop.forget(near)

    with near, far:
        loop.call_soon(lambda: loop.spawn(read()))
        far.sendall(b"ab")
        assert done.wait(PATIENCE)

    assert seen == [b"a", b"b"]
    assert len(loop._selector.get_map()) == 1


def test_an_idle_loop_does_not_wake(loop: Loop) -> None:
    turns: list[float] = []
    settled = threading.Event()

    def start() -> None:
        turn = loop._turn

        def count() -> None:
            turns.append(time.monotonic())
            turn()

        loop._turn = count  # type: ignore[method-assign] # to count
        loop.call_at(time.monotonic() + 0.2, settled.set)

    loop.call_soon(start)
    assert settled.wait(PATIENCE)

    assert len(turns) <= 3
