"""Reference: the best assignment that is known for a problem, whatever is owned, and its certified bound."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groupwright.assignors._algorithms.balance import balance
from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load_bound import simple_bound, subset_bound
from groupwright.assignors._algorithms.load_placement import CountLimits, Placement
from groupwright.assignors._algorithms.load_problem import LoadProblem
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.arrays import BoolArray
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.group import Group

CLOSE = 0.005
"""Relative distance from the lower bound at which a search ends."""

_BOUND_WANTED = 0.02  # relative distance from the simple bound above which better bounds are computed
_PERTURBED_PARTITIONS = 6_000  # in all perturbations together
_MAX_PERTURBATIONS = 60
_RELEASED = 0.6  # part of the chosen members' partitions that is placed again


@dataclass(frozen=True, eq=False)
class Reference:
    """The best known assignment, computed on first use. It depends on the problem alone.

    Attributes:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        problem: Its problem.
        max_skew: The largest allowed difference in numbers of partitions; None for any.
    """

    group: Group
    indexed: IndexedGroup
    problem: LoadProblem
    max_skew: int | None

    @cached_property
    def limits(self) -> CountLimits | None:
        """The limits of the numbers of partitions."""
        if self.max_skew is None:
            return None
        classes, _ = classify_partitions(self.group, self.indexed, self._no_owners)
        best = balance(classes.without_racks())
        loads = classes.without_racks().loads(best.flow)
        base = np.bincount(best.block_of, loads).astype(np.int64) // np.bincount(best.block_of)
        return CountLimits(base[best.block_of], self.max_skew)

    @cached_property
    def simple_bound(self) -> float:
        """A lower bound that is computed without the owners."""
        return simple_bound(self.problem)

    @cached_property
    def owners(self) -> Owners:
        """`(partitions,) int32`: the owners in the best known assignment."""
        return self._best[0]

    @cached_property
    def peak(self) -> float:
        """The largest load over capacity in the best known assignment."""
        return self._best[1]

    @cached_property
    def bound(self) -> float:
        """The certified lower bound. It exceeds `simple_bound` only if that is not close to `peak`."""
        if self._has_exact_optimum:
            return self.peak
        needs_better = self.peak > self.simple_bound * (1 + _BOUND_WANTED)
        if needs_better and not self.problem.has_equal_subscriptions:
            return min(self.peak, subset_bound(self.problem, self.owners, self.simple_bound))
        return self.simple_bound

    @property
    def _no_owners(self) -> Owners:
        return np.full(self.indexed.starts[-1], UNASSIGNED, np.int32)

    @property
    def _has_exact_optimum(self) -> bool:
        return self.problem.has_equal_weights and self.problem.has_equal_capacities

    @cached_property
    def _best(self) -> tuple[Owners, float]:
        if self._has_exact_optimum:
            placement = Placement(self.problem, self._most_even())
            return placement.owner, placement.peak
        placement = Placement(self.problem, self._no_owners, self.limits)
        placement.place(np.arange(self.indexed.starts[-1]))
        if not placement.is_within_skew:
            even_out(placement)
        if not placement.is_within_skew:
            placement.reset(self._most_even())
        target = self.simple_bound * (1 + CLOSE)
        placement.improve(target)
        _perturb(placement, target)
        return placement.owner, placement.peak

    def _most_even(self) -> Owners:
        """Return the owners that `sticky` chooses for a group without claims."""
        classes, class_index = classify_partitions(self.group, self.indexed, self._no_owners)
        return choose_partitions(self.indexed, classes, class_index, best_flow(classes))


def even_out(placement: Placement, movable: BoolArray | None = None) -> None:
    """Move partitions from members with too many to members with few, as long as it helps.

    The skew may remain: a partition may have to pass through a third member.

    Args:
        placement: The placement.
        movable: `(partitions,) bool`: the partitions that may move; None for all.
    """
    limits, problem = placement.limits, placement.problem
    if limits is None:
        return
    weights, capacities = problem.weights, problem.capacities
    while not placement.is_within_skew:
        counts = placement.counts - limits.base
        levels = placement.loads / capacities
        order = np.lexsort((-levels, -counts))
        fewest, missing = counts[order[-1]], np.maximum(1, counts.mean() - counts)
        # Members with few partitions and little load get weights that let both grow together.
        wanted = np.maximum(0.0, problem.average * capacities - placement.loads) / missing
        for giver in order[counts[order] > fewest + 1].tolist():
            items = placement.items(giver, movable)
            if not items.size:
                continue
            to, room = placement.most_room(items, -counts - levels / (levels.max() * 2))
            helps = np.flatnonzero((room > -np.inf) & (counts[to] < counts[giver] - 1))
            if helps.size:
                best = helps[np.abs(weights[items[helps]] - wanted[to[helps]]).argmin()]
                placement.change(int(items[best]), int(to[best]))
                break
        else:
            return


def _perturb(placement: Placement, target: float) -> None:
    """Place some partitions of the busiest member and of others again, and keep better results.

    This is iterated local search. The random numbers are the same for every group of a size, so the result is
    deterministic. Large groups are left as they are: their partitions are small beside the loads.
    """
    chance = random.Random(0)  # noqa: S311 - reproducible, not secret
    problem = placement.problem
    partitions, members = placement.owner.size, problem.members
    best, least = placement.owner.copy(), placement.peak
    for _ in range(min(_MAX_PERTURBATIONS, _PERTURBED_PARTITIONS // partitions)):
        if least <= target or members == 1:
            break
        busiest = int((placement.loads / problem.capacities).argmax())
        chosen = [busiest, *(int(chance.random() * members) for _ in range(1 + int(chance.random() * 3)))]
        released = [
            p
            for p in np.flatnonzero(np.isin(placement.owner, chosen)).tolist()
            if chance.random() < _RELEASED
        ]
        order = np.array(released, np.int64)
        owner = best.copy()
        owner[order] = UNASSIGNED
        placement.reset(owner)
        preference = sorted(range(members), key=lambda _: chance.random())
        placement.place(order, np.array(preference))
        if placement.is_within_skew:
            placement.improve(target)
            if placement.peak < least * (1 - 1e-9):
                best, least = placement.owner.copy(), placement.peak
                continue
        placement.reset(best)
    placement.reset(best)
