"""Computation of `load-aware`: even loads, with as few moves as possible."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.claims import Claims, Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load_moves import Filling, Mover
from groupwright.assignors._algorithms.load_placement import ROUNDING, Placement
from groupwright.assignors._algorithms.load_problem import LoadProblem, known_weights
from groupwright.assignors._algorithms.load_reference import CLOSE, Reference, even_out
from groupwright.assignors._algorithms.sticky import logged_claims, ordered_members
from groupwright.assignors._model.arrays import BoolArray
from groupwright.assignors._model.columns import UNASSIGNED, Assignment, PartitionColumns
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.weight_arrays import FloatArray
from groupwright.assignors._wire.load_data import decode_load_data, previous_assignment_data
from groupwright.assignors._wire.owned import OwnedColumns, decode_owned

_ATTEMPTS = 4  # candidates that are tried before the reference is the result
_LEAST_FILLING = 0.05  # of the average, whatever the tolerance: a filled member must not idle

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
    """Return the resolved claims, and `(members,) float64`: the capacities that the members sent.

    Eager members claim their previous assignments in the user data. These claims count where no member claims
    the partition in its subscription.
    """
    members = ordered_members(group, indexed)
    data = [decode_load_data(member.user_data) for member in members]
    generations = [
        sent.generation if member.generation == NO_GENERATION else member.generation
        for member, sent in zip(members, data, strict=True)
    ]
    owned = OwnedColumns(
        PartitionColumns.of([member.owned for member in members]), np.array(generations, np.int64)
    )
    claims = logged_claims(indexed, owned, _log)
    previous = [previous_assignment_data(member.user_data) for member in members]
    if any(previous):
        claims = claims.completed_by(logged_claims(indexed, decode_owned(previous), _log))
    return claims, np.array([sent.capacity for sent in data])


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

        1. Place the partitions that have no owner, beside the owned ones. If that is within the tolerance,
           nothing moves.
        2. Otherwise move few partitions, such that a second rebalance would move no others.

        The second rebalance of a cooperative group places the partitions that have been revoked. So a
        candidate for the result is accepted only if that placement is within the tolerance. If it is not,
        further partitions are released, as the second rebalance would. After `_ATTEMPTS`, the reference is
        the result.

        Args:
            owned: `(partitions,) int32`: the member that owns each partition, or `UNASSIGNED`.
            claimed: `(partitions,) bool`: whether any member claims the partition, even if no claim to it
                holds: such a partition is withheld in this rebalance, like one that moves.
        """
        if (owned == UNASSIGNED).all():
            return self.reference.owners
        is_new = ~claimed
        completed = self._complete(owned)
        if self._is_within(completed) and self._settles(completed.owner, owned, is_new):
            return completed.owner
        previous_owner = owned
        for _ in range(_ATTEMPTS):
            candidate = self._candidate(completed, previous_owner)
            if candidate is None:
                break
            if self._settles(candidate, owned, is_new):
                return candidate
            # The partitions that this candidate moves are released, and move free of charge from now on.
            stays = candidate == previous_owner
            previous_owner = np.where(stays, previous_owner, np.int32(UNASSIGNED))
            completed = self._complete(np.where(is_new, candidate, previous_owner))
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
        for member in np.flatnonzero(self._idle(placement)).tolist():
            self._fill_one(placement, member, is_free)
        if not self._is_within(placement):
            by_reference = np.where(is_free, self.reference.owners, owned)
            second = Placement(self.reference.problem, by_reference, self.reference.limits)
            if self._is_within(second):
                return second
        return placement

    def _fill_one(self, placement: Placement, member: int, movable: BoolArray) -> None:
        """Give a member the one movable partition that makes the larger of the two loads least."""
        problem = self.reference.problem
        weights, owner, capacities = problem.weights, placement.owner, problem.capacities
        can = movable & (weights > 0) & problem.subscribes[problem.set_of, member]
        can &= placement.loads[owner] > weights * (1 + ROUNDING)
        after = np.maximum(
            (placement.loads[owner] - weights) / capacities[owner], weights / capacities[member]
        )
        relief = np.where(can, placement.loads[owner] / capacities[owner] - after, -np.inf)
        best = int(relief.argmax())
        if relief[best] > 0:
            placement.change(best, member)

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

    def _candidate(self, completed: Placement, previous_owner: Owners) -> Owners | None:
        """Return owners within half the tolerance, with few moves; None if none are found.

        Args:
            completed: A placement of all partitions to start from. The reference is a second start, for use
                if this one leads to none.
            previous_owner: See `Mover`.
        """
        reference, problem = self.reference, self.reference.problem
        limit = reference.peak * (1 + self.tolerance / 2)
        idle = self._idle(completed)
        level = problem.average * max(1 - self.tolerance, _LEAST_FILLING)
        filling = Filling(idle, level) if idle.any() else None
        for start in (completed.owner, reference.owners):
            mover = Mover(Placement(problem, start, reference.limits), previous_owner, limit, filling)
            even_out(mover.placement)
            if not mover.run():
                mover.placement.improve(limit)
                mover.return_to_owner()
            if mover.placement.peak <= limit * (1 + 2 * ROUNDING) and mover.placement.is_within_skew:
                return mover.placement.owner
        return None

    def _settles(self, candidate: Owners, owned: Owners, is_new: BoolArray) -> bool:
        """Return whether the next rebalance moves nothing once all partitions that move are revoked."""
        if (candidate == owned).all():
            return True
        stays = is_new | (candidate == owned)
        return self._is_within(self._complete(np.where(stays, candidate, np.int32(UNASSIGNED))))
