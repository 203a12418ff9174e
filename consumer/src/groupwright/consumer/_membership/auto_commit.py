"""Automatic commits: their clock, and a thread that makes them while the application does not poll.

librdkafka commits every ``auto.commit.interval.ms`` by a timer, whether the application polls or processes a
message for minutes. Here the polling thread does it, since positions are read from librdkafka's handle, which
the network's thread never touches. Where the polling thread stays away, a thread made for this one commit
reads them.
"""

import math
import threading
import weakref
from dataclasses import dataclass
from typing import Protocol

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.group_membership import Handle

OVERDUE_SECONDS = 0.2
"""Seconds by which a commit is overdue before a thread is made for it: several times what a poll takes to
come by."""

_LONGEST = 60.0


@dataclass(slots=True)
class AutoCommitClock:
    """Time of the next automatic commit. It refers to nothing, so that the network's thread may keep it."""

    interval: float
    next_due: float = math.inf

    def restart(self, now: float) -> None:
        """Count the interval from now on."""
        self.next_due = now + self.interval

    def stop(self) -> None:
        """Let no commit be due any more."""
        self.interval = self.next_due = math.inf


class AutoCommitter(Protocol):
    """The part of a `Committer` that is needed here."""

    def auto_commit(self, handle: Handle) -> None:
        """Commit what the application has consumed."""


class BusyCommits:
    """Makes the commits that are overdue because the application does not poll.

    It refers to the consumer weakly: one that is dropped without `close` can be collected.
    """

    def __init__(self, clock: AutoCommitClock, committer: AutoCommitter, guard: AccessGuard) -> None:
        """Commit with `committer`, once `set_handle` was called."""
        self._clock = clock
        self._committer = weakref.ref(committer)
        self._guard = guard
        self._handle: weakref.ref[Handle] | None = None
        self._thread: threading.Thread | None = None
        self._ended = False
        # Held while a thread is made, so that `end` does not find one that has not been started.
        self._lock = threading.Lock()

    def set_handle(self, handle: Handle) -> None:
        """Note the consumer; for the polling thread."""
        if self._handle is None:
            self._handle = weakref.ref(handle)

    def check(self, now: float) -> float:
        """Have a commit made if it is overdue; return when to look again. For the network's thread."""
        overdue = self._clock.next_due + OVERDUE_SECONDS
        if now < overdue:
            return min(overdue, now + _LONGEST)
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if self._handle is not None and not (busy or self._ended or self._guard.closing):
                self._thread = threading.Thread(
                    target=_commit,
                    args=(self._committer, self._handle),
                    name="groupwright-commit",
                    daemon=True,
                )
                self._thread.start()
        return now + OVERDUE_SECONDS

    def end(self, timeout: float) -> None:
        """Make no more commits, and wait for one that is being made."""
        self._clock.stop()
        with self._lock:
            self._ended = True
        if self._thread is not None:
            self._thread.join(timeout)


def _commit(committer: "weakref.ref[AutoCommitter]", handle: "weakref.ref[Handle]") -> None:
    found, by = handle(), committer()
    if found is not None and by is not None:
        by.auto_commit(found)
