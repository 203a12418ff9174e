"""The network thread: a daemon thread with kafka-python's event loop, on which its connections run."""

import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from groupwright.consumer._config.log import demote_kafka_python
from groupwright.consumer._network.kafka_python import Future, NetworkSelector


class Timer:
    """A scheduled callback, which runs once unless it is cancelled. For the network thread."""

    def __init__(self, net: Any, task: Any) -> None:
        """Wrap kafka-python's `task`."""
        self._net = net
        self._task = task

    def cancel(self) -> None:
        """Cancel the callback; no effect if it has run."""
        self._net.cancel(self._task)


class Loop:
    """An event loop, and the network thread that runs it.

    Any thread may call `start`, `join_thread` and `call_soon`; the rest is for the network thread.
    """

    def __init__(self, name: str) -> None:
        """Create the loop; `start` starts the thread, whose name contains `name`."""
        self.ended = False
        """True if `end` was called."""
        self._pid = os.getpid()
        # kafka-python's warning of slow tasks is off: it also appears after SIGSTOP. `Driver` warns of a
        # stalled thread itself.
        self._net = NetworkSelector(client_id=name, slow_task_threshold_secs=0)
        self._thread = threading.Thread(target=self._run, name=f"groupwright-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def started(self) -> bool:
        """True if the thread was started; it may have ended since."""
        return self._thread.ident is not None

    def _run(self) -> None:
        demote_kafka_python()
        try:
            self._net.run_forever()
        finally:
            self._net.close()

    def end(self) -> None:
        """End the thread after the present callback."""
        self.ended = True
        self._net._stop = True  # noqa: SLF001 - `stop` waits for this thread

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
                self._net.close()

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` on the network thread. No effect after the loop has ended, and in a forked child."""
        if os.getpid() != self._pid:
            return  # in a forked child the thread does not exist
        try:
            # Without a result: kafka-python would wait for a future, and run a coroutine.
            self._net.call_soon_threadsafe(lambda: function(*args) and None)
        except RuntimeError:
            if not self._net._closed:  # noqa: SLF001 - there is no public attribute
                raise

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Run `function` at the monotonic time `when`, in seconds."""
        return Timer(self._net, self._net.call_at(when, lambda: function() and None))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine; no effect after `end`."""
        if self.ended:
            coroutine.close()  # else Python warns that it was never awaited
        else:
            self._net.call_soon(coroutine)

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the loop."""
        await self._net.sleep(seconds)

    def future(self) -> Any:
        """Return an awaitable, which ``success(value)`` or ``failure(exception)`` completes."""
        return Future()
