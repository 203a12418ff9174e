"""One rebalance as this member saw it: when each phase began and ended, and what came of it.

The membership marks a `Timeline` while the rebalance goes on; the polling thread closes it into a
`Rebalance` and hands that to every listener. The clock is monotonic; `Rebalance.ended_at` is wall time.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from groupwright.consumer._protocol.model import Partitions

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
    JOIN_AND_SYNC = "join_and_sync"
    """Both as one, where the membership is librdkafka's (KIP-848)."""
    ASSIGN = "assign"
    """From there until the assignment was applied: committed offsets fetched, callbacks run."""


class Kind(StrEnum):
    """How a member rebalances."""

    EAGER = "eager"
    """All partitions are given up first."""
    COOPERATIVE = "cooperative"
    """Only those that move are given up (KIP-429)."""
    CONSUMER = "consumer"
    """The broker assigns (KIP-848)."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the group's leader knows of the assignment that it made; of a rebalance of two rounds, of both together."""

    members: int
    """Members of the group."""
    moved: int
    """Partitions taken from a member that had them and could have kept them."""
    moves_needed: int
    """The fewest that an assignment as even as can be would have taken so."""
    imbalance: int
    """How many partitions wider than it must be the gap is between the member with the most and that with the fewest."""


OTHERS = "the group is rebalancing"
"""All that a member knows whom the coordinator told; the leader may know more."""


@dataclass(slots=True)
class Timeline:
    """The rebalance under way. Phases are marked on the membership's thread, the last on the poller's."""

    reason: str
    started: float
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    before: Partitions = field(default_factory=dict)
    """What was owned when it began."""
    leadership: Leadership | None = None
    _start_step: tuple[Phase, float] | None = None

    def begin(self, phase: Phase, now: float) -> None:
        """Start a phase, which ends one that was cut short; begun again (a retry), it goes on from its first begin."""
        if self._start_step is not None and self._start_step[0] is not phase:
            self.end(self._start_step[0], now)
        if self._start_step is None:
            self._start_step = (phase, now)

    def end(self, phase: Phase, now: float) -> None:
        """Add the time since `begin` to the phase's total; nothing if it was not begun."""
        if self._start_step is not None and self._start_step[0] is phase:
            self.phases[phase] = self.phases.get(phase, 0.0) + now - self._start_step[1]
            self._start_step = None

    def on_leader_elected(self, change: str | None) -> None:
        """Record which members joined and left, which only the leader knows."""
        if change is not None and self.reason == OTHERS:
            self.reason = change

    def assignment_evaluated(self, leadership: Leadership) -> None:
        """Record the quality of the leader's assignment; the moves of a rebalance's rounds add up."""
        if self.leadership is not None:
            moved = self.leadership.moved + leadership.moved
            needed = self.leadership.moves_needed + leadership.moves_needed
            leadership = replace(leadership, moved=moved, moves_needed=needed)
        self.leadership = leadership


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
    duration: float | None
    """Seconds from the trigger to the end; None under KIP-848, where nothing tells when it began."""
    phases: Mapping[Phase, float]
    """Seconds in each phase that was gone through."""
    partitions: Partitions
    """What is owned after it."""
    ended_at: float
    """Wall-clock time of its end, in seconds since the epoch."""
    error: str | None = None
    kind: Kind = Kind.EAGER
    partitions_before: Partitions = field(default_factory=dict)
    """What was owned when it began."""
    leadership: Leadership | None = None
    """Where this member led, and the group is not too large to look at."""


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


class ClientListener(Listener, Protocol):
    """Hears of commits too."""

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit has ended, after so many seconds (None: not known); `error` is the name of what it failed with.

        Called on the thread that polls, or on the one that commits synchronously.
        """


class Listeners(list[Listener]):
    """Those who hear what a consumer tells. What one raises is logged, and goes no further."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Start with nobody."""
        super().__init__()
        self._log = log

    def notify(self, method: str, *arguments: object) -> None:
        """Call a method of all that have it."""
        for listener in tuple(self):  # one may remove itself
            hear = getattr(listener, method, None)
            if hear is None:
                continue
            try:
                hear(*arguments)
            except Exception:  # noqa: BLE001 - a listener's failure is not the consumer's
                self._log.exception("the listener %r raised; the consumer goes on", listener)
