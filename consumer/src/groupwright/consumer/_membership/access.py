"""Which thread is inside a call that only one at a time may make, and who wants librdkafka's handle meanwhile.

Kafka's Java consumer has the same light lock (KafkaConsumer.acquire): a second thread is refused at once, since
waiting would only hide the mistake. It is a plain attribute, so that it costs a poll next to nothing; the test and
the set have no call between them, and CPython switches threads only at calls and loops.

librdkafka's handle has a lock of its own, which confluent-kafka holds for a whole call, and which is unfair: beside
a thread that polls without a pause, another might never get it. So who wants the handle says so, and the polling
thread gives way between two native polls. A call that changes what the next poll returns (`seek`, `subscribe`,
`assign` and their like) needs more than the handle: the polling thread leaves for that time, and comes back in.
"""

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from groupwright.consumer._coordinator.inbox import Inbox, InboxEvent
from groupwright.consumer._protocol.timers import PollClock
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.consumer.errors import ConcurrentAccessError, WakeupError

_TURN = 0.05
"""Seconds that the polling thread gives way, at most, so that a slow call cannot hold a rebalance up."""

_PAUSE = 0.001
"""Seconds between two looks whether the polling thread has come out."""


class AccessGuard(PollClock):
    """The thread that polls, as long as it is inside a call; and whether one may be, still."""

    __slots__ = (
        "__weakref__",
        "_alone",
        "_entering",
        "_given_back",
        "_pid",
        "_wanting",
        "abandoned",
        "closed",
        "closing",
        "fast_path_until",
        "ident",
        "inside_seconds",
        "woken",
    )

    def __init__(self) -> None:
        """Start with nobody inside."""
        super().__init__()
        self.ident = 0
        """The thread inside, or 0. `poll` sets it by itself, the rest is for the methods."""
        self.fast_path_until = 0.0
        """Monotonic time until which `poll` has nothing to do but to poll, unless it is disturbed."""
        self.inside_seconds = 0.0
        """Time that the application has spent inside `poll` and `consume`; what needed no look at librdkafka left out."""
        self.closing = self.closed = False
        """Whether a thread closes the consumer, or has."""
        self.abandoned: Callable[[], bool] = never
        """Whether nobody waits any more for the `poll` or `consume` under way, which then ends as if its time were over."""
        self.woken = False
        """Whether `wakeup` was called, and no poll has raised for it yet."""
        self._pid = os.getpid()
        self._given_back = Wakeup()
        """Rings when a thread is done with the handle, for the one that gives way or wants to be alone."""
        self._wanting: set[object] = set()
        """One token for each thread that uses the handle beside the polling one, or waits to."""
        self._entering: set[object] = set()
        """One token for each thread that is inside instead of the polling one, or waits to be."""
        self._alone = False
        # Asking for the process id at every poll would be felt. What is registered cannot be taken back, so it is small.
        os.register_at_fork(after_in_child=functools.partial(_wake, weakref.ref(self)))

    @classmethod
    def of_a_closed_consumer(cls) -> Self:
        """Return one that lets no call begin."""
        polling = cls()
        polling.closed = True
        return polling

    def wake(self) -> None:
        """Have the next poll look at everything; callable from any thread."""
        self.fast_path_until = 0.0

    def request_wakeup(self) -> None:
        """Have the poll under way, or the next one, raise; callable from any thread and from a signal handler: no lock."""
        self.woken = True
        self.wake()  # afterwards, since `poll` looks at the flag after it has set the time

    def check_not_woken(self) -> None:
        """Check that a poll may go on.

        Raises:
            WakeupError: `wake` was called since the last such error.
        """
        if self.woken:
            self.woken = False
            raise WakeupError

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time that is spent in here as spent inside `poll` or `consume`."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.last = ended = time.monotonic()
            self.inside_seconds += ended - began

    def polled(self, now: float) -> float:
        """Return when the application last polled: `now` as long as it is inside, callbacks included (as in librdkafka)."""
        return now if self.ident else self.last

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Use the handle from any thread: the polling one gives way."""
        if self.ident == get_ident():
            yield
            return
        token = object()
        try:
            self._wanting.add(token)
            # Looked at after the token was set, and `alone` the other way round: one sees the other.
            while self._alone:
                self._give_back(token)
                time.sleep(_PAUSE)
                self._wanting.add(token)
            # Afterwards, since `poll` sets the time before it looks for tokens: one of both sees the other.
            self.wake()
            if self.closed:
                raise RuntimeError("Consumer closed")
            yield
        finally:
            self._give_back(token)

    def _give_back(self, token: object) -> None:
        # One call, so that no signal handler's exception can leave the token behind; the rest only wakes who waits.
        self._wanting.discard(token)
        self._given_back.notify()

    @contextmanager
    def exclusive(self, timeout: float) -> Iterator[bool]:
        """Have the handle without any other thread; yields whether all have come out of it within `timeout` seconds."""
        try:
            self._alone = True
            deadline = time.monotonic() + timeout
            alone = not self._wanting
            while not alone and (remaining := deadline - time.monotonic()) > 0:
                self._given_back.wait(remaining)
                alone = not self._wanting
            yield alone
        finally:
            self._alone = False

    @property
    def has_waiters(self) -> bool:
        """Whether another thread waits for the handle, or to be inside."""
        return bool(self._wanting or self._entering)

    @property
    def must_yield(self) -> bool:
        """Whether another thread waits to be inside instead of this one."""
        return bool(self._entering)

    @contextmanager
    def between_polls(self, in_callback: Callable[[], bool], name: str) -> Iterator[None]:
        """Be the thread inside, as soon as the polling one has left.

        Args:
            in_callback: Tells whether the thread inside runs a rebalance callback, which may wait for this one.
            name: The method that is called, for the error.

        Raises:
            ConcurrentAccessError: The thread inside runs a rebalance callback.
            RuntimeError: Another thread closes the consumer.
        """
        me, token = get_ident(), object()
        entered = False
        try:
            self._entering.add(token)
            self.wake()  # afterwards, since `poll` sets the time before it looks for tokens
            while True:
                self.check_not_closing()
                # No call comes between the test and the set, so no other thread does.
                if not self.ident:
                    self.ident = me
                    entered = True
                    break
                if in_callback():
                    raise ConcurrentAccessError(name, _name(me), _name(self.ident))
                time.sleep(_PAUSE)
            self.check_not_closing()  # `end` looks at `ident` after it has said so: one of both sees the other
            yield
        finally:
            if entered:
                self.ident = 0
            self._entering.discard(token)

    def yield_exclusive(self) -> None:
        """Let the threads inside that wait in `between_polls`, and come back in after them."""
        if self._entering:
            me, self.ident = self.ident, 0
            while self._entering or self.ident:
                time.sleep(_PAUSE)
            self.ident = me

    def yield_to_waiters(self) -> None:
        """Let the threads go first that want the handle now, for a turn at most."""
        asked = frozenset(self._wanting)
        if asked:
            deadline = time.monotonic() + _TURN
            while not asked.isdisjoint(self._wanting) and (remaining := deadline - time.monotonic()) > 0:
                self._given_back.wait(remaining)

    # --- The end ------------------------------------------------------------------------------------

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process that made the consumer."""
        return os.getpid() != self._pid

    def check_usable(self) -> None:
        """Check that the consumer may be used at all: librdkafka's handle would fail or hang.

        Raises:
            RuntimeError: it is closed, or its threads are another process's.
        """
        if self.closed:
            raise RuntimeError("Consumer closed")
        if self.forked:
            raise RuntimeError("this consumer was made before a fork; make a new one in the child process")

    def check_not_closing(self) -> None:
        """Check that a poll may go on.

        Raises:
            RuntimeError: another thread closes the consumer.
        """
        if self.closing:
            raise RuntimeError("Consumer closed")

    def end(self, timeout: float) -> None:
        """Let no thread begin anything more, and wait until the one inside has come out.

        Raises:
            RuntimeError: it is still inside after `timeout` seconds; nothing has changed then.
        """
        waited = 0.0
        self.closing = True
        self.wake()
        try:
            while (other := self.ident) and waited < timeout:
                time.sleep(_PAUSE)  # leaving tells nobody: that would cost each poll
                waited += _PAUSE
        except BaseException:
            self.closing = False
            raise
        if other:
            self.closing = False
            raise RuntimeError(
                f"close() waited {timeout:.0f} s for the thread {_name(other)}, which is inside a callback of this consumer, "
                "or in a call without a time limit; end that first"
            )


def never() -> bool:
    """Return False: somebody waits."""
    return False


def _wake(polling: "weakref.ref[AccessGuard]") -> None:
    found = polling()
    if found is not None:
        found.wake()


def _name(ident: int) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return f"{thread.name} ({ident})"
    return str(ident)


class WakingInbox(Inbox):
    """An inbox that `poll` need not look at: it is told."""

    def __init__(self, polling: AccessGuard) -> None:
        """Disturb this thread with each event."""
        super().__init__()
        self._guard = polling

    def put(self, event: InboxEvent) -> None:
        """Add an event, and have the next poll look at it."""
        super().put(event)
        self._guard.wake()  # afterwards, since `poll` looks at the events after it has set the time


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[Any, _Arguments], _Result]


def shared(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a native method that any thread may call; it is refused where librdkafka's handle would fail or hang."""

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        polling: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        polling.check_usable()
        with polling.shared():
            return method(consumer, *args, **kwargs)

    return call


def exclusive(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a method that one thread at a time may call, and none while another closes the consumer.

    The thread that closes waits for `ident`, so `closing` is looked at once that is set: one of both sees the other.
    """

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        polling: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        polling.check_usable()
        me = get_ident()
        while (before := polling.ident) not in {0, me}:
            polling.check_not_closing()  # the thread inside closes
            if not polling.must_yield:
                raise ConcurrentAccessError(method.__name__.lstrip("_"), _name(me), _name(before))
            time.sleep(_PAUSE)  # a call between two polls ends soon
        # Neither another thread nor Ctrl-C comes between these lines and the next or the last: there is no call.
        try:
            polling.ident = me
            if before != me:
                polling.check_not_closing()
            return method(consumer, *args, **kwargs)
        finally:
            polling.ident = before

    call.one_thread = True  # type: ignore[attr-defined] # for the documentation's test
    return call


def between_polls(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a method that waits until no other thread polls, which leaves `poll` or `consume` for that time."""

    @functools.wraps(method)
    def call(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        polling: AccessGuard = consumer._guard  # noqa: SLF001 - the class's own
        polling.check_usable()
        if polling.ident == get_ident():
            return method(consumer, *args, **kwargs)  # in a callback
        with polling.between_polls(lambda: consumer._member.in_callback, method.__name__):  # noqa: SLF001 - as above
            return method(consumer, *args, **kwargs)

    return call
