"""Spread: the choice of the partitions that each member keeps and gains.

The flow determines how many partitions of each class these are. They are chosen so that each topic is spread
over its subscribers as evenly as these numbers allow: by a heuristic, which is exact if no partitions are
owned, all subscriptions are equal, and no racks matter.
"""

from __future__ import annotations

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import NO_ARC, ClassIndex, PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.columns import UNASSIGNED

_MAX_ROUNDS = 2**16 - 1


def choose_partitions(
    indexed: IndexedGroup, classes: PartitionClasses, class_index: ClassIndex, flow: Int64Array
) -> Owners:
    """Return the owner of each partition.

    Args:
        indexed: The group.
        classes: Its partition classes.
        class_index: The classes and arcs of its partitions.
        flow: `(arcs,) int64`: the partitions of the class that the member is assigned.
    """
    released = np.maximum(classes.owned - flow, 0)
    stays = class_index.arc != NO_ARC
    if released.any():
        stays[_released(indexed, classes, class_index, released)] = False
    owner = np.full(stays.size, UNASSIGNED, np.int32)
    owner[stays] = classes.member_of_arc[class_index.arc[stays]]
    free = np.flatnonzero(~stays)
    if free.size:
        _TopicSpreader(indexed, classes, np.maximum(flow - classes.owned, 0), owner).run(class_index, free)
    return owner


def _released(
    indexed: IndexedGroup, classes: PartitionClasses, class_index: ClassIndex, released: Int64Array
) -> Int64Array:
    """Return `(released,) int64`: the indexes of the partitions that their owners release.

    Partitions beyond the fair share of a topic come first. Among the others, each member continues in the
    list of topics where the previous member stopped, so that not all release the same topics.

    Args:
        indexed: The group.
        classes: Its partition classes.
        class_index: The classes and arcs of its partitions.
        released: `(arcs,) int64`: the number of partitions that the member releases.
    """
    owned = np.flatnonzero(released[class_index.arc] * (class_index.arc != NO_ARC))
    arc, topic = class_index.arc[owned], indexed.topic[owned].astype(np.int64)
    member = classes.member_of_arc[arc]
    by_owner = np.argsort(member, kind="stable")
    rank = np.empty(owned.size, np.int64)
    rank[by_owner] = _ranks_in_runs((member * len(indexed.topics) + topic)[by_owner]) + 1
    fair_share = -(-indexed.sizes // indexed.subscriber_counts)
    within_share = fair_share[topic] - rank + indexed.sizes.max()
    released_by_member = np.bincount(classes.member_of_arc, released, classes.members).astype(np.int64)
    first_topic = (np.cumsum(released_by_member) - released_by_member)[member]
    topic_index, count = _index_among_alike(indexed)
    rotation = (topic_index[topic] - first_topic) % count[topic]
    # One sort key of three parts: the arc; beyond the fair share first; the topic in rotation.
    order = np.argsort((arc * (int(within_share.max()) + 1) + within_share) * int(count.max()) + rotation)
    return owned[order[_ranks_in_runs(arc[order]) < released[arc[order]]]]


def _index_among_alike(indexed: IndexedGroup) -> tuple[Int64Array, Int64Array]:
    """Return, for each topic, its index among the topics with the same subscribers, and their number."""
    order = np.argsort(indexed.subscriber_set_of, kind="stable")
    topic_index = np.empty(order.size, np.int64)
    topic_index[order] = _ranks_in_runs(indexed.subscriber_set_of[order].astype(np.int64))
    return topic_index, np.bincount(indexed.subscriber_set_of)[indexed.subscriber_set_of]


def _ranks_in_runs(groups: Int64Array) -> Int64Array:
    """Return 0, 1, 2 and so on within each run of equal numbers."""
    is_first = np.ones(groups.size, np.bool_)
    is_first[1:] = groups[1:] != groups[:-1]
    firsts = np.flatnonzero(is_first)
    return np.arange(groups.size) - np.repeat(firsts, np.diff(np.append(firsts, groups.size)))


class _TopicSpreader:
    """Assigns the partitions without an owner, class by class."""

    def __init__(
        self, indexed: IndexedGroup, classes: PartitionClasses, gained: Int64Array, owner: Owners
    ) -> None:
        """Start with the partitions that stay with their owners.

        Args:
            indexed: The group.
            classes: Its partition classes.
            gained: `(arcs,) int64`: the number of partitions of the class that the member gains.
            owner: `(partitions,) int32`: the owners so far; changed in place.
        """
        self._indexed = indexed
        self._classes = classes
        self._gained = gained
        self._owner = owner
        self._has_owners = np.zeros(len(indexed.topics), np.bool_)
        self._has_owners[indexed.topic[owner != UNASSIGNED]] = True

    def run(self, class_index: ClassIndex, free: Int64Array) -> None:
        """Assign class by class; first those with a single topic, whose partitions are interchangeable."""
        classes = self._classes.sizes.size
        partition_class = class_index.partition_class[free]
        if classes > 1:
            order = np.argsort(partition_class, kind="stable")
            free, partition_class = free[order], partition_class[order]
        topic = self._indexed.topic[free]
        is_mixed = np.zeros(classes, np.bool_)  # the class has partitions of several topics
        is_mixed[
            partition_class[1:][(partition_class[1:] == partition_class[:-1]) & (topic[1:] != topic[:-1])]
        ] = True
        if not is_mixed.all():
            has_one_topic = ~is_mixed[partition_class]
            takers = np.where(is_mixed[self._classes.class_of_arc], 0, self._gained)
            self._owner[free[has_one_topic]] = np.repeat(self._classes.member_of_arc, takers)
            self._has_owners[topic[has_one_topic]] = True
        ends = np.cumsum(np.bincount(partition_class, minlength=classes))
        for number in np.flatnonzero(is_mixed).tolist():
            self._spread_class(number, free[ends[number - 1] if number else 0 : ends[number]])

    def _spread_class(self, partition_class: int, free: Int64Array) -> None:
        arcs = np.arange(self._classes.starts[partition_class], self._classes.starts[partition_class + 1])
        arcs = arcs[self._gained[arcs] > 0]
        members, gained = self._classes.member_of_arc[arcs], self._gained[arcs]
        topics = self._indexed.topic[free]
        if members.size == 1:
            self._owner[free] = members[0]
        elif self._has_owners[topics].any():
            self._spread_topics(free, members, gained)
        else:
            self._owner[free] = members[_round_robin_order(gained)]
        self._has_owners[topics] = True

    def _spread_topics(self, free: Int64Array, members: Int64Array, gained: Int64Array) -> None:
        """Assign each topic to the members with the fewest of its partitions, then to those that gain most.

        Args:
            free: The partitions to assign, as ascending indexes.
            members: The members that gain partitions.
            gained: `(members,) int64`: the number that each gains.
        """
        topic = self._indexed.topic[free]
        first_of_topic = np.flatnonzero(np.append(True, topic[1:] != topic[:-1]))
        bounds = np.append(first_of_topic, free.size).tolist()
        starts = self._indexed.starts[topic[first_of_topic]].tolist()
        ends = self._indexed.starts[topic[first_of_topic] + 1].tolist()
        gaining = members.size
        # Members that gain nothing, and `UNASSIGNED` (-1, the last element), have the index `gaining`.
        index_of = np.full(self._classes.members + 1, gaining)
        index_of[members] = np.arange(gaining)
        # The member that gains the most comes first, then the first in order. A member that still gains units
        # has a priority of `gaining` or more.
        priority = np.append(gained * gaining + np.arange(gaining)[::-1], 0)
        for first, end, start, stop in zip(bounds, bounds[1:], starts, ends, strict=False):
            units = end - first
            holders = index_of[self._owner[start:stop]]
            if units <= gaining:
                priority_of_others = priority.copy()
                priority_of_others[holders] = 0
                takers = np.argpartition(priority_of_others, -units)[-units:]
                if priority_of_others[takers].min() >= gaining:
                    takers.sort()
                    self._owner[free[first:end]] = members[takers]
                    priority[takers] -= gaining
                    continue
            held = np.bincount(holders, minlength=gaining + 1)
            takers = np.flatnonzero(priority >= gaining)
            gained_units = _fill_fewest_first(held[takers], priority[takers] // gaining, units)
            self._owner[free[first:end]] = np.repeat(members[takers], gained_units)
            priority[takers] -= gained_units * gaining


def _fill_fewest_first(held: Int64Array, limit: Int64Array, units: int) -> Int64Array:
    """Return the units that each member gains: members with the fewest first, then those that gain most.

    Args:
        held: The units that each member has.
        limit: The units that each member may gain; in total at least `units`.
        units: The number of units.
    """
    order = np.argsort(-limit, kind="stable")
    held, limit = held[order], limit[order]
    gained = np.zeros(order.size, np.int64)
    while units:
        below_limit = np.flatnonzero(gained < limit)
        more = np.minimum(
            water_fill(held[below_limit] + gained[below_limit], units),
            limit[below_limit] - gained[below_limit],
        )
        gained[below_limit] += more
        units -= int(more.sum())
    in_order = np.empty_like(gained)
    in_order[order] = gained
    return in_order


def _round_robin_order(gained: Int64Array) -> Int64Array:
    """Return the members in round-robin order, each as often as it gains a partition.

    A member that gains one partition less than the others skips the last round. If the gains differ by more,
    the rounds of each member are evenly spaced.
    """
    takers = np.argsort(-gained, kind="stable")
    taker = np.repeat(takers, gained[takers])
    round_ = _ranks_in_runs(taker)
    if np.ptp(gained) > 1:
        round_ = (2 * round_ + 1) * min(int(gained.max()), _MAX_ROUNDS) // (2 * gained[taker])
    return taker[np.argsort(round_.astype(np.uint16), kind="stable")]
