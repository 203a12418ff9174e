"""Access guard: one polling thread at a time, with hand-over to threads waiting for librdkafka's handle.

Kafka's Java consumer has the same lock (`KafkaConsumer.acquire`): a second polling thread gets an exception
at once, because waiting would only hide the programming error.

Nothing here relies on where CPython switches threads, or on the GIL:

- A thread enters with `dict.setdefault`, one atomic compare-and-set. On CPython 3.11 that costs 70 ns, and a
  `with` statement on a lock 190 ns. The entry names its owner, so an exception of a signal handler cannot
  leave it behind.
- `poll` does not enter to return a prefetched message. It takes it with one atomic `deque.popleft`, and
  `PrefetchBuffer` removes messages with one atomic call each.
- Elsewhere, two threads each write first and then read what the other writes, so one of both sees the other:
  `wake` and `open_fast_path`, `shared` and `exclusive`, `enter` and `end`. There is no lock that an exception
  of a signal handler could leave held.

librdkafka's handle has a lock of its own. confluent-kafka holds it for a whole call, and it is unfair: beside
a thread that polls without a pause, another thread might never get it. So a thread that wants the handle
registers here, and the polling thread yields between two native polls. A call that changes what the next poll
returns (`seek`, `subscribe`, `assign` and similar) needs more than the handle: the polling thread leaves the
guard for that time, and re-enters.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from groupwright.consumer._protocol.timers import PollClock
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.consumer.errors import ConcurrentAccessError, WakeupError

_YIELD_TIMEOUT = 0.05
"""Longest time in seconds that the polling thread yields, so that a slow call cannot delay a rebalance."""

SLICE = 0.025
"""Longest native poll in seconds unless all is calm, and so the delay of what becomes due within it."""

_PAUSE = 0.001
"""Seconds between two checks of whether another thread has left."""


class AccessGuard(PollClock):
    """The thread inside `poll` or `consume`, the threads that wait for it, and whether any may enter."""

    __slots__ = (
        "__weakref__",
        "_entering",
        "_exclusive",
        "_pid",
        "_returned",
        "_wanting",
        "abandoned",
        "closed",
        "closing",
        "fast_path_until",
        "inside",
        "inside_seconds",
        "woken",
    )

    def __init__(self) -> None:
        """Create a guard with no thread inside."""
        super().__init__()
        self.inside: dict[str, int] = {}
        """Identifier of the thread inside as ``inside["thread"]``; empty if there is none.

        A thread is inside if its ``inside.setdefault("thread", me)`` returned `me`. It leaves by ``del
        inside["thread"]``, in a ``finally`` clause without any call before: CPython runs signal handlers
        after calls. """
        self.fast_path_until = 0.0
        """Monotonic time until which `poll` has nothing to do but to return messages, unless `wake` is
        called."""
        self.inside_seconds = 0.0
        """Time spent inside `poll` and `consume`, without the calls that returned a prefetched message."""
        self.closing = self.closed = False
        """True if a thread is closing the consumer, or has closed it."""
        self.abandoned: Callable[[], bool] = never
        """True if the caller of the current `poll` or `consume` no longer waits; the call then ends as if
        timed out."""
        self.woken = False
        """True if `request_wakeup` was called and no poll has raised for it yet."""
        self._pid = os.getpid()
        self._returned = Wakeup()
        """Notified when a thread no longer uses the handle."""
        self._wanting: set[object] = set()
        """One token for each thread that uses the handle beside the polling thread, or waits to."""
        self._entering: set[object] = set()
        """One token for each thread that is inside in place of the polling thread, or waits to be."""
        self._exclusive = False
        """True if one thread has the handle to itself, or waits for the others to return it."""
        # Asking for the process id costs a system call a poll. The hook cannot be unregistered, so it holds a
        # weak reference.
        os.register_at_fork(after_in_child=functools.partial(_reset_in_child, weakref.ref(self)))

    @classmethod
    def of_a_closed_consumer(cls) -> Self:
        """Return a guard that lets no call begin."""
        guard = cls()
        guard.closed = True
        return guard

    # --- The fast path of poll ----------------------------------------------------------------------

    def wake(self) -> None:
        """Have the next poll check everything; callable from any thread.

        Callers publish their reason first: see `open_fast_path`.
        """
        self.fast_path_until = 0.0

    def open_fast_path(self, until: float, is_due: Callable[[], bool]) -> None:
        """Let polls return messages without further checks.

        Args:
            until: Monotonic time at which the next check is due.
            is_due: Whether the membership or the prefetch buffer has anything to do now.
        """
        # First the time, then the checks: a `wake` before the time is set has published its reason, which the
        # checks see, and a later one overrules the time.
        is_open = False
        try:
            self.fast_path_until = until
            is_open = not (self.has_waiters or self.closing or self.woken or is_due())
        finally:
            if not is_open:
                self.fast_path_until = 0.0

    def request_wakeup(self) -> None:
        """Have the current or the next poll raise; callable from any thread and from a signal handler."""
        self.woken = True
        self.wake()

    def check_not_woken(self) -> None:
        """Check that a poll may continue.

        Raises:
            WakeupError: `request_wakeup` was called since the last such error.
        """
        if self.woken:
            self.woken = False
            raise WakeupError

    # --- Time inside --------------------------------------------------------------------------------

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of the block as spent inside `poll` or `consume`."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.last = ended = time.monotonic()
            self.inside_seconds += ended - began

    def polled(self, now: float) -> float:
        """Return when the application last polled: `now` while it is inside, callbacks included."""
        return now if self.ident else self.last

    # --- The handle ---------------------------------------------------------------------------------

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Use the handle from any thread; the polling thread yields.

        Raises:
            RuntimeError: The consumer is closed.
        """
        if self.ident == get_ident():
            yield
            return
        token = object()
        try:
            self._wanting.add(token)
            # First the token, then the check; `exclusive` sets the flag, then looks for tokens.
            while self._exclusive:
                self._wanting.discard(token)
                self._returned.notify()
                time.sleep(_PAUSE)
                self._wanting.add(token)
            self.wake()
            if self.closed:
                raise RuntimeError("Consumer closed")
            yield
        finally:
            # One call into C, so no exception of a signal handler can leave the token in the set.
            self._wanting.discard(token)
            self._returned.notify()

    @contextmanager
    def exclusive(self, timeout: float) -> Iterator[bool]:
        """Use the handle alone; yield whether all other threads have returned it within `timeout` seconds."""
        try:
            self._exclusive = True
            deadline = time.monotonic() + timeout
            # One look without a token suffices: a token that comes later goes again, without the handle.
            while not (alone := not self._wanting) and (remaining := deadline - time.monotonic()) > 0:
                self._returned.wait(remaining)
            yield alone
        finally:
            self._exclusive = False

    @property
    def has_waiters(self) -> bool:
        """True if another thread waits for the handle, or to be inside."""
        return bool(self._wanting or self._entering)

    def yield_to_waiters(self) -> None:
        """Let the threads that want the handle now use it first, for `_YIELD_TIMEOUT` seconds at most."""
        waiting = frozenset(self._wanting)
        if waiting:
            deadline = time.monotonic() + _YIELD_TIMEOUT
            while not waiting.isdisjoint(self._wanting) and (remaining := deadline - time.monotonic()) > 0:
                self._returned.wait(remaining)

    # --- Inside -------------------------------------------------------------------------------------

    @property
    def ident(self) -> int:
        """Identifier of the thread inside, or 0."""
        return self.inside.get("thread", 0)

    def enter(self, me: int, name: str) -> None:
        """Be the thread inside; see `inside` for how the caller leaves.

        Args:
            me: Identifier of this thread, which is not inside yet.
            name: Name of the called method, for the error.

        Raises:
            ConcurrentAccessError: Another thread is inside.
            RuntimeError: Another thread is closing the consumer.
        """
        while (other := self.inside.setdefault("thread", me)) != me:
            self.check_not_closing()
            # `must_yield` first: a thread in `between_polls` leaves before it discards its token, so one of
            # both checks sees it. Its call ends soon.
            if not self.must_yield and self.ident == other:
                raise ConcurrentAccessError(name, _name(me), _name(other))
            time.sleep(_PAUSE)
        # `end` publishes `closing` before it tries to enter, so one of both threads sees the other.
        self.check_not_closing()

    @contextmanager
    def between_polls(self, in_callback: Callable[[], bool], name: str) -> Iterator[None]:
        """Be the thread inside, once the polling thread has left.

        Args:
            in_callback: Whether the thread inside runs a rebalance callback, which may wait for this thread.
            name: Name of the called method, for the error.

        Raises:
            ConcurrentAccessError: The thread inside runs a rebalance callback.
            RuntimeError: Another thread is closing the consumer.
        """
        me, token = get_ident(), object()
        try:
            self._entering.add(token)
            self.wake()
            while (other := self.inside.setdefault("thread", me)) != me:
                self.check_not_closing()
                if in_callback():
                    raise ConcurrentAccessError(name, _name(me), _name(other))
                time.sleep(_PAUSE)
            self.check_not_closing()
            yield
        finally:
            try:
                if self.inside["thread"] == me:
                    del self.inside["thread"]
            except KeyError:
                pass
            self._entering.discard(token)

    @property
    def must_yield(self) -> bool:
        """True if another thread waits in `between_polls`."""
        return bool(self._entering)

    def yield_exclusive(self) -> None:
        """Let the threads that wait in `between_polls` go first, and re-enter after them.

        Raises:
            RuntimeError: Another thread is closing the consumer.
        """
        if not self._entering:
            return
        me = self.inside["thread"]
        del self.inside["thread"]
        while self._entering or self.inside.setdefault("thread", me) != me:
            self.check_not_closing()
            time.sleep(_PAUSE)

    # --- The end ------------------------------------------------------------------------------------

    @property
    def forked(self) -> bool:
        """True if this process is a child of the process that created the consumer."""
        return os.getpid() != self._pid

    def check_usable(self, closed: str = "Consumer closed") -> None:
        """Check that the consumer may be used at all; otherwise librdkafka's handle would fail or hang.

        Args:
            closed: The error's text if it is closed.

        Raises:
            RuntimeError: It is closed, or its threads are in another process.
        """
        if self.closed:
            raise RuntimeError(closed)
        if self.forked:
            raise RuntimeError(
                "this consumer was created before a fork; create a new one in the child process"
            )

    def check_not_closing(self) -> None:
        """Check that a poll may continue.

        Raises:
            RuntimeError: Another thread is closing the consumer.
        """
        if self.closing:
            raise RuntimeError("Consumer closed")

    def end(self, me: int, timeout: float) -> None:
        """Let no call begin any more, and be the thread inside once the current call has returned.

        Args:
            me: Identifier of this thread, which leaves when it has closed the consumer.
            timeout: Seconds to wait for the thread inside.

        Raises:
            RuntimeError: That thread is still inside after `timeout` seconds; nothing has changed then.
        """
        deadline = time.monotonic() + timeout
        try:
            self.closing = True
            self.wake()
            while (other := self.inside.setdefault("thread", me)) != me and time.monotonic() < deadline:
                # Polls send no notification when they return, since that would cost time in each of them.
                time.sleep(_PAUSE)
        except BaseException:
            self.closing = False
            raise
        if other != me:
            self.closing = False
            raise RuntimeError(
                f"close() waited {timeout:.0f} s for the thread {_name(other)}, which is inside a callback "
                "of this consumer, or in a call without a time limit; end that call first"
            )


def never() -> bool:
    """Return False: the caller still waits."""
    return False


def _reset_in_child(reference: weakref.ref[AccessGuard]) -> None:
    guard = reference()
    if guard is not None:
        guard.fast_path_until = 0.0


def _name(ident: int) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return f"{thread.name} ({ident})"
    return str(ident)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[Any, _Arguments], _Result]


def shared(
    method: _Method[_Arguments, _Result], closed: str = "Consumer closed"
) -> _Method[_Arguments, _Result]:
    """Return a native method for any thread, which raises where the handle would fail or hang.

    Args:
        method: The native method.
        closed: The error's text if the consumer is closed.
    """

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        guard: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        guard.check_usable(closed)
        with guard.shared():
            return method(consumer, *args, **kwargs)

    return call


def exclusive(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a method that one thread at a time may call, and none while the consumer is being closed."""
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        guard: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        if not guard.fast_path_until:  # else nothing is due, not even the end
            guard.check_usable()
        me, inside = get_ident(), guard.inside
        if inside.get("thread") == me:  # nested, or in a signal handler
            if consumer._member.in_callback:  # noqa: SLF001 - as above
                raise RuntimeError("poll() and consume() cannot be called from a rebalance callback")
            return method(consumer, *args, **kwargs)
        try:
            # Two calls of Python less: most calls enter without waiting.
            if inside.setdefault("thread", me) != me or guard.closing:
                guard.enter(me, name)
            return method(consumer, *args, **kwargs)
        finally:
            # No entry, or another thread's: `enter` or `yield_exclusive` has raised.
            try:
                if inside["thread"] == me:
                    del inside["thread"]
            except KeyError:
                pass

    call.one_thread = True  # type: ignore[attr-defined] # for the documentation's test
    return call


def between_polls(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a method that waits until no thread is inside; the polling thread leaves for it."""

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        guard: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        guard.check_usable()
        if guard.ident == get_ident():
            return method(consumer, *args, **kwargs)  # in a callback
        member = consumer._member  # noqa: SLF001 - as above
        with guard.between_polls(lambda: member.in_callback, method.__name__):
            return method(consumer, *args, **kwargs)

    return call
