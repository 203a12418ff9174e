"""Locks that are free after an exception of a signal handler, wherever it is raised."""

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from groupwright.core.locking import call_locked, locked
from integration_tests.harness.patience import PATIENCE

Interrupted = Callable[[int, Callable[[], Any]], tuple[int, Any]]


class Counter:
    """Counts under a lock, also nested."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.count = 0

    @locked
    def add(self, depth: int = 0) -> int:
        self.count += 1
        return self.add(depth - 1) if depth else self.count


def is_free(lock: Any) -> bool:
    """Return whether another thread can have the lock."""
    found: list[bool] = []

    def have() -> None:
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=have)
    thread.start()
    thread.join(PATIENCE)
    return found == [True]


@pytest.mark.parametrize("depth", [0, 2])
def test_a_lock_is_free_after_an_exception_at_any_place(interrupted: Interrupted, depth: int) -> None:
    place, was_raised = 0, 1
    while was_raised:
        place += 1
        counter = Counter()
        was_raised, _ = interrupted(place, lambda: counter.add(depth))  # noqa: B023 - called at once
        assert is_free(counter._lock)
    assert place > 1


def test_an_exception_inside_leaves_the_outer_hold(interrupted: Interrupted) -> None:
    place, was_raised = 0, 1
    while was_raised:
        place += 1
        counter = Counter()
        with counter._lock:
            was_raised, _ = interrupted(place, counter.add)
            assert not is_free(counter._lock)
        assert is_free(counter._lock)
    assert place > 1


def test_results_and_exceptions_pass_through() -> None:
    lock = threading.RLock()

    def divide(by: int) -> float:
        assert not is_free(lock)
        return 1 / by

    assert call_locked(lock, divide, by=2) == 0.5
    with pytest.raises(ZeroDivisionError):
        call_locked(lock, divide, 0)
    assert is_free(lock)


class StopWaitingError(RuntimeError):
    """Raised by a signal handler; of the class that `release` raises, too."""


@pytest.fixture
def raising_handler() -> Any:
    """Have SIGUSR1 raise."""

    def stop(*_: object) -> None:
        raise StopWaitingError

    before = signal.signal(signal.SIGUSR1, stop)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("raising_handler")
def test_an_exception_while_another_thread_has_the_lock_leaves_it_to_that_thread() -> None:
    counter = Counter()
    has_it, may_go = threading.Event(), threading.Event()
    main = threading.get_ident()

    def hold() -> None:
        with counter._lock:
            has_it.set()
            while not may_go.wait(0.01):  # once more, if the main thread was not waiting for the lock yet
                if is_waiting():
                    signal.pthread_kill(main, signal.SIGUSR1)

    def is_waiting() -> bool:
        return sys._current_frames()[main].f_code is call_locked.__code__

    holder = threading.Thread(target=hold)
    holder.start()
    assert has_it.wait(PATIENCE)
    with pytest.raises(StopWaitingError):
        counter.add()
    may_go.set()
    holder.join(PATIENCE)

    assert counter.count == 0
    assert counter.add() == 1
    assert is_free(counter._lock)


@pytest.mark.usefixtures("raising_handler")
def test_signals_at_chance_places_leave_the_lock_free() -> None:
    counter = Counter()
    raised = 0
    before = signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGUSR1))
    try:
        while raised < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0)
                while True:
                    counter.add(2)
            except StopWaitingError:
                raised += 1
            assert is_free(counter._lock)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
