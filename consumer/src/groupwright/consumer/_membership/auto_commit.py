"""Automatic commits: their clock, and a thread that makes them while the application does not poll.

librdkafka commits every ``auto.commit.interval.ms`` by a timer, whether the application polls or not. Here
the polling thread commits, since positions are read from librdkafka's handle, which the network thread never
uses. If the application does not poll, a new thread reads the positions and commits, once.
"""

from __future__ import annotations

import math
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.handle import Handle
from groupwright.core.locking import locked

OVERDUE_SECONDS = 0.2
"""Seconds by which a commit must be overdue before a thread is started for it: several native polls."""

_LONGEST_INTERVAL = 60.0
"""Longest time in seconds between two checks."""


@dataclass(slots=True)
class AutoCommitClock:
    """Time of the next automatic commit, in monotonic seconds.

    The network thread may keep a reference to it.
    """

    interval: float
    next_due: float = math.inf

    def restart(self, now: float) -> None:
        """Start a new interval."""
        self.next_due = now + self.interval

    def stop(self) -> None:
        """Make no commit due any more."""
        self.interval = self.next_due = math.inf


class AutoCommitter(Protocol):
    """The part of a `Committer` that is needed here."""

    def auto_commit(self, handle: Handle) -> None:
        """Commit what the application has consumed."""


class BusyCommits:
    """Makes the commits that are overdue because the application does not poll.

    It has a weak reference to the consumer, so that one that is not closed can be garbage-collected.
    """

    def __init__(self, clock: AutoCommitClock, committer: AutoCommitter, guard: AccessGuard) -> None:
        """Commit with `committer`, once `set_handle` was called."""
        self._clock = clock
        self._committer = weakref.ref(committer)
        self._guard = guard
        self._handle: weakref.ref[Handle] | None = None
        self._thread: threading.Thread | None = None
        self._ended = False
        # Held while a thread is created and started, so that `end` does not join one that is not started.
        self._lock = threading.RLock()  # a signal handler may close

    def set_handle(self, handle: Handle) -> None:
        """Set the consumer's handle, before the network thread starts."""
        self._handle = weakref.ref(handle)

    def check(self, now: float) -> float:
        """Start a thread for a commit that is overdue; return when to call this again.

        For the network thread.
        """
        overdue = self._clock.next_due + OVERDUE_SECONDS
        if now < overdue:
            return min(overdue, now + _LONGEST_INTERVAL)
        self._start_thread()
        return now + OVERDUE_SECONDS

    @locked
    def _start_thread(self) -> None:
        """Start a thread that commits, unless one is running."""
        busy = self._thread is not None and self._thread.is_alive()
        if self._handle is not None and not (busy or self._ended or self._guard.closing):
            self._thread = threading.Thread(
                target=_commit,
                args=(self._committer, self._handle),
                name="groupwright-commit",
                daemon=True,
            )
            self._thread.start()

    def end(self, timeout: float) -> None:
        """Start no more threads, and wait up to `timeout` seconds for a running one."""
        self._clock.stop()
        self._start_no_more()
        if self._thread is not None:
            self._thread.join(timeout)

    @locked
    def _start_no_more(self) -> None:
        self._ended = True


def _commit(committer: weakref.ref[AutoCommitter], handle: weakref.ref[Handle]) -> None:
    live_handle, live_committer = handle(), committer()
    if live_handle is not None and live_committer is not None:
        with suppress(RuntimeError):  # the consumer was closed meanwhile, which commits
            live_committer.auto_commit(live_handle)
