"""Merges the two rounds of a cooperative rebalance of Groupwright's consumer. Pure: no clock.

Groupwright's consumer reports round by round. In the first round members revoke the partitions that move; in
the second, others are assigned them (KIP-429). A member that revokes partitions reports both rounds as one.
The other members report each round by itself, and cannot know whether another follows: so the end of a first
round is held for `settle` seconds before it ends the rebalance.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupwright.core import Kind, Leadership, Outcome, Phase, Rebalance, Trigger


class RoundMerger:
    """One consumer's rebalances. Not thread-safe.

    Each input returns the rebalances that it ended, oldest first.
    """

    def __init__(self, settle: float) -> None:
        """Start with no round held.

        Args:
            settle: Seconds to hold the end of a first round.
        """
        self._settle = settle
        self._held: Rebalance | None = None
        self.settles_at = math.inf
        """Time at which `settle` ends the held rebalance, by the caller's clock; infinite if none is held."""

    def add(self, ended: Rebalance, now: float) -> list[Rebalance]:
        """Add a round that ended at `now`, in seconds by the caller's clock."""
        until, held = self.settles_at, self.end()
        began = now if ended.duration is None else now - ended.duration
        if held and began <= until and _may_be_second_round(ended):
            return [_merge(held[0], ended)]
        if _may_have_second_round(ended):
            self._held, self.settles_at = ended, now + self._settle
            return held
        return [*held, ended]

    def settle(self, now: float) -> list[Rebalance]:
        """End the held rebalance if its first round was `settle` seconds ago."""
        return self.end() if now >= self.settles_at else []

    def end(self) -> list[Rebalance]:
        """End the held rebalance, if any."""
        held, self._held, self.settles_at = self._held, None, math.inf
        return [] if held is None else [held]


def _may_have_second_round(ended: Rebalance) -> bool:
    return _is_round(ended) and Phase.REVOKE not in ended.phases


def _may_be_second_round(ended: Rebalance) -> bool:
    # A second round revokes nothing. A member that revokes reports both rounds as one.
    return _may_have_second_round(ended) and ended.trigger is Trigger.GROUP


def _is_round(ended: Rebalance) -> bool:
    return ended.kind is Kind.COOPERATIVE and ended.outcome is Outcome.COMPLETED


def _merge(first: Rebalance, second: Rebalance) -> Rebalance:
    durations = (first.duration, second.duration)
    # The time between the rounds counts: the application consumed the partitions that it kept all along.
    began = first.ended_at - (first.duration or 0.0)
    return replace(
        second,
        reason=first.reason,
        trigger=first.trigger,
        duration=None if None in durations else second.ended_at - began,
        phases=_sum_phases([first.phases, second.phases]),
        partitions_before=first.partitions_before,
        leadership=_merge_leadership(first.leadership, second.leadership),
        undecodable={**first.undecodable, **second.undecodable},
    )


def _sum_phases(phases: Iterable[Mapping[Phase, float]]) -> dict[Phase, float]:
    total: dict[Phase, float] = {}
    for each in phases:
        for phase, seconds in each.items():
            total[phase] = total.get(phase, 0.0) + seconds
    return total


def _merge_leadership(first: Leadership | None, second: Leadership | None) -> Leadership | None:
    if first is None or second is None:
        return second or first
    return first.followed_by(second)
