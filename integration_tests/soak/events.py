"""Events of a soak that `groupwright.testing.groups` does not have."""

from dataclasses import dataclass

from groupwright.testing.groups import Event


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
class Busy(Event):
    """The member did not poll from `begun` on; written at the begin and at the end of that time."""

    begun: float


@dataclass(frozen=True, slots=True)
class Starved(Event):
    """The whole process did not run from `begun` on: it was stopped, or the machine was overloaded."""

    begun: float


@dataclass(frozen=True, slots=True)
class FaultInjected(Event):
    """A fault was injected into a member (`stop`, `continue`, `kill`, `leave`, …), the cluster or a topic."""

    what: str
    target: str
    until: float
    """The end of the injection; equal to `time` if it is instantaneous."""
