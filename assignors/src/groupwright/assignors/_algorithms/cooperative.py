"""Cooperative rebalancing: withholding partitions that another member has yet to revoke (KIP-429)."""

from __future__ import annotations

from groupwright.assignors._algorithms.check import check_assignment
from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._wire.owned import OwnedColumns


def withhold_claimed(group: Group, plan: Assignment | Plan) -> Assignment:
    """Return a plan without the partitions that another member must revoke first (KIP-429).

    This makes any assignor cooperative: members that lose a partition revoke it and join again, and the next
    rebalance completes the plan. This requires that the plan does not depend on the owned partitions, or that
    it converges.

    A partition that another member claims stays unassigned. Of several claimants, the one with the highest
    generation may keep it; if two claim it in that generation, neither may. Java's
    `CooperativeStickyAssignor.adjustAssignment` does the same.

    Args:
        group: The group.
        plan: The target assignment.

    Raises:
        AssignorError: The plan is not an assignment of this group.
        InvalidInputError: The plan is not a mapping of members to topics and partitions.

    Examples:
        >>> from groupwright.assignors import Group, Member
        >>> owner = Member("a", ["orders"], owned={"orders": [0, 1]}, generation=4)
        >>> group = Group([owner, Member("b", ["orders"])], {"orders": 3})
        >>> withhold_claimed(group, {"a": {"orders": [0]}, "b": {"orders": [1, 2]}})
        Assignment({'a': {'orders': [0]}, 'b': {'orders': [2]}})
    """
    wanted = plan if isinstance(plan, Assignment) else Assignment(plan)
    check_assignment(group, wanted)
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = resolve_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    return indexed.assignment_of(claims.withhold(indexed.owners_of(wanted)))
