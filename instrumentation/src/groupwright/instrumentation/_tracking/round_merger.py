"""Merges the two rounds of a cooperative rebalance of Groupwright's consumer. Pure: no clock.

Groupwright's consumer reports round by round. In the first round members revoke the partitions that move; in
the second, others are assigned them (KIP-429). A member that revokes partitions reports both rounds as one.
The other members report each round by itself, and cannot know whether another follows: so the end of a first
round is held for `settle` seconds before it ends the rebalance.
"""

from __future__ import annotations

import math

from groupwright.core import Rebalance


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
        whole = held[0].followed_by(ended) if held and began <= until else None
        if whole is not None:
            return [whole]
        if ended.may_have_second_round:
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
