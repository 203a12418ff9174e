"""Load check: whether a rebalance would be worth it for a group at rest."""

from dataclasses import dataclass, replace

from groupwright.assignors._algorithms.check import assign
from groupwright.assignors._algorithms.load_report import evaluate_load
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.group import Group

_GENERATION = 1  # any, and the same for all
_ROUNDS = 2  # a move takes one rebalance to revoke the partition, and one to assign it (KIP-429)


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
    """Play the rebalance of a cooperative group that owns what it was assigned.

    Args:
        assignor: The assignor, which supports COOPERATIVE.
        group: The group, with the topics' present weights.
        assignment: What the members own.

    Raises:
        AssignorError: The assignor's result is not an assignment of the group.
        Exception: An exception of the assignor.

    Example:
        >>> from groupwright.assignors import LoadAwareAssignor, Member, Topic
        >>> group = Group([Member("a", ["t"]), Member("b", ["t"])], {"t": Topic(4, weights=[6, 4, 1, 1])})
        >>> owned = Assignment({"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})
        >>> print(check_load(LoadAwareAssignor(), group, owned))
        busiest member at 1.67 of average, 1 of 4 partitions move, expected 1.00
    """
    before = evaluate_load(group, assignment)
    planned = assignment
    for _ in range(_ROUNDS):  # not `simulate`, whose members are told of assignments: this assignor is in use
        members = [replace(each, owned=planned[each.id], generation=_GENERATION) for each in group.members]
        planned = assign(assignor, Group(members, group.topics), cooperative=True)
    after = evaluate_load(group, planned, assignment)
    return LoadCheck(
        before.peak_over_average,
        after.peak_over_average,
        after.moves,
        sum(share.count for share in assignment.values()),
        before.bound_over_average,
    )
