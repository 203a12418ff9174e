"""The network thread: a daemon thread with an event loop, on which the connections run.

Coroutines await a `Future`: a result, a time, or a socket that is ready. The loop wakes for these and for
calls of other threads alone.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from groupwright.consumer._network.connection_errors import RequestTimedOutError
from groupwright.core.locking import locked

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_CANCELLED_TIMERS = 20
"""Cancelled timers that are kept until they would be due, unless they are fewer than the others."""
_LONGEST_SLEEP = 3_600.0  # seconds; the system's call takes no infinite time

_log = logging.getLogger("groupwright.consumer")


class Future:
    """A result that coroutines await. For the network thread."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        """Create it without a result."""
        self.is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], object]] = []

    def success(self, value: Any = None) -> None:
        """Set the result; no effect if there is one."""
        self._finish(value, None)

    def failure(self, error: BaseException) -> None:
        """Set the exception that `await` raises; no effect if there is a result."""
        self._finish(None, error)

    def then(self, callback: Callable[[], object]) -> None:
        """Call a function once there is a result."""
        if self.is_done:
            callback()
        else:
            self._callbacks.append(callback)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if not self.is_done:
            self.is_done, self._value, self._error = True, value, error
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback()

    def __await__(self) -> Generator[Future, None, Any]:
        """Wait for the result."""
        if not self.is_done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value


class Timer:
    """A scheduled callback, which runs once unless it is cancelled. For the network thread."""

    __slots__ = ("_loop", "function")

    def __init__(self, loop: Loop, function: Callable[[], object]) -> None:
        """Create it for a function, which becomes None when the timer has run or is cancelled."""
        self._loop = loop
        self.function: Callable[[], object] | None = function

    def cancel(self) -> None:
        """Cancel the callback; no effect if it has run."""
        if self.function is not None:
            self.function = None
            self._loop.timer_cancelled()


class Loop:
    """An event loop, and the network thread that runs it.

    Any thread may call `start`, `join_thread` and `call_soon`; the rest is for the network thread.
    """

    def __init__(self, name: str) -> None:
        """Create the loop; `start` starts the thread, whose name contains `name`."""
        self.ended = False
        """True if `end` was called."""
        self._pid = os.getpid()
        self._calls: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._cancelled_timers = 0
        self._numbers = itertools.count()
        self._tasks: set[Coroutine[Any, Any, None]] = set()
        self._selector = selectors.DefaultSelector()
        self._ready: dict[tuple[int, int], Future] = {}
        """By descriptor and event: what waits for it."""
        self._alarm, self._bell = socket.socketpair()
        self._alarm.setblocking(False)  # noqa: FBT003 - the socket module's own way
        self._bell.setblocking(False)  # noqa: FBT003 - as above
        self._selector.register(self._alarm, READ)
        self._work: dict[str, Future] = {}
        """By name: the blocking functions that run on threads of their own."""
        self._is_awake = False
        """True if the loop runs the calls before it sleeps again."""
        self._is_closed = False
        self._lock = threading.RLock()  # a signal handler may ring
        """Held by a thread that rings, or that closes the loop."""
        self._thread = threading.Thread(target=self._run, name=f"groupwright-{name}", daemon=True)

    # --- Any thread

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def started(self) -> bool:
        """True if the thread was started; it may have ended since."""
        return self._thread.ident is not None

    def join_thread(self, timeout: float) -> None:
        """Wait until the thread has ended, for `timeout` seconds at most; on that thread, return at once.

        If the thread was never started, close the loop.
        """
        # The garbage collector runs finalizers on any thread, also on this one. In a forked child the thread
        # does not exist.
        if threading.current_thread() is not self._thread and os.getpid() == self._pid:
            if self.started:
                self._thread.join(timeout)
            else:
                self._close()

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` on the network thread. No effect after the loop has ended, and in a forked child."""
        if os.getpid() != self._pid or self._is_closed:
            return  # in a forked child the thread does not exist
        self._calls.append(lambda: function(*args))
        if not self._is_awake:
            self._ring()

    @locked
    def _ring(self) -> None:
        """Wake the loop."""
        if not self._is_closed:
            self._is_awake = True
            try:
                self._bell.send(b"\0")
            except BlockingIOError:
                pass  # it has been rung often enough
            except BaseException:  # of a signal handler, maybe before `send`
                self._is_awake = False
                raise

    # --- The network thread

    def end(self) -> None:
        """End the thread after the present callback."""
        self.ended = True

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Run `function` at the monotonic time `when`, in seconds."""
        timer = Timer(self, function)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def timer_cancelled(self) -> None:
        """Drop the cancelled timers if they are many: most requests are answered long before their time."""
        self._cancelled_timers += 1
        if self._cancelled_timers > max(_CANCELLED_TIMERS, len(self._timers) // 2):
            self._timers = [each for each in self._timers if each[2].function is not None]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine; no effect after `end`."""
        if self.ended:
            coroutine.close()  # else Python warns that it was never awaited
        else:
            self._tasks.add(coroutine)
            self._calls.append(lambda: self._step(coroutine))

    def future(self) -> Any:
        """Return an awaitable, which ``success(value)`` or ``failure(exception)`` completes."""
        return Future()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the loop."""
        future = Future()
        timer = self.call_at(time.monotonic() + seconds, future.success)
        try:
            await future
        finally:
            timer.cancel()

    async def before(self, deadline: float, future: Future) -> Any:
        """Return the result of a future.

        Raises:
            RequestTimedOutError: There is none at the monotonic time `deadline`.
        """
        either = Future()
        future.then(either.success)
        timer = self.call_at(deadline, lambda: either.failure(RequestTimedOutError("no response in time")))
        try:
            await either
        finally:
            timer.cancel()
        return await future

    async def wait(self, sock: socket.socket, event: int) -> None:
        """Wait until a socket can be read or written, or `forget` is called for it."""
        future = self._ready.setdefault((sock.fileno(), event), Future())
        self._watch(sock)
        await future

    def forget(self, sock: socket.socket) -> None:
        """End the waits for a socket; call it before the socket is closed."""
        for event in (READ, WRITE):
            if (future := self._ready.pop((sock.fileno(), event), None)) is not None:
                self._calls.append(future.success)
        self._watch(sock)

    async def in_thread(self, name: str, work: Callable[[], Any], deadline: float) -> Any:
        """Run a blocking function on a thread of its own, and return its result.

        While one of the same name runs, its result is awaited instead: it may hang for longer than callers
        wait, and each attempt would leave another thread behind.

        Raises:
            RequestTimedOutError: There is none at the monotonic time `deadline`.
        """
        if (running := self._work.get(name)) is not None:
            return await self.before(deadline, running)
        future = Future()
        future.then(lambda: self._work.pop(name))

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - it is raised again, on the loop
                self.call_soon(future.failure, error)
            else:
                self.call_soon(future.success, result)

        threading.Thread(target=run, name=f"groupwright-{name}", daemon=True).start()
        self._work[name] = future
        return await self.before(deadline, future)

    # --- The loop

    def _run(self) -> None:
        try:
            while not self.ended:
                self._turn()
        finally:
            self._close()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._pause()):
            if key.fileobj is self._alarm:
                with contextlib.suppress(BlockingIOError):
                    self._alarm.recv(64)
                continue
            for event in (READ, WRITE):
                if events & event and (future := self._ready.pop((key.fd, event), None)) is not None:
                    self._calls.append(future.success)
            self._watch(key.fileobj)
        self._is_awake = True
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.function is None:
                self._cancelled_timers -= 1
            else:
                self._calls.append(timer.function)
                timer.function = None
        for _ in range(len(self._calls)):
            if self.ended:
                return
            self._call(self._calls.popleft())

    def _pause(self) -> float | None:
        """Return the seconds to sleep; None until a socket is ready or another thread calls."""
        while self._timers and self._timers[0][2].function is None:
            heapq.heappop(self._timers)
            self._cancelled_timers -= 1
        self._is_awake = False
        if self._calls:  # a call that is added later rings
            return 0.0
        if not self._timers:
            return None
        return min(max(0.0, self._timers[0][0] - time.monotonic()), _LONGEST_SLEEP)

    def _watch(self, sock: Any) -> None:
        """Have the selector report the events that are waited for, and no others."""
        descriptor = sock.fileno()
        events = sum(event for event in (READ, WRITE) if (descriptor, event) in self._ready)
        present = self._selector.get_map().get(descriptor)
        if present is None:
            if events:
                self._selector.register(sock, events)
        elif not events:
            self._selector.unregister(sock)
        elif events != present.events:
            self._selector.modify(sock, events)

    def _call(self, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception:  # noqa: BLE001 - whatever it is, heartbeats must go on
            _log.exception("the network thread goes on after a defect")

    def _step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine up to its next `await` of a future without a result."""
        if coroutine not in self._tasks:
            return  # the loop has ended
        try:
            future = coroutine.send(None)
        except BaseException as error:
            self._tasks.discard(coroutine)
            if not isinstance(error, StopIteration):
                raise
        else:
            future.then(lambda: self._calls.append(lambda: self._step(coroutine)))

    @locked
    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            with contextlib.suppress(Exception):
                task.close()
        self._calls.clear()
        self._timers.clear()
        self._ready.clear()
        self._selector.close()
        self._alarm.close()
        self._bell.close()
