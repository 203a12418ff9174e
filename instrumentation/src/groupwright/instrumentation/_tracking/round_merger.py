"""Joins the two rounds of a cooperative rebalance, of which Groupwright's consumer tells one by one. Pure: no clock.

In the first round members give up what moves; in the second, others are assigned it (KIP-429). A member that gives
something up tells of both as one. The others hear of each round by itself, and nothing says whether another follows: so
the end of a first round is held for `settle` seconds before it counts as the rebalance's.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupwright.core import Kind, Leadership, Outcome, Phase, Rebalance, Trigger


class Rounds:
    """One consumer's rebalances. Each input returns those that it has ended, oldest first. Not thread-safe."""

    def __init__(self, settle: float) -> None:
        """Hold a first round's end for so many seconds."""
        self._settle = settle
        self._held: Rebalance | None = None
        self.settles_at = math.inf
        """When `settle` has something to end."""

    def add(self, ended: Rebalance, now: float) -> list[Rebalance]:
        """Take a round that has ended now."""
        until, told = self.settles_at, self.end()
        began = now if ended.duration is None else now - ended.duration
        if told and began <= until and _may_follow(ended):
            return [_joined(told[0], ended)]
        if _may_go_on(ended):
            self._held, self.settles_at = ended, now + self._settle
            return told
        return [*told, ended]

    def settle(self, now: float) -> list[Rebalance]:
        """End what was held long enough."""
        return self.end() if now >= self.settles_at else []

    def end(self) -> list[Rebalance]:
        """End what is held."""
        held, self._held, self.settles_at = self._held, None, math.inf
        return [] if held is None else [held]


def _may_go_on(ended: Rebalance) -> bool:
    return _is_round(ended) and Phase.REVOKE not in ended.phases


def _may_follow(ended: Rebalance) -> bool:
    return _is_round(ended) and ended.trigger is Trigger.GROUP


def _is_round(ended: Rebalance) -> bool:
    return ended.kind is Kind.COOPERATIVE and ended.outcome is Outcome.COMPLETED


def _joined(first: Rebalance, second: Rebalance) -> Rebalance:
    durations = (first.duration, second.duration)
    # The application consumed what it keeps all the while, in the time between the rounds too.
    began = first.ended_at - (first.duration or 0.0)
    return replace(
        second,
        reason=first.reason,
        trigger=first.trigger,
        duration=None if None in durations else second.ended_at - began,
        phases=_sum([first.phases, second.phases]),
        partitions_before=first.partitions_before,
        leadership=_together(first.leadership, second.leadership),
    )


def _sum(phases: Iterable[Mapping[Phase, float]]) -> dict[Phase, float]:
    total: dict[Phase, float] = {}
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
