"""How good an assignment is, in numbers, and how good the best one would be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors._algorithms.check import check_assignment
from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.arrays import Int32Array, Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED, Assignment
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire.owned import OwnedColumns
from groupwright.assignors._wire.user_data import Owned


@dataclass(frozen=True, slots=True)
class AssignmentQuality:
    """How good an assignment is. Every number is the better the smaller it is, apart from the first.

    The best of three of them is one and the same assignment's: of all assignments of the group to members that
    subscribe, it is one with the smallest sum of squares; of those, with the fewest partitions far from their
    owners; of those, with the fewest moved. It gives every partition to somebody. So one that leaves some out can
    have a smaller sum of squares, and one that is less even can have fewer far or moved than the best.

    Attributes:
        partitions: How many partitions somebody subscribes to.
        unassigned: How many of them nobody is given.
        imbalance: How many partitions more the member with the most has than the one with the fewest.
        best_imbalance: The imbalance of every assignment with the smallest sum of squares; more than 1 only if
            members subscribe to different topics.
        deviation: The standard deviation of the members' numbers of partitions.
        squares: The sum over all members of the square of their number of partitions.
        best_squares: The smallest that there is.
        far: How many partitions have an owner in a rack where they have no replica. A member without a rack, or a
            partition whose racks are not known, is not far (KIP-881).
        best_far: The fewest of the assignments with `min_sum_of_squares`.
        moved: How many partitions leave a member that owned them and could have kept them: it is still there, and
            still subscribes to the topic. Partitions withheld for now are among them.
        best_moved: The fewest of the assignments with `min_sum_of_squares` and `min_rack_mismatches`: so many had to.
        spreads: For each topic that somebody subscribes to, how many of its partitions more the subscriber with the
            most has than the one with the fewest.
    """

    partitions: int
    unassigned: int
    imbalance: int
    min_imbalance: int
    deviation: float
    sum_of_squares: int
    min_sum_of_squares: int
    rack_mismatches: int
    min_rack_mismatches: int
    moves: int
    min_moves: int
    spreads: Mapping[str, int] = field(hash=False)

    @property
    def max_spread(self) -> int:
        """The largest of `spreads`."""
        return max(self.spreads.values(), default=0)


def evaluate(
    group: Group, assignment: Assignment | Plan, before: Mapping[str, PartitionsByTopic] | None = None
) -> AssignmentQuality:
    """Measure an assignment of a group.

    Args:
        group: The group.
        assignment: What the members are given; one that is left out is given nothing.
        before: By member id, what members owned before, such as the last assignment. By default it is what they
            claim to own in their subscriptions, as far as the claims hold (see `StickyAssignor`).

    Raises:
        AssignorError: It is not an assignment of this group.
        InvalidInputError: It is not a mapping of members to topics and partitions.
    """
    if not isinstance(assignment, Assignment):
        assignment = Assignment(assignment)
    check_assignment(group, assignment)
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return AssignmentQuality(0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, {})
    given = indexed.owners_of(assignment)
    owned = resolve_claims(indexed, _claims(group, indexed, before)).owner
    given_classes, _ = classify_partitions(group, indexed, given)
    owned_classes, _ = classify_partitions(group, indexed, owned)
    best = best_flow(owned_classes)
    loads, best_loads = given_classes.loads(given_classes.owned), owned_classes.loads(best)
    return AssignmentQuality(
        partitions=given.size,
        unassigned=int(np.count_nonzero(given == UNASSIGNED)),
        imbalance=int(np.ptp(loads)),
        min_imbalance=int(np.ptp(best_loads)),
        deviation=_deviation(loads),
        sum_of_squares=_squares(loads),
        min_sum_of_squares=_squares(best_loads),
        rack_mismatches=int(given_classes.owned[~given_classes.rack_match].sum()),
        min_rack_mismatches=int(best[~owned_classes.rack_match].sum()),
        moves=int(np.count_nonzero((owned != UNASSIGNED) & (given != owned))),
        min_moves=int(np.maximum(owned_classes.owned - best, 0).sum()),
        spreads=_spreads(indexed, given),
    )


def _claims(
    group: Group, indexed: IndexedGroup, before: Mapping[str, PartitionsByTopic] | None
) -> OwnedColumns:
    members = {member.id: member for member in group.members}
    if before is None:
        return OwnedColumns.of(
            [Owned(members[id_].owned, members[id_].generation) for id_ in indexed.members]
        )
    return OwnedColumns.of([Owned(before.get(id_, NO_PARTITIONS)) for id_ in indexed.members])


def _spreads(indexed: IndexedGroup, given: Int32Array) -> dict[str, int]:
    """Return, by topic, the difference between the subscribers with the most and the fewest of its partitions."""
    members = len(indexed.members)
    keys = (indexed.topic.astype(np.int64) * members + given)[given != UNASSIGNED]
    shares, sizes = np.unique(keys, return_counts=True)
    topics = shares // members
    most = np.zeros(len(indexed.topics), np.int64)
    np.maximum.at(most, topics, sizes)
    fewest = most.copy()
    np.minimum.at(fewest, topics, sizes)
    fewest[np.bincount(topics, minlength=most.size) < indexed.subscriber_counts] = 0
    return dict(zip(indexed.topics, (most - fewest).tolist(), strict=True))


def _deviation(loads: Int64Array) -> float:
    """Return the standard deviation, from whole numbers, so that it does not depend on the members' order."""
    members, total = loads.size, int(loads.sum())
    return math.sqrt(members * _squares(loads) - total * total) / members


def _squares(loads: Int64Array) -> int:
    return int((loads * loads).sum())
