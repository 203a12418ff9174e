"""Queue of events from the network thread to the polling thread."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from confluent_kafka import KafkaError

from groupwright.consumer._protocol.events import Assign, Event
from groupwright.consumer._protocol.rebalance import Timeline
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.consumer.errors import ConsumerError


@dataclass(frozen=True, slots=True)
class Failed:
    """Raise `error` from poll; `timeline` is that of the rebalance that it ended, if one was under way."""

    error: ConsumerError
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """Return `error` from poll as a message, as librdkafka hands out a group's errors."""

    error: KafkaError
    timeline: Timeline | None = None
    """That of the rebalance that the error ended, if one was under way."""
    repeated: bool = False
    """Whether the application has had this error already, and is not given it again."""


InboxEvent = Event | Failed | Reported


class Inbox:
    """A queue from the membership's thread to the one that polls. Safe to use from both.

    An event stays in it until it was dealt with: Ctrl-C may come between any two steps of the thread that
    polls, and an event which was taken out and then forgotten would leave the membership waiting for ever.
    """

    def __init__(self) -> None:
        """Make an empty inbox."""
        self.events: deque[InboxEvent] = deque()
        """What waits or is being dealt with, oldest first. Its truth may be asked without the lock; the rest
        is for the methods."""
        self._taken: InboxEvent | None = None
        self._lock = threading.RLock()  # a signal handler may poll
        self._wakeup = Wakeup()

    def __bool__(self) -> bool:
        """Whether anything waits; takes no lock, since every poll asks."""
        return bool(self.events)

    def put(self, event: InboxEvent) -> None:
        """Add an event, and wake whoever waits for one."""
        with self._lock:
            self.events.append(event)
        self._wakeup.notify()

    def take(self) -> InboxEvent | None:
        """Return the oldest event or None; the same one until it is `done`. It can no longer be withdrawn."""
        with self._lock:
            self._taken = self.events[0] if self.events else None
            return self._taken

    @property
    def next_assignment(self) -> Assign | None:
        """The assignment that comes next, if that is one."""
        with self._lock:
            event = self.events[0] if self.events else None
            return event if isinstance(event, Assign) else None

    def done(self, event: InboxEvent) -> None:
        """Forget an event that was taken and dealt with; nothing if that was done already."""
        with self._lock:
            if self._taken is event:
                self._taken = None
                self.events.popleft()

    def withdraw(self, ticket: int) -> bool:
        """Take an event back that nobody has taken yet; return whether that succeeded."""
        with self._lock:
            for event in self.events:
                if event is not self._taken and getattr(event, "ticket", None) == ticket:
                    self.events.remove(event)
                    return True
        return False

    def wait(self, timeout: float, *, ignore_assignments: bool = False) -> None:
        """Return when an event is there, perhaps one that is no assignment, or `timeout` seconds are over."""
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            if self.events and not (ignore_assignments and self.next_assignment is not None):
                break
            self._wakeup.wait(remaining)
