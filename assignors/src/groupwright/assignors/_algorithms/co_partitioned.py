"""Computation of `co-partitioned-sticky`: the algorithms of `sticky` and `load-aware`, applied to bundles."""

from __future__ import annotations

import numpy as np

from groupwright.assignors._algorithms.bundles import Joined, bundle_partitions
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load import LoadPlanner, claims_and_capacities
from groupwright.assignors._algorithms.load_problem import LoadProblem, known_weights
from groupwright.assignors._algorithms.load_reference import Reference
from groupwright.assignors._algorithms.sticky import best_owners, logged_claims
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._wire.owned import OwnedColumns


def plan_co_partitioned(group: Group, joined: Joined | None, *, allow_unequal: bool) -> Assignment:
    """Return the assignment by numbers of bundles, without claimed partitions that move.

    See `bundle_partitions` for the arguments and the exception.
    """
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = logged_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    bundles = bundle_partitions(group, indexed, joined, allow_unequal=allow_unequal)
    bundle_owners = best_owners(bundles.group, bundles.indexed, bundles.owners(claims.owner))
    owners = bundle_owners[bundles.bundle_of]
    return indexed.assignment_of(claims.withhold(owners))


def plan_co_partitioned_by_load(
    group: Group, joined: Joined | None, tolerance: float, max_skew: int | None, *, allow_unequal: bool
) -> Assignment:
    """Return the assignment by loads, without claimed partitions that move.

    A bundle weighs what its partitions weigh together.

    See `bundle_partitions` for the arguments and the exception, and `LoadAwareAssignor` for `tolerance` and
    `max_skew`, which counts bundles.
    """
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims, capacities = claims_and_capacities(group, indexed)
    bundles = bundle_partitions(group, indexed, joined, allow_unequal=allow_unequal)
    count = int(bundles.indexed.starts[-1])
    weights = np.bincount(bundles.bundle_of, known_weights(group, indexed), count).astype(np.float64)
    claimed = np.bincount(bundles.bundle_of, claims.claimed, count) > 0
    problem = LoadProblem.of(bundles.indexed, weights, capacities)
    planner = LoadPlanner(Reference(bundles.group, bundles.indexed, problem, max_skew), tolerance)
    owners = planner.plan(bundles.owners(claims.owner), claimed)[bundles.bundle_of]
    return indexed.assignment_of(claims.withhold(owners))
