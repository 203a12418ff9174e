"""Queue of events from the network thread to the polling thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from groupwright.consumer._protocol.events import Assign, Event
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.consumer.errors import ConsumerError
from groupwright.core import LoadCheckOutcome
from groupwright.core.locking import call_locked, locked

if TYPE_CHECKING:
    from groupwright.assignors import LoadCheck


@dataclass(frozen=True, slots=True)
class Failed:
    """Raise `error` from poll; `timeline` is that of the rebalance that it ended, if one was under way."""

    error: ConsumerError
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """Return `error` from poll as a message, as librdkafka does with errors of the group."""

    error: KafkaError
    timeline: Timeline | None = None
    """The rebalance that the error ended, if one was under way."""
    repeated: bool = False
    """True if the application has received this error before, so that poll does not return it again."""


@dataclass(frozen=True, slots=True)
class LoadChecked:
    """Pass the result of a load check to the listeners."""

    generation: int
    outcome: LoadCheckOutcome
    found: LoadCheck | None = None
    """None if the check failed."""
    ended_at: float = field(default_factory=time.time)


InboxEvent = Event | Failed | Reported | LoadChecked


class Inbox:
    """A queue from the network thread to the polling thread. Safe to use from both.

    An event stays in it until it was applied. If KeyboardInterrupt ended the polling thread's call after the
    event was removed, the membership would wait for its reply forever.
    """

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        """Create an empty inbox; `wake` makes the next poll take an event, and is called for each."""
        self.events: deque[InboxEvent] = deque()
        """Queued events, oldest first; the first one may be being applied. Other classes may read without the
        lock whether it is empty."""
        self._taken: InboxEvent | None = None
        self._lock = threading.RLock()  # a signal handler may poll
        self._wakeup = Wakeup()
        self._wake = wake

    def __bool__(self) -> bool:
        """Return whether any event is queued; takes no lock, since every poll reads it."""
        return bool(self.events)

    def put(self, event: InboxEvent) -> None:
        """Append an event, and wake a thread that waits for one; a native poll ends by itself."""
        call_locked(self._lock, self.events.append, event)
        self._wakeup.notify()
        if self._wake is not None:
            self._wake()

    @locked
    def take(self) -> InboxEvent | None:
        """Return the oldest event or None; the same one until `done`. It can no longer be withdrawn."""
        self._taken = self.events[0] if self.events else None
        return self._taken

    @property
    @locked
    def first(self) -> InboxEvent | None:
        """The oldest event, or None; it is not taken, and may still be withdrawn."""
        return self.events[0] if self.events else None

    @property
    def next_assignment(self) -> Assign | None:
        """The oldest event if it is an assignment, else None."""
        event = self.first
        return event if isinstance(event, Assign) else None

    @locked
    def done(self, event: InboxEvent) -> None:
        """Remove an event that was taken and applied; no effect if it was removed before."""
        if self._taken is event:
            self._taken = None
            self.events.popleft()

    @locked
    def withdraw(self, ticket: int) -> bool:
        """Remove the event of this ticket unless it was taken; return whether it was removed."""
        for event in self.events:
            if event is not self._taken and getattr(event, "ticket", None) == ticket:
                self.events.remove(event)
                return True
        return False

    def wait(self, timeout: float, *, ignore_assignments: bool = False) -> None:
        """Return when an event is queued, or after `timeout` seconds.

        With `ignore_assignments`, an assignment at the head of the queue does not count.
        """
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            if self.events and not (ignore_assignments and self.next_assignment is not None):
                break
            self._wakeup.wait(remaining)
