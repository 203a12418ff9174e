"""Quality of an assignment, and of the best possible assignment of the same group."""

from __future__ import annotations

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
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.columns import UNASSIGNED, Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._wire.owned import OwnedColumns
from groupwright.assignors._wire.user_data import Owned


@dataclass(frozen=True, slots=True)
class AssignmentQuality:
    """Quality of an assignment, in numbers of partitions. Except for `partitions`, smaller is better.

    The fields that begin with `min_` describe one and the same best assignment. Of all assignments of the
    group to subscribed members it has the smallest sum of squared loads; of those, the fewest rack
    mismatches; of those, the fewest moves. It leaves no partition unassigned. An assignment that leaves some
    unassigned can therefore have a smaller sum of squares, and a less balanced one fewer rack mismatches or
    moves than the best.

    Attributes:
        partitions: Partitions of subscribed topics.
        unassigned: Those of them that no member is assigned.
        imbalance: The largest number of partitions of a member minus the smallest.
        min_imbalance: The imbalance of every assignment with the smallest sum of squares. It exceeds 1 only
            if members subscribe to different topics.
        deviation: The standard deviation of the members' numbers of partitions.
        sum_of_squares: The sum of the squares of the members' numbers of partitions.
        min_sum_of_squares: The smallest possible sum.
        rack_mismatches: Partitions whose owner is in a rack without a replica of them (KIP-881). A member
            without a rack matches every partition, and a partition with unknown racks every member.
        min_rack_mismatches: The fewest of all assignments with `min_sum_of_squares`.
        moves: Partitions taken from an owner that could have kept them: it is still a member, and still
            subscribes to the topic. Partitions that are withheld for now count.
        min_moves: The fewest of all assignments with `min_sum_of_squares` and `min_rack_mismatches`.
        spreads: By subscribed topic, the largest number of its partitions of a subscriber minus the smallest.
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
        """The largest value in `spreads`; 0 without any."""
        return max(self.spreads.values(), default=0)


def evaluate(
    group: Group,
    assignment: Assignment | Plan,
    before: Mapping[str, PartitionsByTopic] | None = None,
    *,
    is_checked: bool = False,
) -> AssignmentQuality:
    """Evaluate an assignment of a group.

    Args:
        group: The group.
        assignment: The members' partitions; a member that is left out is assigned none.
        before: By member id, the partitions that members owned before, such as the last assignment. By
            default, the claims in their subscriptions, as far as they hold (see `StickyAssignor`).
        is_checked: Whether `check_assignment` has accepted the assignment already.

    Raises:
        AssignorError: It is not an assignment of this group.
        InvalidInputError: It is not a mapping of members to topics and partitions.
    """
    if not isinstance(assignment, Assignment):
        assignment = Assignment(assignment)
    if not is_checked:
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
    if before is None:
        return OwnedColumns.of_members(group, indexed.members)
    return OwnedColumns.of([Owned(before.get(id_, NO_PARTITIONS)) for id_ in indexed.members])


def _spreads(indexed: IndexedGroup, given: Int32Array) -> dict[str, int]:
    """Return, by topic, the largest number of its partitions of a subscriber minus the smallest."""
    members = len(indexed.members)
    keys = (indexed.topic.astype(np.int64) * members + given)[given != UNASSIGNED]
    pairs, sizes = np.unique(keys, return_counts=True)
    topics = pairs // members
    most = np.zeros(len(indexed.topics), np.int64)
    np.maximum.at(most, topics, sizes)
    fewest = most.copy()
    np.minimum.at(fewest, topics, sizes)
    fewest[np.bincount(topics, minlength=most.size) < indexed.subscriber_counts] = 0
    return dict(zip(indexed.topics, (most - fewest).tolist(), strict=True))


def _deviation(loads: Int64Array) -> float:
    """Return the standard deviation, computed in integers, so that the members' order cannot change it."""
    members, total = loads.size, int(loads.sum())
    return math.sqrt(members * _squares(loads) - total * total) / members


def _squares(loads: Int64Array) -> int:
    return int((loads * loads).sum())
