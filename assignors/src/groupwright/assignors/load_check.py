"""Load check: the effect that a rebalance would have on the load of a stable group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groupwright.assignors._algorithms.load_report import evaluate_load
from groupwright.assignors._model.assignor import Assignor, Plan
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors.simulation import simulate

_GENERATION = 1  # any, and the same for all


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """Effect that a rebalance would have on the load of a group.

    Attributes:
        peak: The busiest member's load over capacity, relative to the average.
        expected: The same after a rebalance.
        moves: The number of partitions that would move.
        partitions: The number of assigned partitions.
        bound: A certified lower bound of `peak` and `expected`.
    """

    peak: float
    expected: float
    moves: int
    partitions: int
    bound: float

    def __str__(self) -> str:
        """Describe it in a sentence for the log."""
        found = f"busiest member at {self.peak:.2f} of average, "
        if not self.moves:
            return found + f"none of {self.partitions} partitions moves"
        return found + f"{self.moves} of {self.partitions} partitions move, expected {self.expected:.2f}"


def check_load(assignor: Assignor, group: Group, assignment: Assignment) -> LoadCheck:
    """Simulate a rebalance of a cooperative group whose members own their assignments, until it settles.

    Args:
        assignor: The assignor, which supports COOPERATIVE. Only its `assign` is called, so it may be in use.
        group: The group, with the topics' present weights.
        assignment: The partitions that the members own.

    Raises:
        AssignorError: The assignor's result is not an assignment of the group, or the group does not settle.
        Exception: An exception of the assignor.

    Examples:
        >>> from groupwright.assignors import LoadAwareAssignor, Member, Topic
        >>> group = Group([Member("a", ["t"]), Member("b", ["t"])], {"t": Topic(4, weights=[6, 4, 1, 1])})
        >>> owned = Assignment({"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})
        >>> print(check_load(LoadAwareAssignor(), group, owned))
        busiest member at 1.67 of average, 1 of 4 partitions move, expected 1.00
    """
    before = evaluate_load(group, assignment)
    owners = [replace(each, owned=assignment[each.id], generation=_GENERATION) for each in group.members]
    (simulated,) = simulate(Group(owners, group.topics), lambda _: _InUse(assignor))
    after = evaluate_load(group, simulated.assignment, assignment)
    return LoadCheck(
        before.peak_over_average,
        after.peak_over_average,
        after.moves,
        sum(share.count for share in assignment.values()),
        before.bound_over_average,
    )


class _InUse(Assignor):
    """An assignor that the simulation must not notify of assignments: it belongs to a member."""

    def __init__(self, assignor: Assignor) -> None:
        self.name = assignor.name
        self.protocols = assignor.protocols
        self._assignor = assignor

    def assign(self, group: Group) -> Assignment | Plan:
        return self._assignor.assign(group)
