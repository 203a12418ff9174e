"""Computation of `co-partitioned-sticky`: the algorithm of `sticky`, applied to bundles of partitions."""

from groupwright.assignors._algorithms.bundles import Joined, bundle_partitions
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.sticky import best_owners, logged_claims
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._wire.owned import OwnedColumns


def plan_co_partitioned(group: Group, joined: Joined | None, *, refuse_rest: bool) -> Assignment:
    """Return the assignment of `CoPartitionedStickyAssignor`, without claimed partitions that move.

    See `bundle_partitions` for the arguments and the exception.
    """
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = logged_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    bundles = bundle_partitions(group, indexed, joined, refuse_rest=refuse_rest)
    bundle_owners = best_owners(bundles.group, bundles.indexed, bundles.owners(claims.owner))
    owners = bundle_owners[bundles.bundle_of]
    return indexed.assignment_of(claims.withhold(owners))
