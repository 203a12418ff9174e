"""The timeline of the rebalance under way, and the listeners that receive its record.

The membership records phases in a `Timeline` during the rebalance; the polling thread converts it to a
`Rebalance` and passes that to every listener. The clock is monotonic, in seconds; `Rebalance.ended_at` is
wall time.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from groupwright.core import (
    Kind,
    Leadership,
    Outcome,
    Partitions,
    Phase,
    Rebalance,
    RebalanceListener,
    Trigger,
)

__all__ = [
    "GROUP_REBALANCING",
    "Clock",
    "Kind",
    "Leadership",
    "Listeners",
    "Outcome",
    "Phase",
    "Rebalance",
    "RebalanceListener",
    "Timeline",
    "Trigger",
]

Clock = Callable[[], float]

GROUP_REBALANCING = "the group is rebalancing"
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
        trigger: Whether this member or its group began the rebalance.
    """

    reason: str
    started: float
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    before: Partitions = field(default_factory=dict)
    leadership: Leadership | None = None
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

    def replace_reason(self, change: str | None) -> None:
        """Replace `GROUP_REBALANCING` by the change of members, which only the leader knows."""
        if change is not None and self.reason == GROUP_REBALANCING:
            self.reason = change

    def assignment_evaluated(self, leadership: Leadership) -> None:
        """Record the quality of the leader's assignment; moves are summed over the rounds of a rebalance."""
        first = self.leadership
        self.leadership = leadership if first is None else first.followed_by(leadership)


class Listeners(list[RebalanceListener]):
    """A consumer's listeners. Their exceptions are logged, and have no other effect."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Start without listeners."""
        super().__init__()
        self._log = log

    def append(self, listener: RebalanceListener) -> None:
        """Add a listener.

        Raises:
            TypeError: It is no `RebalanceListener`.
        """
        if not isinstance(listener, RebalanceListener):
            raise TypeError(
                f"a listener is a groupwright.consumer.RebalanceListener, not {type(listener).__name__}: "
                "derive the class from it"
            )
        super().append(listener)

    def notify(self, method: str, *arguments: object) -> None:
        """Call a method of all listeners."""
        for listener in tuple(self):  # one may remove itself
            try:
                getattr(listener, method)(*arguments)
            except Exception:  # noqa: BLE001 - a listener's failure is not the consumer's
                self._log.exception("the listener %r raised; the consumer continues", listener)
