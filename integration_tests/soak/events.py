"""Events of a soak's processes, one line of a history for each, with the machine's monotonic clock."""

from dataclasses import dataclass

from groupwright.testing.groups import Event, HistoryWriter, now
from groupwright.testing.groups import Partition as Key

__all__ = ["KINDS", "Event", "HistoryWriter", "Key", "now"]


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A member's process is up, as a member of `group`."""

    group: str
    name: str
    instance: str | None
    """The ``group.instance.id`` of a static member."""
    assignor: str
    commits: str
    """How it commits: auto, sync, async, store (`store_offsets`) or message (`commit(message=…)`)."""
    guest: bool = False
    """Whether it may not read the forbidden topic."""


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """Partitions were gained: on_assign was entered."""

    partitions: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class GivenUp(Event):
    """Partitions were given up: on_revoke, or on_lost, is about to return."""

    begun: float
    partitions: tuple[Key, ...]
    lost: bool


@dataclass(frozen=True, slots=True)
class Rebalanced(Event):
    """A rebalance ended for this member."""

    generation: int
    reason: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """A message was returned by the poll that was entered at `polled`."""

    polled: float
    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Reached(Event):
    """The end of a partition (`enable.partition.eof`) was returned by the poll that was entered at `polled`."""

    polled: float
    key: Key
    offset: int
    """The next message's."""


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """The member has sought another offset."""

    key: Key
    offset: int


@dataclass(frozen=True, slots=True)
class Told(Event):
    """A poll returned an error as a message."""

    code: str
    """The error's name."""
    topic: str | None
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted(Event):
    """The exception of a signal handler left the poll that was entered at `polled`."""

    polled: float


@dataclass(frozen=True, slots=True)
class Woken(Event):
    """A poll raised WakeupError."""


@dataclass(frozen=True, slots=True)
class Closing(Event):
    """Another thread of the member calls close."""


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit was answered."""

    begun: float | None
    """When it was asked for; None where only the answer is known."""
    offsets: dict[Key, int]
    """The next offset to be read, by partition."""
    error: str | None


@dataclass(frozen=True, slots=True)
class Busy(Event):
    """From `begun` on the member did not poll; written when that begins, and when it ends."""

    begun: float


@dataclass(frozen=True, slots=True)
class Starved(Event):
    """From `begun` on the whole process did not run: it was stopped, or the machine was overloaded."""

    begun: float


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Poll, commit or close raised something."""

    during: str
    error: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The member has closed, and its process ends."""


@dataclass(frozen=True, slots=True)
class Produced(Event):
    """A message was acknowledged to the producer."""

    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Struck(Event):
    """What was done to a member (`stop`, `continue`, `kill`, `leave`, `busy`, `start`, …) or to the cluster or a topic."""

    what: str
    whom: str
    until: float
    """When it was done with; `time` for what takes no time."""


KINDS: tuple[type[Event], ...] = (
    *(Started, Assigned, GivenUp, Rebalanced, Consumed, Reached, Sought, Told, Interrupted, Woken, Closing),
    *(Committed, Busy, Starved, Failed, Ended, Produced, Struck),
)
