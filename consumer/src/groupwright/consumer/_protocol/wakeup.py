"""Wake-up between threads, safe from exceptions of signal handlers.

`threading.Condition` and `threading.Event` are Python: CPython runs signal handlers between their bytecodes,
on the main thread, which often is the one that polls. A handler that raises right after a condition has
acquired its lock, or right before it releases the lock, leaves the lock held, and the membership's thread
blocks forever. A `threading.Lock` is safe: CPython acquires and releases it within one bytecode each.
"""

from __future__ import annotations

import contextlib
import threading


class Wakeup:
    """Wakes the waiting thread, or the next one to wait; several notifications before a wait count as one.

    It carries no data: the woken thread checks its own state.
    """

    __slots__ = ("_asleep",)

    def __init__(self) -> None:
        """Start without a notification."""
        self._asleep = threading.Lock()
        """Held until `notify` releases it. `wait` acquires it, with one call into C."""
        self._asleep.acquire()

    def notify(self) -> None:
        """End a wait, or the next one; callable from any thread, and from a signal handler."""
        with contextlib.suppress(RuntimeError):  # notified already, and no thread has waited since
            self._asleep.release()

    def wait(self, seconds: float) -> None:
        """Return once notified, or after `seconds`; for one thread at a time."""
        self._asleep.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))
