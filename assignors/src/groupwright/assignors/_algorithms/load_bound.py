"""Certified lower bounds of the largest load over capacity: no assignment can go below them."""

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.load_problem import FloatArray, LoadProblem
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._model.arrays import BoolArray

_FLOW_UNITS = 2**40
"""Integer units that stand for the total weight."""

_MAX_ROUNDS = 50


def simple_bound(problem: LoadProblem) -> float:
    """Return the largest of the bounds that need no search.

    - The average: the total weight over the total capacity.
    - For each subscriber set, its weight over the capacity of its subscribers.
    - For each subscriber set, its heaviest partition over the largest capacity among its subscribers.
    - Pigeonhole: of the `k * m + 1` heaviest partitions of `m` members, one member has `k + 1`; so its load
      is at least the sum of the `k + 1` lightest of these. This is applied to all partitions with all
      members, and to each subscriber set.
    """
    weights, capacities = problem.weights, problem.capacities
    sets = problem.subscribes.shape[0]
    best_capacity = np.where(problem.subscribes, capacities, 0.0).max(axis=1)
    of_sets = np.bincount(problem.set_of, weights, sets) / (problem.subscribes @ capacities)
    heaviest = np.zeros(sets)
    np.maximum.at(heaviest, problem.set_of, weights)
    bounds = [problem.average, of_sets.max(), (heaviest / best_capacity).max()]
    order = np.lexsort((-weights, problem.set_of))
    ends = np.cumsum(np.bincount(problem.set_of, minlength=sets))
    descending = weights[order]
    bounds.append(_pigeonhole(np.sort(weights)[::-1], problem.members) / capacities.max())
    if sets > 1:
        for number, members in enumerate(problem.subscriber_counts.tolist()):
            of_set = descending[ends[number - 1] if number else 0 : ends[number]]
            bounds.append(_pigeonhole(of_set, members) / best_capacity[number])
    return float(max(bounds))


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
    set_weights = np.bincount(problem.set_of, problem.weights, sets)
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
    is_inside = ~(problem.subscribes & ~subset).any(axis=1)
    return float(set_weights[is_inside].sum() / problem.capacities[subset].sum())
