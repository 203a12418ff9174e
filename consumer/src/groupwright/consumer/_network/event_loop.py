"""An event loop in a daemon thread of its own: kafka-python's, with which its connections work."""

import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from groupwright.consumer._config.log import demote_kafka_python
from groupwright.consumer._network.kafka_python import Future, NetworkSelector


class Timer:
    """A callback that the loop will run once, unless cancelled."""

    def __init__(self, net: Any, task: Any) -> None:
        """Wrap the loop's own task."""
        self._net = net
        self._task = task

    def cancel(self) -> None:
        """Forget the callback; nothing if it has run."""
        self._net.cancel(self._task)


class Loop:
    """An event loop, and the thread that runs it."""

    def __init__(self, name: str) -> None:
        """Prepare; `start` starts the thread."""
        self.ended = False
        """Whether `end` was called."""
        self._pid = os.getpid()
        # A process that was stopped would be told of slow tasks; the driver warns of a thread that did not
        # run for long.
        self._net = NetworkSelector(client_id=name, slow_task_threshold_secs=0)
        self._thread = threading.Thread(target=self._run, name=f"groupwright-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _run(self) -> None:
        demote_kafka_python()
        try:
            self._net.run_forever()
        finally:
            self._net.close()

    def end(self) -> None:
        """End the thread; only from the loop's own thread."""
        self.ended = True
        self._net._stop = True  # noqa: SLF001 - `stop` waits for this thread

    def join_thread(self, timeout: float) -> None:
        """Wait until the thread has ended, at most `timeout` seconds; not at all on that thread itself.

        A loop whose thread was never started is closed.
        """
        # The collector may run a finalizer on any thread, this one too; after a fork the thread is the
        # parent's.
        if threading.current_thread() is not self._thread and os.getpid() == self._pid:
            if self._thread.ident is None:
                self._net.close()
            else:
                self._thread.join(timeout)

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` on the loop; callable from any thread. Nothing happens once it is stopped."""
        if os.getpid() != self._pid:
            return  # after a fork the thread is the parent's
        try:
            self._net.call_soon_threadsafe(lambda: function(*args) and None)
        except RuntimeError:
            if not self._net._closed:  # noqa: SLF001 - the loop has no public word for it
                raise

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Run `function` on the loop at a monotonic time; only from the loop's own thread."""
        return Timer(self._net, self._net.call_at(when, lambda: function() and None))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run on the loop; only from the loop's own thread."""
        self._net.call_soon(coroutine)

    async def sleep(self, seconds: float) -> None:
        """Wait on the loop."""
        await self._net.sleep(seconds)

    def future(self) -> Any:
        """Return something to await that is settled by ``success(value)``."""
        return Future()
