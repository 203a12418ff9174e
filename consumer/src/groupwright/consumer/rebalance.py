"""One rebalance as this member saw it: when each phase began and ended, and what came of it.

The membership marks a `Timeline` while the rebalance goes on; the polling thread closes it into a
`Rebalance` and hands that to every listener. The clock is monotonic; `Rebalance.ended_at` is wall time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from groupwright.consumer.protocol import Partitions

Clock = Callable[[], float]


class Outcome(StrEnum):
    """How a rebalance ended."""

    COMPLETED = "completed"
    """A new assignment was applied."""
    LOST = "lost"
    """A new assignment was applied, after the partitions owned before had been lost."""
    FAILED = "failed"
    """The coordinator refused the member or its assignor failed; poll raised the reason."""


class Phase(StrEnum):
    """The parts of a rebalance, in an eager one in this order.

    A cooperative one (KIP-429) revokes after it has synced, and may then go through a second round, which adds to the
    same phases. The application consumes what it keeps through all of them.
    """

    REVOKE = "revoke"
    """From the order to give partitions up until the application has done so, callbacks included."""
    JOIN = "join"
    """From the first JoinGroup sent until one was answered with a generation."""
    SYNC = "sync"
    """From there until SyncGroup brought the assignment; in the leader this includes the assignor."""
    ASSIGN = "assign"
    """From there until the assignment was applied: committed offsets fetched, callbacks run."""


@dataclass(slots=True)
class Timeline:
    """The rebalance under way. Phases are marked on the membership's thread, the last on the poller's."""

    reason: str
    started: float
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    _open: tuple[Phase, float] | None = None

    def begin(self, phase: Phase, now: float) -> None:
        """Start a phase, which ends one that was cut short; begun again (a retry), it goes on from its first begin."""
        if self._open is not None and self._open[0] is not phase:
            self.end(self._open[0], now)
        if self._open is None:
            self._open = (phase, now)

    def end(self, phase: Phase, now: float) -> None:
        """Add the time since `begin` to the phase's total; nothing if it was not begun."""
        if self._open is not None and self._open[0] is phase:
            self.phases[phase] = self.phases.get(phase, 0.0) + now - self._open[1]
            self._open = None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A finished rebalance: from its trigger to the assignment applied, or to its failure.

    The rounds of a cooperative one are told as one, once a round has taken nothing away from this member.
    """

    group: str
    client_id: str
    member_id: str
    generation: int
    protocol: str | None
    """The assignor that the group voted for; None where the rebalance failed before the vote."""
    outcome: Outcome
    reason: str
    """Why it began, in words; for logs, never for a label."""
    duration: float
    """Seconds from the trigger to the end."""
    phases: Mapping[Phase, float]
    """Seconds in each phase that was gone through."""
    partitions: Partitions
    """What is owned after it."""
    ended_at: float
    """Wall-clock time of its end, in seconds since the epoch."""
    error: str | None = None


class Listener(Protocol):
    """Hears of rebalances on the thread that polls. What it raises is logged, and goes no further."""

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were gained; `seconds` is the time that the user's callback took."""

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were given up in good order."""

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were lost: others may own them already."""

    def rebalanced(self, rebalance: Rebalance) -> None:
        """A rebalance has ended."""
