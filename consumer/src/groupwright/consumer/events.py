"""What the membership tells the application, to be applied by the thread that polls.

librdkafka's handle belongs to one thread at a time, and rebalance callbacks run inside `poll` (as users of
confluent-kafka expect). So the membership never touches either: it puts events into an `Inbox`, and
`Consumer` takes them between two native polls.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from groupwright.consumer.bell import Bell
from groupwright.consumer.errors import ConsumerError
from groupwright.consumer.protocol import Identity, Offsets, Partitions
from groupwright.consumer.rebalance import Timeline


@dataclass(frozen=True, slots=True)
class Revoke:
    """Give `partitions` up; when `lost`, they may have another owner already.

    The membership waits for `Membership.applied` with this ticket before it goes on.
    """

    ticket: int
    partitions: Partitions
    lost: bool
    identity: Identity = field(default_factory=Identity)
    """Who may still commit them; in a cooperative rebalance, the member of the new generation."""
    cooperative: bool = False
    """Whether what is owned besides stays, and is consumed all the while."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Own what was `gained` from now on, each partition starting at its committed offset where it has one."""

    ticket: int
    gained: Partitions
    owned: Partitions
    """All that is owned with it; in an eager rebalance nothing else."""
    offsets: Offsets
    identity: Identity
    timeline: Timeline | None
    """That of the rebalance which this ends; None if it goes on in another round (KIP-429)."""
    cooperative: bool = False


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


@dataclass(frozen=True, slots=True)
class TopicUnavailable:
    """Return the error of a subscribed topic, or of a regular expression that matches none, from poll as a message."""

    topic: str
    error: int


@dataclass(frozen=True, slots=True)
class PollExceeded:
    """The application did not poll for `max.poll.interval.ms`, and the member has left the group."""

    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The member is out of its group; nothing more will come."""


Event = Revoke | Assign | Failed | Reported | TopicUnavailable | PollExceeded | Closed


class Inbox:
    """A queue from the membership's thread to the one that polls. Safe to use from both.

    An event stays in it until it was dealt with: Ctrl-C may come between any two steps of the thread that polls, and
    an event which was taken out and then forgotten would leave the membership waiting for ever.
    """

    def __init__(self) -> None:
        """Make an empty inbox."""
        self.events: deque[Event] = deque()
        """What waits or is being dealt with, oldest first. Its truth may be asked without the lock; the rest is for the
        methods."""
        self._taken: Event | None = None
        self._lock = threading.RLock()  # a signal handler may poll
        self._bell = Bell()

    def __bool__(self) -> bool:
        """Whether anything waits; takes no lock, since every poll asks."""
        return bool(self.events)

    def put(self, event: Event) -> None:
        """Add an event, and wake whoever waits for one."""
        with self._lock:
            self.events.append(event)
        self._bell.ring()

    def take(self) -> Event | None:
        """Return the oldest event, or None; the same one again until it is `done`, and it can no longer be withdrawn."""
        with self._lock:
            self._taken = self.events[0] if self.events else None
            return self._taken

    @property
    def next_gains(self) -> Assign | None:
        """The assignment that comes next, if that is one."""
        with self._lock:
            event = self.events[0] if self.events else None
            return event if isinstance(event, Assign) else None

    def done(self, event: Event) -> None:
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

    def wait(self, timeout: float, *, but_for_gains: bool = False) -> None:
        """Return when an event is there, perhaps one that is no assignment, or `timeout` seconds are over."""
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            if self.events and not (but_for_gains and self.next_gains is not None):
                break
            self._bell.wait(remaining)
