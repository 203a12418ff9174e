"""Certified lower bounds of the largest load over capacity: no assignment can go below them."""

from __future__ import annotations

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.load_problem import LoadProblem
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._model.arrays import BoolArray
from groupwright.assignors._model.weight_arrays import FloatArray

_FLOW_UNITS = 2**40
"""Integer units that stand for the total weight."""

_MAX_ROUNDS = 50

_FEW_SETS = 6


def simple_bound(problem: LoadProblem) -> float:
    """Return the largest of the bounds that need no search.

    - The heaviest partition of each subscriber set over the largest capacity among its subscribers.
    - The average: the weight of all partitions over the capacity of all members.
    - Pigeonhole: of the `k * m + 1` heaviest partitions of `m` members, one member has `k + 1`; so its load
      is at least the sum of the `k + 1` lightest of these.

    The last two hold for every subset of the members, and the partitions that only they subscribe to. The
    subsets are all members and each subscriber set; if there are few sets, also all unions of them.
    """
    weights, capacities = problem.weights, problem.capacities
    sets = problem.subscribes.shape[0]
    best_capacity = np.where(problem.subscribes, capacities, 0.0).max(axis=1)
    heaviest = np.zeros(sets)
    np.maximum.at(heaviest, problem.set_of, weights)
    bound = max(float((heaviest / best_capacity).max()), problem.average)
    descending = np.argsort(-weights, kind="stable")
    bound = max(bound, _pigeonhole(weights[descending], problem.members) / float(capacities.max()))
    if 1 < sets <= _FEW_SETS:
        for subset in _unions(problem.subscribes):
            is_inside = _is_inside(problem, subset)
            inside = weights[descending[is_inside[problem.set_of[descending]]]]
            bound = max(bound, _bound_of_members(inside, capacities[subset]))
    elif sets > 1:
        by_set = descending[np.argsort(problem.set_of[descending], kind="stable")]
        starts = np.cumsum(np.bincount(problem.set_of, minlength=sets))[:-1]
        for subset, of_set in zip(problem.subscribes, np.split(weights[by_set], starts), strict=True):
            bound = max(bound, _bound_of_members(of_set, capacities[subset]))
    return bound


def _unions(subscribes: BoolArray) -> list[BoolArray]:
    """Return all distinct unions of subscriber sets."""
    unions = {number.tobytes(): number for number in subscribes}
    for subscriber_set in subscribes:
        for other in list(unions.values()):
            union = other | subscriber_set
            unions[union.tobytes()] = union
    return list(unions.values())


def _is_inside(problem: LoadProblem, subset: BoolArray) -> BoolArray:
    """Return `(sets,) bool`: the subscriber sets that are part of a subset of the members."""
    outside = np.count_nonzero(problem.subscribes & ~subset, axis=1)
    is_inside: BoolArray = outside == 0
    return is_inside


def _bound_of_members(descending: FloatArray, capacities: FloatArray) -> float:
    """Return the bound of some members, and of the weights of the partitions that only they subscribe to."""
    pigeonhole = _pigeonhole(descending, capacities.size) / capacities.max()
    return float(max(descending.sum() / capacities.sum(), pigeonhole))


def _pigeonhole(descending: FloatArray, members: int) -> float:
    """Return the pigeonhole bound of the largest load, for any number of partitions per member."""
    k = np.arange(1, (descending.size - 1) // members + 1)
    if not k.size:
        return 0.0
    sums = np.concatenate([[0.0], np.cumsum(descending)])
    return float((sums[k * members + 1] - sums[k * members - k]).max())


def subset_bound(problem: LoadProblem, owners: Owners, at_least: float) -> float:
    """Return the best bound of any subset of the members.

    The partitions that only members of a subset subscribe to weigh something, and the load over capacity of
    one member is at least this weight over the capacity of the subset. The best subset is found by maximum
    flows (Dinkelbach's method): units are moved from members above the current bound to members below it. If
    some cannot be moved, the members that these units can reach are a subset with a greater bound.

    The bound is the same for every start, up to rounding in the flow. It is computed from the subset, so
    rounding cannot invalidate it.

    Args:
        problem: The problem.
        owners: `(partitions,) int32`: an assignment to start from.
        at_least: A known bound.
    """
    sets, members = problem.subscribes.shape
    set_weights = np.bincount(problem.set_of, problem.weights, sets).astype(np.float64)
    unit = problem.weights.sum() / _FLOW_UNITS
    class_of_arc, member_of_arc = np.nonzero(problem.subscribes)
    held = np.bincount(
        problem.set_of * members + owners, np.floor(problem.weights / unit), sets * members
    ).astype(np.int64)
    flow = held[class_of_arc * members + member_of_arc]
    loads = np.bincount(member_of_arc, flow, members).astype(np.int64)
    network = MinCostFlow(
        Arcs(
            class_of_arc=class_of_arc,
            member_of_arc=member_of_arc,
            flow=flow,
            owned=np.zeros_like(flow),
            rack_mismatch=np.zeros(flow.size, np.bool_),
            open=np.ones(flow.size, np.bool_),
        ),
        left=np.zeros(sets, np.int64),
        excess=np.zeros(members, np.int64),
    )
    bound = at_least
    for _ in range(_MAX_ROUNDS):
        room = np.ceil(bound * problem.capacities / unit).astype(np.int64)
        network.excess = (loads - room).tolist()
        network.run()
        loads = np.array(network.excess, np.int64) + room
        if (loads <= room).all():
            break
        reached = np.array([network.reached >> member & 1 for member in range(members)], np.bool_)
        found = _bound_of(problem, set_weights, reached)
        if found <= bound:
            break
        bound = found
    return bound


def _bound_of(problem: LoadProblem, set_weights: FloatArray, subset: BoolArray) -> float:
    return float(set_weights[_is_inside(problem, subset)].sum() / problem.capacities[subset].sum())
