"""How good an assignment is, in numbers, and how good the best one would be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from groupwright.assignors._algorithms.check import check_assignment
from groupwright.assignors._algorithms.claims import settle_claims
from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._algorithms.partition_classes import Ints, make_rows
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.assignment import NOBODY, Assignment
from groupwright.assignors._model.assignor import Plan
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import NO_PARTITIONS, TopicPartitions
from groupwright.assignors._wire.owned import OwnedLists
from groupwright.assignors._wire.user_data import Owned


@dataclass(frozen=True, slots=True)
class Measures:
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
        best_far: The fewest of the assignments with `best_squares`.
        moved: How many partitions leave a member that owned them and could have kept them: it is still there, and
            still subscribes to the topic. Partitions withheld for now are among them.
        best_moved: The fewest of the assignments with `best_squares` and `best_far`: so many had to.
        spreads: For each topic that somebody subscribes to, how many of its partitions more the subscriber with the
            most has than the one with the fewest.
    """

    partitions: int
    unassigned: int
    imbalance: int
    best_imbalance: int
    deviation: float
    squares: int
    best_squares: int
    far: int
    best_far: int
    moved: int
    best_moved: int
    spreads: Mapping[str, int] = field(hash=False)

    @property
    def widest_spread(self) -> int:
        """The largest of `spreads`."""
        return max(self.spreads.values(), default=0)


def measure(
    group: Group, assignment: Assignment | Plan, before: Mapping[str, TopicPartitions] | None = None
) -> Measures:
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
    layout = Layout.of(group)
    if not layout.topics:
        return Measures(0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, {})
    given = layout.owners(assignment)
    owned = settle_claims(layout, _claims(group, layout, before)).owner
    given_rows, _ = make_rows(group, layout, given)
    owned_rows, _ = make_rows(group, layout, owned)
    best = best_flow(owned_rows)
    loads, best_loads = given_rows.loads(given_rows.owned), owned_rows.loads(best)
    return Measures(
        partitions=given.size,
        unassigned=int(np.count_nonzero(given == NOBODY)),
        imbalance=int(np.ptp(loads)),
        best_imbalance=int(np.ptp(best_loads)),
        deviation=_deviation(loads),
        squares=_squares(loads),
        best_squares=_squares(best_loads),
        far=int(given_rows.owned[~given_rows.near].sum()),
        best_far=int(best[~owned_rows.near].sum()),
        moved=int(np.count_nonzero((owned != NOBODY) & (given != owned))),
        best_moved=int(np.maximum(owned_rows.owned - best, 0).sum()),
        spreads=_spreads(layout, given),
    )


def _claims(group: Group, layout: Layout, before: Mapping[str, TopicPartitions] | None) -> OwnedLists:
    members = {member.id: member for member in group.members}
    if before is None:
        return OwnedLists.of([Owned(members[id_].owned, members[id_].generation) for id_ in layout.members])
    return OwnedLists.of([Owned(before.get(id_, NO_PARTITIONS)) for id_ in layout.members])


def _spreads(layout: Layout, given: npt.NDArray[np.int32]) -> dict[str, int]:
    """Return, by topic, the difference between the subscribers with the most and the fewest of its partitions."""
    members = len(layout.members)
    keys = (layout.topic.astype(np.int64) * members + given)[given != NOBODY]
    shares, sizes = np.unique(keys, return_counts=True)
    topics = shares // members
    most = np.zeros(len(layout.topics), np.int64)
    np.maximum.at(most, topics, sizes)
    fewest = most.copy()
    np.minimum.at(fewest, topics, sizes)
    fewest[np.bincount(topics, minlength=most.size) < layout.audience_sizes] = 0
    return dict(zip(layout.topics, (most - fewest).tolist(), strict=True))


def _deviation(loads: Ints) -> float:
    """Return the standard deviation, from whole numbers, so that it does not depend on the members' order."""
    members, total = loads.size, int(loads.sum())
    return math.sqrt(members * _squares(loads) - total * total) / members


def _squares(loads: Ints) -> int:
    return int((loads * loads).sum())
