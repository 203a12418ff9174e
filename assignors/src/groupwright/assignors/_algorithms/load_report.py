"""Report on the loads of an assignment, and on the certified bound that no assignment can go below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors._algorithms.check import check_assignment
from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load_problem import LoadProblem, known_weights
from groupwright.assignors._algorithms.load_reference import CLOSE, Reference
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.columns import UNASSIGNED, Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._model.weight_arrays import FloatArray
from groupwright.assignors._wire.load_data import decode_load_data
from groupwright.assignors._wire.owned import OwnedColumns
from groupwright.assignors._wire.user_data import Owned


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Loads of an assignment, in the unit of the weights.

    Partitions of unknown weight count as `LoadAwareAssignor` counts them; if all weights are 0, each
    partition counts as 1.

    Attributes:
        loads: By member id, the weight of the assigned partitions.
        capacities: By member id, the capacity.
        bound: A certified lower bound: in every assignment of all partitions, one member at least has this
            load over capacity.
        unassigned: Partitions of subscribed topics that no member is assigned, such as withheld ones.
        moves: Partitions taken from an owner that could have kept them, including withheld ones.
        moved_weight: Their weight.
    """

    loads: Mapping[str, float] = field(hash=False)
    capacities: Mapping[str, float] = field(hash=False)
    bound: float
    unassigned: int
    moves: int
    moved_weight: float

    @property
    def shares(self) -> dict[str, float]:
        """By member id, the share of the assigned weight; all shares add up to 1."""
        total = sum(self.loads.values())
        return {id_: load / total if total else 0.0 for id_, load in self.loads.items()}

    @property
    def average(self) -> float:
        """The assigned weight over the capacity of all members."""
        return sum(self.loads.values()) / sum(self.capacities.values()) if self.capacities else 0.0

    @property
    def peak(self) -> float:
        """The largest load over capacity of a member."""
        return max((load / self.capacities[id_] for id_, load in self.loads.items()), default=0.0)

    @property
    def peak_over_average(self) -> float:
        """The busiest member's load over capacity, relative to the average; 1 without load."""
        return self.peak / self.average if self.average else 1.0

    @property
    def bound_over_average(self) -> float:
        """The bound relative to the average, to compare with `peak_over_average`; 1 without load."""
        return self.bound / self.average if self.average else 1.0

    @property
    def peak_over_bound(self) -> float:
        """The busiest member's load over capacity, relative to the bound; 1 without partitions."""
        return self.peak / self.bound if self.bound else 1.0


def evaluate_load(
    group: Group, assignment: Assignment | Plan, before: Mapping[str, PartitionsByTopic] | None = None
) -> LoadReport:
    """Evaluate the loads of an assignment.

    Args:
        group: The group, with the topics' weights and the members' capacities in their user data.
        assignment: The members' partitions; a member that is left out is assigned none.
        before: By member id, the partitions that members owned before. By default, the claims in their
            subscriptions, as far as they hold (see `StickyAssignor`).

    Raises:
        AssignorError: It is not an assignment of this group.
        InvalidInputError: It is not a mapping of members to topics and partitions.

    Examples:
        >>> from groupwright.assignors import Group, Member, Topic
        >>> members = [Member("a", ["orders"]), Member("b", ["orders"])]
        >>> group = Group(members, {"orders": Topic(3, weights=[4, 2, 1])})
        >>> report = evaluate_load(group, {"a": {"orders": [0, 2]}, "b": {"orders": [1]}})
        >>> report.loads, report.bound, report.peak_over_bound
        ({'a': 5.0, 'b': 2.0}, 4.0, 1.25)
    """
    given = assignment if isinstance(assignment, Assignment) else Assignment(assignment)
    check_assignment(group, given)
    indexed = IndexedGroup.of(group)
    members = {member.id: member for member in group.members}
    capacities = np.array([decode_load_data(members[id_].user_data).capacity for id_ in indexed.members])
    by_id = dict(zip(indexed.members, capacities.tolist(), strict=True))
    if not indexed.topics:
        return LoadReport(dict.fromkeys(indexed.members, 0.0), by_id, 0.0, 0, 0, 0.0)
    problem = LoadProblem.of(indexed, known_weights(group, indexed), capacities)
    owned = (
        OwnedColumns.of_members(group, indexed.members)
        if before is None
        else OwnedColumns.of([Owned(before.get(id_, NO_PARTITIONS)) for id_ in indexed.members])
    )
    owner, owners = resolve_claims(indexed, owned).owner, indexed.owners_of(given)
    is_assigned = owners != UNASSIGNED
    is_moved = (owner != UNASSIGNED) & (owner != owners)
    loads = np.bincount(owners[is_assigned], problem.weights[is_assigned], capacities.size).astype(np.float64)
    return LoadReport(
        loads=dict(zip(indexed.members, (loads * problem.unit).tolist(), strict=True)),
        capacities=by_id,
        bound=_bound(Reference(group, indexed, problem, None), loads) * problem.unit,
        unassigned=int(np.count_nonzero(~is_assigned)),
        moves=int(np.count_nonzero(is_moved)),
        moved_weight=float(problem.weights[is_moved].sum()) * problem.unit,
    )


def _bound(reference: Reference, loads: FloatArray) -> float:
    """Return the bound; the better one takes a search, and is computed if the loads are not close."""
    is_close = (loads / reference.problem.capacities).max() <= reference.simple_bound * (1 + CLOSE)
    return reference.simple_bound if is_close else reference.bound
