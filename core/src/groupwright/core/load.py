"""Loads of a group whose assignor balances weights, as the group's leader measures them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """Loads of a group's members under one assignment.

    A load is the sum of the weights of a member's partitions, in the unit of the weights. The average is the
    group's load over the capacity of all members.
    """

    loads: Mapping[str, float] = field(hash=False)
    """By member id, the load; in the first of two rounds (KIP-429) without the withheld partitions."""
    busiest: str
    """Id of the member with the largest load over capacity."""
    peak: float
    """The busiest member's load over capacity, relative to the average."""
    bound: float
    """A certified lower bound of `peak`: no assignment of the group's partitions is below it."""
    moved_load: float
    """The weight of the partitions that `Leadership.moved` counts."""

    @property
    def shares(self) -> dict[str, float]:
        """By member id, the share of the group's load; all shares add up to 1, or are 0 without load."""
        total = sum(self.loads.values())
        return {id_: load / total if total else 0.0 for id_, load in self.loads.items()}

    @property
    def moved_share(self) -> float:
        """`moved_load` as a share of the group's load; 0 without load."""
        total = sum(self.loads.values())
        return self.moved_load / total if total else 0.0

    def __str__(self) -> str:
        """Describe it in a sentence for the log."""
        return (
            f"busiest member {self.busiest!r} at {self.peak:.2f} of average, no assignment below "
            f"{self.bound:.2f}, {self.moved_share:.0%} of the load moved"
        )


class LoadCheckOutcome(StrEnum):
    """Decision of a load check."""

    REBALANCED = "rebalanced"
    """Partitions would move, so the leader made the group rebalance."""
    UNCHANGED = "unchanged"
    """No partition would move."""
    LIMITED = "limited"
    """More partitions would move than ``load.check.max.moves`` allows, so the group keeps its assignment."""
    FAILED = "failed"
    """The check raised an exception, such as one of the assignor."""


@dataclass(frozen=True, slots=True)
class LoadCheckResult:
    """Result of one load check of a group's leader.

    The numbers are None if the check failed. Loads are relative to the average, as in `GroupLoad`.
    """

    group: str
    client_id: str
    generation: int
    """The generation whose assignment was checked."""
    outcome: LoadCheckOutcome
    ended_at: float
    """Wall-clock time of its end, in seconds since the epoch."""
    peak: float | None = None
    """The busiest member's load over capacity, by the partitions' present weights."""
    bound: float | None = None
    """A certified lower bound of `peak` and `expected`."""
    expected: float | None = None
    """The peak after a rebalance."""
    moves: int | None = None
    """Partitions that a rebalance would move."""
    partitions: int | None = None
    """Assigned partitions."""
