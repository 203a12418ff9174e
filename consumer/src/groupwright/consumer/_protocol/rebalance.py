"""The timeline of the rebalance under way, and the listeners that receive its record.

The membership marks phases in a `Timeline` during the rebalance; the polling thread makes a `Rebalance` of it
and passes that to every listener. The clock is monotonic; `Rebalance.ended_at` is wall time.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
    "OTHERS",
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
    trigger: Trigger = field(init=False)
    _start_step: tuple[Phase, float] | None = None

    def __post_init__(self) -> None:
        """Derive the trigger, which stays as it is when the leader's knowledge changes the reason."""
        self.trigger = Trigger.GROUP if self.reason is OTHERS else Trigger.MEMBER

    def begin(self, phase: Phase, now: float) -> None:
        """Start a phase and end any other. A retry of the same phase continues from its first start."""
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


class Listeners(list[RebalanceListener]):
    """A consumer's listeners. An exception that one raises is logged and goes no further."""

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
                self._log.exception("the listener %r raised; the consumer goes on", listener)
