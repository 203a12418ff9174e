"""The access guard when the operating system switches threads at any bytecode."""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from groupwright.consumer import ConcurrentAccessError, Consumer
from groupwright.consumer._membership import access, prefetch
from groupwright.consumer._membership.access import AccessGuard, exclusive
from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
TRACED = {access.__file__, prefetch.__file__, sys.modules[Consumer.__module__].__file__, __file__}


def at_each_bytecode(first: Callable[[], object], second: Callable[[], object]) -> Iterator[None]:
    """Run `first` repeatedly; each time a thread that runs `second` interrupts it one bytecode later."""
    place, reached = 0, True
    while reached:
        place, reached, count = place + 1, False, 0

        def switch(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal count, reached
            if frame.f_code.co_filename not in TRACED:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                count += 1
                if count == place:  # noqa: B023 - called within this round
                    reached = True
                    thread = threading.Thread(target=second)
                    thread.start()
                    thread.join(PATIENCE)
                    assert not thread.is_alive()
            return switch

        sys._getframe().f_trace_opcodes = True  # CPython 3.12 looks for it in settrace alone
        sys.settrace(switch)
        try:
            first()
        finally:
            sys.settrace(None)
        yield
    assert place > 20


class Counted:
    """An object with an access guard, which counts the threads inside."""

    def __init__(self) -> None:
        self._guard = AccessGuard()
        self.inside = self.most = 0
        self.settled, self.release = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    @exclusive
    def use(self, wait: Callable[[], object]) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        wait()
        self.inside -= 1

    def try_to_use(self) -> None:
        with suppress(ConcurrentAccessError):
            self.use(lambda: None)

    def stay_inside(self) -> None:
        """Have a thread enter, if it may, and stay until `release`."""

        def stay() -> None:
            self.settled.set()
            self.release.wait(PATIENCE)

        def run() -> None:
            with suppress(ConcurrentAccessError):
                self.use(stay)
            self.settled.set()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        assert self.settled.wait(PATIENCE)

    def most_at_each_bytecode(self) -> int:
        """Return the maximum number of threads inside; the second enters at each bytecode of the first."""
        for _ in at_each_bytecode(self.try_to_use, self.stay_inside):
            self.release.set()
            while self.threads:
                self.threads.pop().join(PATIENCE)
            assert self._guard.ident == 0
            self.settled.clear()
            self.release.clear()
        return self.most


class TornDict(dict[str, int]):
    """A dict whose `setdefault` is two steps."""

    def setdefault(self, key: str, default: int) -> int:
        if key not in self:
            self[key] = default
        return self[key]


def test_two_threads_are_never_inside_at_once() -> None:
    assert Counted().most_at_each_bytecode() == 1


def test_that_test_finds_a_lock_that_is_not_atomic() -> None:
    counted = Counted()
    counted._guard.inside = TornDict()
    assert counted.most_at_each_bytecode() == 2


def test_a_reason_to_wake_the_polling_thread_is_never_missed() -> None:
    guard = AccessGuard()
    due = False

    def publish() -> None:
        nonlocal due
        due = True
        guard.wake()

    def open_fast_path() -> None:
        nonlocal due
        due = False
        guard.open_fast_path(math.inf, lambda: due)

    for _ in at_each_bytecode(open_fast_path, publish):
        assert guard.fast_path_until == (0.0 if due else math.inf)


class Handle:
    """A handle that threads use, or that one has alone."""

    def __init__(self) -> None:
        self.guard = AccessGuard()
        self.users = 0
        self.is_alone = False
        self.overlapped = False
        self.settled, self.release = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    def use(self, wait: Callable[[], object] = lambda: None) -> None:
        with self.guard.shared():
            self.users += 1
            self.overlapped |= self.is_alone
            wait()
            self.users -= 1

    def have(self, wait: Callable[[], object] = lambda: None) -> None:
        with self.guard.exclusive(0.0) as is_alone:
            self.is_alone = is_alone
            if is_alone:
                self.overlapped |= self.users > 0
                wait()
            self.is_alone = False

    def stay_beside(self, method: Callable[[Callable[[], object]], None]) -> None:
        """Have a thread do this until `release`; return once it does, or if it has to wait, or may not."""

        def stay() -> None:
            self.settled.set()
            self.release.wait(PATIENCE)

        def run() -> None:
            method(stay)
            self.settled.set()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        while not (self.settled.wait(0.001) or self.guard._exclusive):
            pass

    def overlaps(self, first: Callable[[], None], second: Callable[[Callable[[], object]], None]) -> bool:
        """Return whether both are at the handle at once; the second comes at each bytecode of the first."""
        for _ in at_each_bytecode(first, lambda: self.stay_beside(second)):
            self.release.set()
            while self.threads:
                self.threads.pop().join(PATIENCE)
            assert not self.guard.has_waiters
            self.settled.clear()
            self.release.clear()
        return self.overlapped


@pytest.mark.medium
def test_no_thread_uses_the_handle_that_another_has_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    having_first, using_first = Handle(), Handle()

    def pause(_: float) -> None:
        using_first.release.set()

    assert not having_first.overlaps(having_first.have, having_first.use)
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    assert not using_first.overlaps(using_first.use, using_first.have)


def message(partition: int, offset: int) -> Message:
    return new_message(topic="t", partition=partition, offset=offset)


@pytest.mark.medium
@pytest.mark.parametrize("change", ["drop", "pause"])
def test_a_poll_beside_a_change_gets_each_message_once_and_in_order(change: str) -> None:
    """`poll` takes prefetched messages without a lock, while another thread seeks."""
    buffer = PrefetchBuffer()
    taken: list[tuple[int | None, int | None]] = []

    def poll() -> None:
        with suppress(IndexError):
            found = buffer.waiting.popleft()
            taken.append((found.partition(), found.offset()))

    def apply() -> None:
        buffer.waiting.extend(message(number % 2, number) for number in range(6))
        if change == "drop":
            buffer.drop([("t", 1)])
        else:
            buffer.pause([("t", 1)])
            buffer.apply_pauses()

    for _ in at_each_bytecode(apply, poll):
        buffer.resume([("t", 1)])
        buffer.apply_pauses()
        while buffer.waiting:
            poll()
        for partition in (0, 1):
            offsets = [offset for number, offset in taken if number == partition]
            assert offsets == sorted(set(offsets), key=lambda offset: offset or 0)
        assert {(0, 0), (0, 2), (0, 4)} <= set(taken)
        assert change == "drop" or {(1, 1), (1, 3), (1, 5)} <= set(taken)
        taken.clear()


def test_two_threads_that_poll_get_each_message_once() -> None:
    """The second one may be refused; it never takes a message that the first one returns too."""
    with Consumer(NOWHERE) as consumer:
        consumer.poll(0)
        offsets = iter(range(1_000_000))
        returned: list[int | None] = []

        def native_consume(num_messages: int = 1, timeout: float = -1) -> list[Message]:
            return [message(0, next(offsets)) for _ in range(min(2, num_messages)) if timeout == 0]

        consumer._native_consume = native_consume  # type: ignore[method-assign,unused-ignore]

        def poll() -> None:
            with suppress(ConcurrentAccessError):
                found = consumer.poll(0)
                if found is not None:
                    returned.append(found.offset())

        def poll_fast() -> None:
            consumer._guard.fast_path_until = math.inf
            poll()

        for _ in at_each_bytecode(poll_fast, poll):
            assert consumer._guard.ident == 0
        consumer._guard.fast_path_until = math.inf
        expected = next(offsets)
        while len(returned) < expected and consumer._prefetch.waiting:
            poll()
        assert sorted(offset for offset in returned if offset is not None) == list(range(expected))
