"""Which partitions of a row each member gets: those it owns, and of the others some of each topic.

How many partitions each member keeps and gains of each row is settled before. Here they are chosen so that each
topic is spread over its members as evenly as that allows: by a heuristic, which is exact where nobody owns
anything, all subscribe to the same, and no racks matter.
"""

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import NO_ARC, ClassIndex, PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED

_MOST_ROUNDS = 2**16 - 1


def choose_partitions(
    indexed: IndexedGroup, classes: PartitionClasses, class_index: ClassIndex, flow: Int64Array
) -> Owners:
    """Return the owner of each partition of the layout.

    Args:
        indexed: The group.
        classes: Its rows.
        class_index: Where its partitions stand.
        flow: For each arc, how many of the row's partitions the member gets.
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
    """Return which partitions their owners give up: of each topic those beyond the fair share first.

    Where that leaves a choice, each member goes on in the list of topics where the one before it stopped.
    """
    owned = np.flatnonzero(released[class_index.arc] * (class_index.arc != NO_ARC))
    arc, topic = class_index.arc[owned], indexed.topic[owned].astype(np.int64)
    member = classes.member_of_arc[arc]
    by_owner = np.argsort(member, kind="stable")
    height = np.empty(owned.size, np.int64)
    height[by_owner] = _ranks((member * len(indexed.topics) + topic)[by_owner]) + 1
    share = -(-indexed.sizes // indexed.subscriber_counts)
    lowness = share[topic] - height + indexed.sizes.max()
    of_member = np.bincount(classes.member_of_arc, released, classes.members).astype(np.int64)
    first_topic = (np.cumsum(of_member) - of_member)[member]
    place, count = _among_its_audience(indexed)
    in_turn = (place[topic] - first_topic) % count[topic]
    order = np.argsort((arc * (int(lowness.max()) + 1) + lowness) * int(count.max()) + in_turn)
    return owned[order[_ranks(arc[order]) < released[arc[order]]]]


def _among_its_audience(indexed: IndexedGroup) -> tuple[Int64Array, Int64Array]:
    """Return, for each topic, its place in the list of the topics of its audience, and how many there are."""
    order = np.argsort(indexed.subscriber_set_of, kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = _ranks(indexed.subscriber_set_of[order].astype(np.int64))
    return place, np.bincount(indexed.subscriber_set_of)[indexed.subscriber_set_of]


def _ranks(groups: Int64Array) -> Int64Array:
    """Return 0, 1, 2 and so on for each run of equal numbers."""
    opens = np.ones(groups.size, np.bool_)
    opens[1:] = groups[1:] != groups[:-1]
    firsts = np.flatnonzero(opens)
    return np.arange(groups.size) - np.repeat(firsts, np.diff(np.append(firsts, groups.size)))


class _TopicSpreader:
    """Gives out the partitions that have no owner."""

    def __init__(
        self, indexed: IndexedGroup, classes: PartitionClasses, gained: Int64Array, owner: Owners
    ) -> None:
        self._indexed = indexed
        self._classes = classes
        self._gained = gained
        self._owner = owner
        self._has_owners = np.zeros(len(indexed.topics), np.bool_)
        self._has_owners[indexed.topic[owner != UNASSIGNED]] = True

    def run(self, class_index: ClassIndex, free: Int64Array) -> None:
        """Deal row by row; of a row with one topic all partitions are alike, and these go first."""
        classes = self._classes.sizes.size
        partition_class = class_index.partition_class[free]
        if classes > 1:
            order = np.argsort(partition_class, kind="stable")
            free, partition_class = free[order], partition_class[order]
        topic = self._indexed.topic[free]
        is_mixed = np.zeros(classes, np.bool_)
        is_mixed[
            partition_class[1:][(partition_class[1:] == partition_class[:-1]) & (topic[1:] != topic[:-1])]
        ] = True
        if not is_mixed.all():
            alike = ~is_mixed[partition_class]
            takers = np.where(is_mixed[self._classes.class_of_arc], 0, self._gained)
            self._owner[free[alike]] = np.repeat(self._classes.member_of_arc, takers)
            self._has_owners[topic[alike]] = True
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
        """Give each topic's partitions to those with the fewest of it, and of these to those that gain the most."""
        topic = self._indexed.topic[free]
        opens = np.flatnonzero(np.append(True, topic[1:] != topic[:-1]))
        bounds = np.append(opens, free.size).tolist()
        starts = self._indexed.starts[topic[opens]].tolist()
        ends = self._indexed.starts[topic[opens] + 1].tolist()
        subscriber_index = members.size
        seat_of = np.full(
            self._classes.members + 1, subscriber_index
        )  # that of all others, and of UNASSIGNED, who comes last
        seat_of[members] = np.arange(subscriber_index)
        # Whoever gains the most comes first, then the first one. Whoever gains something has a turn of `subscriber_index` or more.
        turn = np.append(gained * subscriber_index + np.arange(subscriber_index)[::-1], 0)
        for first, end, start, stop in zip(bounds, bounds[1:], starts, ends, strict=False):
            units = end - first
            have_some = seat_of[self._owner[start:stop]]
            if units <= subscriber_index:
                turn_of_others = turn.copy()
                turn_of_others[have_some] = 0
                takers = np.argpartition(turn_of_others, -units)[-units:]
                if turn_of_others[takers].min() >= subscriber_index:
                    takers.sort()
                    self._owner[free[first:end]] = members[takers]
                    turn[takers] -= subscriber_index
                    continue
            has = np.bincount(have_some, minlength=subscriber_index + 1)
            takers = np.flatnonzero(turn >= subscriber_index)
            gets = _fill_least_first(has[takers], turn[takers] // subscriber_index, units)
            self._owner[free[first:end]] = np.repeat(members[takers], gets)
            turn[takers] -= gets * subscriber_index


def _fill_least_first(has: Int64Array, most: Int64Array, units: int) -> Int64Array:
    """Return how many units each gets: those with the fewest first, and of these those that may get the most.

    Args:
        has: What each has.
        most: What each may get; together they may get all.
        units: How many units there are.
    """
    order = np.argsort(-most, kind="stable")
    has, most = has[order], most[order]
    gets = np.zeros(order.size, np.int64)
    while units:
        open_ = np.flatnonzero(gets < most)
        more = np.minimum(water_fill(has[open_] + gets[open_], units), most[open_] - gets[open_])
        gets[open_] += more
        units -= int(more.sum())
    in_order = np.empty_like(gets)
    in_order[order] = gets
    return in_order


def _round_robin_order(gained: Int64Array) -> Int64Array:
    """Return who comes when, if all take part in as many rounds as they gain.

    Whoever gains one less than the others misses the last round. Where the numbers differ by more, all take part
    at even distances.
    """
    takers = np.argsort(-gained, kind="stable")
    taker = np.repeat(takers, gained[takers])
    turn = _ranks(taker)
    if np.ptp(gained) > 1:
        turn = (2 * turn + 1) * min(int(gained.max()), _MOST_ROUNDS) // (2 * gained[taker])
    return taker[np.argsort(turn.astype(np.uint16), kind="stable")]
