"""Virtual threads, locks and clocks, and what of the real world they replace in the consumer.

Each thread of a simulated process is a greenlet. It runs until it waits; then the scheduler runs whatever
comes next in virtual time. So of all simulated processes one thread runs at a time, and a seed decides the
order.

`install.py` puts them in place of the real ones, before the consumer is imported.
"""

import math
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from groupwright.testing._simulation.scheduler import SECOND, Event, Process, Scheduler

if TYPE_CHECKING:
    from integration_tests.simulation.request_checks import RequestChecks

BEGINNING = 1_000
"""The clock's reading, in seconds, at the beginning of a simulation: some code takes 0 for long ago."""
_LAST_READINGS = frozenset({"timed", "_call"})
"""Functions of the consumer that read the clock after the last look at the session, before a message is
returned or a callback is called: nothing can be guaranteed of a process that is stopped there."""
_MOST_READINGS = 50_000
"""Readings of the clock, without a wait between them, after which a thread counts as spinning."""
_HUB = 1
"""Identifier of the thread that runs the scheduler; it belongs to no process."""


class ProcessKilledError(BaseException):
    """Unwinds the threads of a process that was killed. What they do meanwhile has no effect."""


class SpinError(BaseException):
    """A thread runs, and never waits."""


class SignalError(BaseException):
    """Raised by the application's signal handler, as KeyboardInterrupt is."""


class World:
    """The simulation that runs now: its scheduler, and the process of the present thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Create a world without threads."""
        self.scheduler = scheduler
        self.random = scheduler.stream("threads")
        self.threads = _HUB
        self._readings = self._events = 0

    def _check_progress(self) -> None:
        """Raise if a thread has read the clock for long, and has not waited."""
        self._readings = 0
        if self.scheduler.events_run == self._events:
            raise SpinError
        self._events = self.scheduler.events_run

    def monotonic(self) -> float:
        """Return virtual time in seconds.

        At any reading of its clock, a process may be stopped, or a signal handler may raise in its main
        thread.
        """
        thread = getcurrent()
        if isinstance(thread, VirtualThread):
            process = thread.process
            if not process.alive:
                raise ProcessKilledError
            self._readings += 1
            if self._readings > _MOST_READINGS:
                self._check_progress()
            if process.stop_after is not None:
                process.stop_after -= 1
                if process.stop_after < 0 and sys._getframe(2).f_code.co_name not in _LAST_READINGS:
                    process.stop_after = None
                    process.stop(process.stop_for)
                    thread.block(0)
            process.take_signal(thread)
        return BEGINNING + self.scheduler.now / SECOND


world: World | None = None


def enter(scheduler: Scheduler) -> World:
    """Begin a simulation; all that is read of the world comes from it from now on."""
    global world  # noqa: PLW0603 - the patched functions take no arguments
    world = World(scheduler)
    random.seed(scheduler.stream("jitter").random())  # the consumer's jitter
    return world


def leave() -> None:
    """End the simulation; clocks are real again."""
    global world  # noqa: PLW0603 - as above
    world = None


def present() -> World:
    """Return the simulation that runs."""
    if world is None:
        raise RuntimeError("no simulation runs: call runtime.enter(scheduler) first")
    return world


class MemberProcess(Process):
    """A process that can be killed, and stopped or interrupted by a signal at any reading of the clock."""

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        """Start it without threads."""
        super().__init__(name, scheduler)
        self.threads: list[VirtualThread] = []
        self.stop_after: int | None = None
        """Readings of the clock after which the process is stopped, for `stop_for` microseconds."""
        self.stop_for = 0
        self.main: VirtualThread | None = None
        """The thread in which signal handlers run."""
        self.signals: list[int] = []
        """Readings of the clock, and wake-ups of itself, by the main thread until a signal handler raises.

        It raises once for each number.
        """
        self.takes_signals = False
        """True if the main thread is where a signal handler may raise."""
        self.reason = ""
        """Why its member has sent the last JoinGroup."""
        self.stops = 0
        """How often it was stopped."""
        self.stays = False
        """True while its static member closes, which must not leave the group."""
        self.requests: RequestChecks
        """The checks of its member's requests."""
        self.on_wake: Callable[[], object] = _nothing
        """Called when the consumer's polling thread is woken."""
        self.on_stop: Callable[[int], object] = lambda _: None
        """Called with the duration when it is stopped, which may be long after that was ordered."""

    def stop_at_reading(self, duration: int, readings: int) -> None:
        """Stop the process for `duration` microseconds, after so many readings of the clock."""
        self.stop_for, self.stop_after = duration, readings

    def stop(self, duration: int) -> None:
        """Stop it, and count and report that."""
        self.stops += 1
        self.on_stop(duration)
        super().stop(duration)

    def take_signal(self, thread: "VirtualThread") -> None:
        """Raise if a signal handler is to raise here."""
        if self.signals and self.takes_signals and thread is self.main:
            self.signals[0] -= 1
            if self.signals[0] < 0:
                del self.signals[0]
                raise SignalError

    def kill(self) -> None:
        """End the process and its threads at once, as SIGKILL does."""
        super().kill()
        for thread in tuple(self.threads):  # each one removes itself
            thread.unwind()
        self.threads.clear()


class VirtualThread(greenlet):
    """A thread of a simulated process."""

    def __init__(self, process: MemberProcess, work: Callable[[], object]) -> None:
        """Create a thread, which `start` starts."""
        super().__init__(self._work)
        here = present()
        here.threads += 1
        self.ident = here.threads
        self.process = process
        self.started = self.ended = False
        self._body = work
        self._hub: Any = None
        self._is_waiting = False
        self._timer: Event | None = None
        self._joining: list[VirtualThread] = []

    def start(self, delay: int = 0) -> None:
        """Start the thread after `delay` microseconds."""
        self.process.threads.append(self)
        self.process.call_in(delay, self._begin)

    def _begin(self) -> None:
        self.started = True
        self.resume()

    def resume(self) -> None:
        """Run the thread until it waits; for the scheduler."""
        if self.dead or not self.process.alive:
            return
        self._hub = getcurrent()
        self.switch()

    def block(self, seconds: float) -> None:
        """Wait until `wake` is called, or for this time."""
        self._is_waiting = True
        if seconds != math.inf:
            self._timer = self.process.call_in(max(0, math.ceil(seconds * SECOND)), self._expire)
        self._hub.switch()
        if not self.process.alive:
            raise ProcessKilledError

    def wake(self) -> None:
        """End the present wait after a short time; no effect if the thread does not wait."""
        if self._end_wait():
            self.process.call_in(int(present().random.random() * 30), self.resume)

    def wake_now(self) -> None:
        """End the present wait and run; for the scheduler."""
        if self._end_wait():
            self.resume()

    def _end_wait(self) -> bool:
        waited, self._is_waiting = self._is_waiting, False
        if waited and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return waited

    def _expire(self) -> None:
        if self._is_waiting:
            self._is_waiting, self._timer = False, None
            self.resume()

    def unwind(self) -> None:
        """Have the thread end with `ProcessKilledError`, wherever it waits."""
        self._is_waiting = False
        tries = 100
        while not self.dead and self.started and tries:
            tries -= 1
            self._hub = getcurrent()
            self.throw(ProcessKilledError)
        if not self.dead and self.started:
            raise RuntimeError(f"a thread of {self.process.name} does not end")

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended."""
        me = current()
        if not self.ended and me is not self:
            self._joining.append(me)
            me.block(math.inf if timeout is None else timeout)

    def is_alive(self) -> bool:
        """Return whether the thread has been started and has not ended."""
        return not self.ended

    def _work(self) -> None:
        try:
            self._body()
        except ProcessKilledError:
            pass
        finally:
            self.ended = True
            if self in self.process.threads:
                self.process.threads.remove(self)
            for thread in self._joining:
                thread.wake()


def current() -> VirtualThread:
    """Return the present virtual thread."""
    thread = getcurrent()
    if not isinstance(thread, VirtualThread):
        raise RuntimeError("this waits, and is called outside of a simulated thread")  # noqa: TRY004 - a state
    return thread


class Wakeup:
    """The consumer's `Wakeup`, for virtual threads."""

    __slots__ = ("_notified", "_waiting")

    def __init__(self) -> None:
        """Start without a notification."""
        self._notified = False
        self._waiting: VirtualThread | None = None

    def notify(self) -> None:
        """End a wait, or the next one."""
        if self._waiting is not None:
            self._waiting.wake()
        else:
            self._notified = True

    def wait(self, seconds: float) -> None:
        """Return once notified, or after `seconds`."""
        if self._notified:
            self._notified = False
        elif seconds > 0:
            self._waiting = current()
            try:
                self._waiting.block(seconds)
            finally:
                self._waiting = None


class _Lock:
    """A lock; re-entrant for its owner if `again`."""

    __slots__ = ("_again", "_depth", "_owner", "_waiting")

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._owner: object = None
        self._depth = 0
        self._waiting: deque[VirtualThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - the real one's
        me = getcurrent()
        deadline = math.inf if timeout < 0 else present().monotonic() + timeout
        while self._owner is not None and not (self._again and self._owner is me):
            if not blocking or present().monotonic() >= deadline:
                return False
            thread = current()
            self._waiting.append(thread)
            thread.block(deadline - present().monotonic())
        self._owner, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        if self._owner is None or (self._again and self._owner is not getcurrent()):
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if self._waiting:
                self._waiting.popleft().wake()

    def __enter__(self) -> None:
        if self._owner is None:
            self._owner, self._depth = getcurrent(), 1
        else:
            self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Event:
    """`threading.Event`."""

    def __init__(self) -> None:
        self._wakeup = Wakeup()
        self._set = False

    def set(self) -> None:
        self._set = True
        self._wakeup.notify()

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._wakeup.wait(math.inf if timeout is None else timeout)
        return self._set


class Threading:
    """The names of `threading` that the consumer uses."""

    TIMEOUT_MAX = 1e9
    Event = _Event

    @staticmethod
    def Lock() -> _Lock:  # noqa: N802 - as in `threading`
        """Return a lock."""
        return _Lock(again=False)

    @staticmethod
    def RLock() -> _Lock:  # noqa: N802 - as in `threading`
        """Return a re-entrant lock."""
        return _Lock(again=True)

    @staticmethod
    def Thread(  # noqa: N802 - as in `threading`
        *, target: Callable[..., object], args: tuple[Any, ...] = (), name: str = "", daemon: bool = True
    ) -> "_Starting":
        """Return a thread of the present process."""
        del name, daemon
        return _Starting(lambda: target(*args))

    @staticmethod
    def enumerate() -> list[Any]:
        """Return no threads: their names are not simulated."""
        return []

    @staticmethod
    def get_ident() -> int:
        """Return the identifier of the present virtual thread."""
        return get_ident()


class _Starting:
    """A thread that starts some time after `start`."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._thread = VirtualThread(current().process, work)

        self._is_started = False

    def start(self) -> None:
        self._is_started = True
        self._thread.start(delay=int(present().random.random() ** 4 * 20_000))

    def join(self, timeout: float | None = None) -> None:
        if not self._is_started:
            raise RuntimeError("cannot join thread before it is started")
        self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread.is_alive()


def get_ident() -> int:
    """Return the identifier of the present virtual thread."""
    thread = getcurrent()
    return thread.ident if isinstance(thread, VirtualThread) else _HUB


def virtual_sleep(seconds: float) -> None:
    """Sleep in virtual time on a virtual thread, in real time elsewhere."""
    thread = getcurrent()
    if isinstance(thread, VirtualThread):
        thread.block(seconds)
    else:
        real_sleep(seconds)


real_monotonic, real_sleep, _real_time = time.monotonic, time.sleep, time.time


def virtual_monotonic() -> float:
    """Return the clock of the simulation that runs, or the real one."""
    return real_monotonic() if world is None else world.monotonic()


def virtual_time() -> float:
    """Return the same for the wall clock."""
    return _real_time() if world is None else world.monotonic()


def _nothing() -> None:
    """Do nothing."""
