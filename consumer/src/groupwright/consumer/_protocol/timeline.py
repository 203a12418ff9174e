"""Timeline: how long each phase of one rebalance takes, and what else listeners learn of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupwright.core import Leadership, Partitions, Phase, Trigger

GROUP_REBALANCING = "members or partitions changed"
"""Reason of a rebalance that REBALANCE_IN_PROGRESS has announced; the leader replaces it by a better one."""


@dataclass(slots=True)
class Timeline:
    """Phases of the rebalance under way.

    The network thread records them; the polling thread ends the last one.

    Attributes:
        reason: Why this member joins again, in words.
        started: When the rebalance began, in monotonic seconds.
        phases: Seconds spent in each phase.
        lost: Whether partitions were lost in it.
        before: The partitions that were owned when it began.
        leadership: The leader's measurements of its assignment; None in other members.
        undecodable: By member id, the reason why the leader could not decode a subscription or user data, in
            any round.
        assigned_by_broker: Whether the broker assigns in the last round, since the group has KIP-848 members.
        trigger: Whether this member or its group began the rebalance.
    """

    reason: str
    started: float
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    before: Partitions = field(default_factory=dict)
    leadership: Leadership | None = None
    undecodable: dict[str, str] = field(default_factory=dict)
    assigned_by_broker: bool = False
    trigger: Trigger = field(init=False)
    _current: tuple[Phase, float] | None = None

    def __post_init__(self) -> None:
        """Set the trigger, which `replace_reason` does not change."""
        self.trigger = Trigger.GROUP if self.reason is GROUP_REBALANCING else Trigger.MEMBER

    def begin(self, phase: Phase, now: float) -> None:
        """Start a phase, and end another one that is still open.

        If this phase is open (a retry), it continues.
        """
        if self._current is not None and self._current[0] is not phase:
            self.end(self._current[0], now)
        if self._current is None:
            self._current = (phase, now)

    def end(self, phase: Phase, now: float) -> None:
        """Add the time since `begin` to the phase's total; no effect if the phase is not open."""
        if self._current is not None and self._current[0] is phase:
            self.phases[phase] = self.phases.get(phase, 0.0) + now - self._current[1]
            self._current = None

    def assignment_computed(self, change: str | None, undecodable: Mapping[str, str]) -> None:
        """Record what only the leader knows: the members that joined and left, and the undecodable ones."""
        if change is not None and self.reason == GROUP_REBALANCING:
            self.reason = change
        self.undecodable |= undecodable

    def assignment_evaluated(self, leadership: Leadership) -> None:
        """Record the quality of the leader's assignment; moves are summed over the rounds of a rebalance."""
        first = self.leadership
        self.leadership = leadership if first is None else first.followed_by(leadership)
