"""Computation of `load-aware`: even loads, with as few moves as possible."""

import logging
from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.claims import Claims, Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load_moves import Mover
from groupwright.assignors._algorithms.load_placement import ROUNDING, Placement
from groupwright.assignors._algorithms.load_problem import LoadProblem, known_weights
from groupwright.assignors._algorithms.load_reference import CLOSE, Reference, even_out
from groupwright.assignors._algorithms.sticky import logged_claims, ordered_members
from groupwright.assignors._model.arrays import BoolArray
from groupwright.assignors._model.assignment import UNASSIGNED, Assignment
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.weight_arrays import FloatArray
from groupwright.assignors._wire.load_data import decode_load_data
from groupwright.assignors._wire.owned import OwnedColumns

_ATTEMPTS = 4  # at plans that settle, before the reference is the plan

_log = logging.getLogger("groupwright.assignors.load_aware")


def plan_load_aware(group: Group, tolerance: float, max_skew: int | None) -> Assignment:
    """Return the assignment of `LoadAwareAssignor`, without claimed partitions that move.

    Args:
        group: The group.
        tolerance: See `LoadAwareAssignor`.
        max_skew: See `LoadAwareAssignor`.
    """
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims, capacities = claims_and_capacities(group, indexed)
    problem = LoadProblem.of(indexed, known_weights(group, indexed), capacities)
    planner = LoadPlanner(Reference(group, indexed, problem, max_skew), tolerance)
    return indexed.assignment_of(claims.withhold(planner.plan(claims.owner, claims.claimed)))


def claims_and_capacities(group: Group, indexed: IndexedGroup) -> tuple[Claims, FloatArray]:
    """Return the resolved claims, and `(members,) float64`: the capacities that the members sent."""
    members = ordered_members(group, indexed)
    data = [decode_load_data(member.user_data) for member in members]
    generations = [
        sent.generation if member.generation == NO_GENERATION else member.generation
        for member, sent in zip(members, data, strict=True)
    ]
    owned = OwnedColumns(
        PartitionColumns.of([member.owned for member in members]), np.array(generations, np.int64)
    )
    return logged_claims(indexed, owned, _log), np.array([sent.capacity for sent in data])


@dataclass(frozen=True, eq=False)
class LoadPlanner:
    """Decides whether partitions have to move, and which.

    Attributes:
        reference: The best known assignment of the group, whatever is owned.
        tolerance: The relative excess of the largest load over capacity at which partitions begin to move.
            When they do, it is lowered to half of that.
    """

    reference: Reference
    tolerance: float

    def plan(self, owned: Owners, claimed: BoolArray) -> Owners:
        """Return the owners.

        1. Complete the owned partitions with those that have no owner. If that is within the tolerance,
           nothing moves.
        2. Otherwise take the candidate with the fewest moves, and of those the least weight, that a second
           rebalance would not change.

        The second rebalance of a cooperative group completes what is left when all partitions that move have
        been revoked. So each candidate is completed in the same way before it is chosen. If none passes,
        further partitions are released, as the second rebalance would; at last, the reference is the result.

        Args:
            owned: `(partitions,) int32`: the member that owns each partition, or `UNASSIGNED`.
            claimed: `(partitions,) bool`: whether any member claims the partition, rightly or not. If no
                claim holds, the partition is withheld, too.
        """
        if (owned == UNASSIGNED).all():
            return self.reference.owners
        is_new = ~claimed
        completed = self._complete(owned)
        if self._is_within(completed) and self._settles(completed.owner, owned, is_new):
            return completed.owner
        home = owned
        for _ in range(_ATTEMPTS):
            candidates = self._candidates(completed, home)
            for candidate in candidates:
                if self._settles(candidate, owned, is_new):
                    return candidate
            if not candidates:
                break
            home = np.where(candidates[0] == home, home, np.int32(UNASSIGNED))
            completed = self._complete(np.where(is_new, candidates[0], home))
        return self.reference.owners

    # --- Within the tolerance ------------------------------------------------------------------------

    def _complete(self, owned: Owners) -> Placement:
        """Return a placement that keeps all owned partitions, and places the others.

        The others go where the load is least, or to their owners in the reference if that is better.
        """
        is_free = owned == UNASSIGNED
        placement = Placement(self.reference.problem, owned, self.reference.limits)
        if not is_free.any():
            return placement
        placement.place(np.flatnonzero(is_free))
        even_out(placement, is_free)
        placement.improve(self.reference.simple_bound * (1 + CLOSE), is_free)
        if not self._is_within(placement):
            by_reference = np.where(is_free, self.reference.owners, owned)
            second = Placement(self.reference.problem, by_reference, self.reference.limits)
            if self._is_within(second):
                return second
        return placement

    def _is_within(self, placement: Placement) -> bool:
        """Return whether nothing has to move: the loads, the numbers, and no member idles."""
        if not placement.is_within_skew or self._idle(placement).any():
            return False
        most = placement.peak / ((1 + self.tolerance) * (1 + ROUNDING))
        return most <= self.reference.simple_bound or most <= self.reference.peak

    def _idle(self, placement: Placement) -> BoolArray:
        """Return `(members,) bool`: the members without load that could relieve another member."""
        problem = self.reference.problem
        is_unloaded = placement.loads <= problem.average * ROUNDING * problem.capacities
        idle = is_unloaded & problem.subscribes.any(axis=0)
        if not idle.any():
            return idle
        weights = problem.weights
        levels = placement.loads / problem.capacities
        # A member with a single partition with weight gains nothing by passing it on.
        can_give = (weights > 0) & (placement.loads[placement.owner] > weights * (1 + ROUNDING))
        for member in np.flatnonzero(idle).tolist():
            helps = weights / problem.capacities[member] < levels[placement.owner] * (1 - ROUNDING)
            idle[member] = (helps & can_give & problem.subscribes[problem.set_of, member]).any()
        return idle

    # --- Moves ---------------------------------------------------------------------------------------

    def _candidates(self, completed: Placement, owned: Owners) -> list[Owners]:
        """Return plans within half the tolerance, the best first."""
        reference = self.reference
        limit = reference.peak * (1 + self.tolerance / 2)
        found: list[tuple[tuple[int, float], Owners]] = []
        for start in (completed.owner, reference.owners):
            mover = Mover(Placement(reference.problem, start, reference.limits), owned, limit)
            even_out(mover.placement)
            self._fill_idle(mover)
            if not mover.run():
                mover.placement.improve(limit)
                mover.send_home()
            self._fill_idle(mover)
            if mover.placement.peak <= limit * (1 + 2 * ROUNDING) and mover.placement.is_within_skew:
                found.append((mover.cost, mover.placement.owner))
                if start is completed.owner:
                    break
        return [owner for _, owner in sorted(found, key=lambda each: each[0])]

    def _fill_idle(self, mover: Mover) -> None:
        """Give idle members partitions until they are as close to the average as the tolerance.

        The heaviest partitions come first, from members that stay as close to the average themselves.
        """
        placement, problem = mover.placement, self.reference.problem
        idle = self._idle(placement)
        if not idle.any():
            return
        level = problem.average * (1 - self.tolerance) * problem.capacities
        has_idle = np.count_nonzero(problem.subscribes[:, idle], axis=1) > 0
        movable = has_idle[problem.set_of] & (problem.weights > 0)
        mover.release_and_place(placement.loads - level, movable, float(level[idle].sum()))
        for member in np.flatnonzero(self._idle(placement)).tolist():
            self._fill_one(placement, member)

    def _fill_one(self, placement: Placement, member: int) -> None:
        """Give a member the one partition that makes the larger of the two loads least."""
        problem = self.reference.problem
        weights, owner, capacities = problem.weights, placement.owner, problem.capacities
        can = (weights > 0) & problem.subscribes[problem.set_of, member]
        can &= placement.loads[owner] > weights * (1 + ROUNDING)
        after = np.maximum(
            (placement.loads[owner] - weights) / capacities[owner], weights / capacities[member]
        )
        relief = np.where(can, placement.loads[owner] / capacities[owner] - after, -np.inf)
        best = int(relief.argmax())
        if relief[best] > 0:
            placement.change(best, member)

    def _settles(self, candidate: Owners, owned: Owners, is_new: BoolArray) -> bool:
        """Return whether the next rebalance moves nothing once all partitions that move are revoked."""
        stays = is_new | (candidate == owned)
        return bool(stays.all()) or self._is_within(
            self._complete(np.where(stays, candidate, np.int32(UNASSIGNED)))
        )
