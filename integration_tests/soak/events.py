"""Events that the soak's processes write to their histories, stamped with the machine's monotonic clock."""

from dataclasses import dataclass

from groupwright.testing.groups import Event, HistoryWriter, now
from groupwright.testing.groups import Partition as Key

__all__ = ["KINDS", "Event", "HistoryWriter", "Key", "now"]


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A member process of `group` started."""

    group: str
    name: str
    instance: str | None
    """The ``group.instance.id`` of a static member."""
    assignor: str
    commits: str
    """Kind of commits: auto, sync, async, store (`store_offsets`) or message (`commit(message=…)`)."""
    guest: bool = False
    """True if the member lacks the right to read the forbidden topic."""


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """Partitions were assigned: on_assign was entered."""

    partitions: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """Partitions were revoked or lost: on_revoke or on_lost is about to return."""

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
    """The poll entered at `polled` returned a message."""

    polled: float
    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class EndReached(Event):
    """The poll entered at `polled` returned the end of a partition (`enable.partition.eof`)."""

    polled: float
    key: Key
    offset: int
    """The next message's offset."""


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """The member sought to another offset."""

    key: Key
    offset: int


@dataclass(frozen=True, slots=True)
class ErrorReturned(Event):
    """A poll returned an error as a message."""

    code: str
    """The error's name."""
    topic: str | None
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted(Event):
    """A signal handler's exception propagated from the poll entered at `polled`."""

    polled: float


@dataclass(frozen=True, slots=True)
class WakeupRaised(Event):
    """A poll raised WakeupError."""


@dataclass(frozen=True, slots=True)
class Closing(Event):
    """Another thread of the member calls close."""


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit was answered."""

    begun: float | None
    """The time of the call; None if only the result is known (`on_commit`)."""
    offsets: dict[Key, int]
    """The next offset to be read, by partition."""
    error: str | None


@dataclass(frozen=True, slots=True)
class Busy(Event):
    """The member did not poll from `begun` on; written at the begin and at the end of that time."""

    begun: float


@dataclass(frozen=True, slots=True)
class Starved(Event):
    """The whole process did not run from `begun` on: it was stopped, or the machine was overloaded."""

    begun: float


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Poll, commit, seek or close raised an exception."""

    during: str
    error: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The member closed, and its process is about to end."""


@dataclass(frozen=True, slots=True)
class Produced(Event):
    """A message was acknowledged to the producer."""

    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class FaultInjected(Event):
    """A fault was injected into a member (`stop`, `continue`, `kill`, `leave`, …), the cluster or a topic."""

    what: str
    target: str
    until: float
    """The end of the injection; equal to `time` if it is instantaneous."""


KINDS: tuple[type[Event], ...] = (
    *(Started, Assigned, Revoked, Rebalanced, Consumed, EndReached, Sought, ErrorReturned, Interrupted),
    *(WakeupRaised, Closing, Committed, Busy, Starved, Failed, Ended, Produced, FaultInjected),
)
