"""A wake-up between threads that the exception of a signal handler cannot leave locked.

`threading.Condition` and `threading.Event` are Python: CPython runs signal handlers between their bytecodes, on the main thread,
which often is the one that polls. One that raises right after a condition has taken its lock, or right before the lock is
given back, leaves it held, and the membership's thread waits for it for ever. A `threading.Lock` in a `with` statement has no
such place: CPython takes and gives it back within one bytecode each.
"""

import contextlib
import threading


class Bell:
    """Rings once for whoever waits; a ring that nobody has waited for yet is kept, and any more until then are one.

    Of what it rings about, the thread that waits looks at facts of its own.
    """

    __slots__ = ("_silence",)

    def __init__(self) -> None:
        """Start silent."""
        self._silence = threading.Lock()
        """Held until the bell rings. It is taken by `wait`, with one call into C, and given back by `ring`."""
        self._silence.acquire()

    def ring(self) -> None:
        """End a wait, or the next one; callable from any thread, and from a signal handler."""
        with contextlib.suppress(RuntimeError):  # it has rung already, and nobody has waited since
            self._silence.release()

    def wait(self, seconds: float) -> None:
        """Return when the bell rings, or when so many seconds are over; for one thread at a time."""
        self._silence.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))
