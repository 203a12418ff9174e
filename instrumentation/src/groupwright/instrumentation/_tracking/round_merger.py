"""Joins the two rounds of a cooperative rebalance, of which Groupwright's consumer tells one by one. Pure: no clock.

In the first round members give up what moves; in the second, others are assigned it (KIP-429). A member that gives
something up tells of both as one. The others hear of each round by itself, and nothing says whether another follows: so
the end of a first round is held for `settle` seconds before it counts as the rebalance's.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from groupwright.instrumentation._tracking.rebalance_tracker import COOPERATIVE
from groupwright.instrumentation.interfaces import Leadership, Partitions

_OTHERS = "the group is rebalancing"
"""Why a second round begins, as far as the member knows."""


@dataclass(frozen=True, slots=True)
class Round:
    """A `RebalanceRecord` with all of its optional members, read once."""

    generation: int
    member_id: str | None
    protocol: str | None
    kind: str | None
    outcome: str
    reason: str | None
    duration: float | None
    phases: Mapping[str, float]
    partitions_before: Partitions
    partitions: Partitions
    ended_at: float
    leadership: Leadership | None
    error: str | None


def read_round(rebalance: Any, partitions_before: Partitions) -> Round:
    """Read a record, of which nothing is kept if any of it cannot be read.

    Args:
        rebalance: a `RebalanceRecord`.
        partitions_before: what was owned when it began, for a record that does not say.
    """
    kind = getattr(rebalance, "kind", None)
    return Round(
        generation=int(rebalance.generation),
        member_id=getattr(rebalance, "member_id", None),
        protocol=rebalance.protocol,
        kind=None if kind is None else str(kind),
        outcome=str(rebalance.outcome),
        reason=getattr(rebalance, "reason", None),
        duration=None if rebalance.duration is None else float(rebalance.duration),
        phases={str(phase): float(seconds) for phase, seconds in rebalance.phases.items()},
        partitions_before=getattr(rebalance, "partitions_before", partitions_before),
        partitions={str(topic): tuple(numbers) for topic, numbers in rebalance.partitions.items()},
        ended_at=float(rebalance.ended_at),
        leadership=getattr(rebalance, "leadership", None),
        error=getattr(rebalance, "error", None),
    )


class Rounds:
    """One consumer's rebalances. Each input returns those that it has ended, oldest first. Not thread-safe."""

    def __init__(self, settle: float) -> None:
        """Hold a first round's end for so many seconds."""
        self._settle = settle
        self._held: Round | None = None
        self.settles_at = math.inf
        """When `settle` has something to end."""

    def add(self, ended: Round, now: float) -> list[Round]:
        """Take a round that has ended now."""
        until, told = self.settles_at, self.end()
        began = now if ended.duration is None else now - ended.duration
        if told and began <= until and _may_follow(ended):
            return [_joined(told[0], ended)]
        if _may_go_on(ended):
            self._held, self.settles_at = ended, now + self._settle
            return told
        return [*told, ended]

    def settle(self, now: float) -> list[Round]:
        """End what was held long enough."""
        return self.end() if now >= self.settles_at else []

    def end(self) -> list[Round]:
        """End what is held."""
        held, self._held, self.settles_at = self._held, None, math.inf
        return [] if held is None else [held]


def _may_go_on(ended: Round) -> bool:
    return ended.kind == COOPERATIVE and ended.outcome == "completed" and "revoke" not in ended.phases


def _may_follow(ended: Round) -> bool:
    return ended.kind == COOPERATIVE and ended.outcome == "completed" and ended.reason == _OTHERS


def _joined(first: Round, second: Round) -> Round:
    durations = (first.duration, second.duration)
    # The application consumed what it keeps all the while, in the time between the rounds too.
    began = first.ended_at - (first.duration or 0.0)
    return replace(
        second,
        reason=first.reason,
        duration=None if None in durations else second.ended_at - began,
        phases=_sum([first.phases, second.phases]),
        partitions_before=first.partitions_before,
        leadership=_together(first.leadership, second.leadership),
    )


def _sum(phases: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in phases:
        for phase, seconds in each.items():
            total[phase] = total.get(phase, 0.0) + seconds
    return total


def _together(first: Leadership | None, second: Leadership | None) -> Leadership | None:
    if first is None or second is None:
        return second or first
    return Leadership(
        members=second.members,
        moved=first.moved + second.moved,
        moves_needed=first.moves_needed + second.moves_needed,
        imbalance=second.imbalance,
    )
