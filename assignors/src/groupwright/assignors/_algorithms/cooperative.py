"""What a cooperative assignor may give away now."""

import numpy as np

from groupwright.assignors._algorithms.check import check_assignment
from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.assignment import UNASSIGNED, Assignment
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.group import Group
from groupwright.assignors._wire.owned import OwnedColumns


def withhold_claimed(group: Group, plan: Assignment | Plan) -> Assignment:
    """Return a plan without the partitions that somebody else must give up first (KIP-429).

    It makes a cooperative assignor of every other: members that lose a partition give it up, join again, and the
    next time the plan comes true. For that, the plan must not depend on what members own, or must settle.

    A partition that another member claims is given to nobody. Of several members that claim it, the one with the
    highest generation may keep it; if two claim it in that one, neither may.

    Args:
        group: The group.
        plan: Who is to have what in the end.

    Raises:
        AssignorError: The plan is not an assignment of this group.
        InvalidInputError: It is not a mapping of members to topics and partitions.

    Example:
        >>> from groupwright.assignors import Group, Member
        >>> members = [Member("a", ["orders"], owned={"orders": [0, 1]}, generation=4), Member("b", ["orders"])]
        >>> group = Group(members, {"orders": 3})
        >>> withhold_claimed(group, {"a": {"orders": [0]}, "b": {"orders": [1, 2]}})
        Assignment({'a': {'orders': [0]}, 'b': {'orders': [2]}})
    """
    wanted = plan if isinstance(plan, Assignment) else Assignment(plan)
    check_assignment(group, wanted)
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = resolve_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    owners = indexed.owners_of(wanted)
    return indexed.assignment_of(np.where(claims.claimed & (owners != claims.owner), UNASSIGNED, owners))
