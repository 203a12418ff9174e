"""Which partitions of a row each member gets: those it owns, and of the others some of each topic.

How many partitions each member keeps and gains of each row is settled before. Here they are chosen so that each
topic is spread over its members as evenly as that allows: by a heuristic, which is exact where nobody owns
anything, all subscribe to the same, and no racks matter.
"""

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._algorithms.partition_classes import NO_ARC, Ints, Places, Rows
from groupwright.assignors._algorithms.water_fill import pour
from groupwright.assignors._model.assignment import NOBODY

_MOST_ROUNDS = 2**16 - 1


def choose_partitions(layout: Layout, rows: Rows, places: Places, flow: Ints) -> Owners:
    """Return the owner of each partition of the layout.

    Args:
        layout: The group.
        rows: Its rows.
        places: Where its partitions stand.
        flow: For each arc, how many of the row's partitions the member gets.
    """
    released = np.maximum(rows.owned - flow, 0)
    stays = places.arc != NO_ARC
    if released.any():
        stays[_released(layout, rows, places, released)] = False
    owner = np.full(stays.size, NOBODY, np.int32)
    owner[stays] = rows.member[places.arc[stays]]
    free = np.flatnonzero(~stays)
    if free.size:
        _Deal(layout, rows, np.maximum(flow - rows.owned, 0), owner).run(places, free)
    return owner


def _released(layout: Layout, rows: Rows, places: Places, released: Ints) -> Ints:
    """Return which partitions their owners give up: of each topic those beyond the fair share first.

    Where that leaves a choice, each member goes on in the list of topics where the one before it stopped.
    """
    owned = np.flatnonzero(released[places.arc] * (places.arc != NO_ARC))
    arc, topic = places.arc[owned], layout.topic[owned].astype(np.int64)
    member = rows.member[arc]
    by_owner = np.argsort(member, kind="stable")
    height = np.empty(owned.size, np.int64)
    height[by_owner] = _ranks((member * len(layout.topics) + topic)[by_owner]) + 1
    share = -(-layout.sizes // layout.audience_sizes)
    lowness = share[topic] - height + layout.sizes.max()
    of_member = np.bincount(rows.member, released, rows.members).astype(np.int64)
    first_topic = (np.cumsum(of_member) - of_member)[member]
    place, count = _among_its_audience(layout)
    in_turn = (place[topic] - first_topic) % count[topic]
    order = np.argsort((arc * (int(lowness.max()) + 1) + lowness) * int(count.max()) + in_turn)
    return owned[order[_ranks(arc[order]) < released[arc[order]]]]


def _among_its_audience(layout: Layout) -> tuple[Ints, Ints]:
    """Return, for each topic, its place in the list of the topics of its audience, and how many there are."""
    order = np.argsort(layout.audience_of, kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = _ranks(layout.audience_of[order].astype(np.int64))
    return place, np.bincount(layout.audience_of)[layout.audience_of]


def _ranks(groups: Ints) -> Ints:
    """Return 0, 1, 2 and so on for each run of equal numbers."""
    opens = np.ones(groups.size, np.bool_)
    opens[1:] = groups[1:] != groups[:-1]
    firsts = np.flatnonzero(opens)
    return np.arange(groups.size) - np.repeat(firsts, np.diff(np.append(firsts, groups.size)))


class _Deal:
    """Gives out the partitions that have no owner."""

    def __init__(self, layout: Layout, rows: Rows, gained: Ints, owner: Owners) -> None:
        self._layout = layout
        self._rows = rows
        self._gained = gained
        self._owner = owner
        self._has_owners = np.zeros(len(layout.topics), np.bool_)
        self._has_owners[layout.topic[owner != NOBODY]] = True

    def run(self, places: Places, free: Ints) -> None:
        """Deal row by row; of a row with one topic all partitions are alike, and these go first."""
        rows = self._rows.sizes.size
        row = places.row[free]
        if rows > 1:
            order = np.argsort(row, kind="stable")
            free, row = free[order], row[order]
        topic = self._layout.topic[free]
        is_mixed = np.zeros(rows, np.bool_)
        is_mixed[row[1:][(row[1:] == row[:-1]) & (topic[1:] != topic[:-1])]] = True
        if not is_mixed.all():
            alike = ~is_mixed[row]
            takers = np.where(is_mixed[self._rows.row], 0, self._gained)
            self._owner[free[alike]] = np.repeat(self._rows.member, takers)
            self._has_owners[topic[alike]] = True
        ends = np.cumsum(np.bincount(row, minlength=rows))
        for number in np.flatnonzero(is_mixed).tolist():
            self._deal_row(number, free[ends[number - 1] if number else 0 : ends[number]])

    def _deal_row(self, row: int, free: Ints) -> None:
        arcs = np.arange(self._rows.starts[row], self._rows.starts[row + 1])
        arcs = arcs[self._gained[arcs] > 0]
        members, gained = self._rows.member[arcs], self._gained[arcs]
        topics = self._layout.topic[free]
        if members.size == 1:
            self._owner[free] = members[0]
        elif self._has_owners[topics].any():
            self._deal_topics(free, members, gained)
        else:
            self._owner[free] = members[_in_rounds(gained)]
        self._has_owners[topics] = True

    def _deal_topics(self, free: Ints, members: Ints, gained: Ints) -> None:
        """Give each topic's partitions to those with the fewest of it, and of these to those that gain the most."""
        topic = self._layout.topic[free]
        opens = np.flatnonzero(np.append(True, topic[1:] != topic[:-1]))
        bounds = np.append(opens, free.size).tolist()
        starts = self._layout.starts[topic[opens]].tolist()
        ends = self._layout.starts[topic[opens] + 1].tolist()
        seats = members.size
        seat_of = np.full(self._rows.members + 1, seats)  # that of all others, and of NOBODY, who comes last
        seat_of[members] = np.arange(seats)
        # Whoever gains the most comes first, then the first one. Whoever gains something has a turn of `seats` or more.
        turn = np.append(gained * seats + np.arange(seats)[::-1], 0)
        for first, end, start, stop in zip(bounds, bounds[1:], starts, ends, strict=False):
            units = end - first
            have_some = seat_of[self._owner[start:stop]]
            if units <= seats:
                turn_of_others = turn.copy()
                turn_of_others[have_some] = 0
                takers = np.argpartition(turn_of_others, -units)[-units:]
                if turn_of_others[takers].min() >= seats:
                    takers.sort()
                    self._owner[free[first:end]] = members[takers]
                    turn[takers] -= seats
                    continue
            has = np.bincount(have_some, minlength=seats + 1)
            takers = np.flatnonzero(turn >= seats)
            gets = _fewest_first(has[takers], turn[takers] // seats, units)
            self._owner[free[first:end]] = np.repeat(members[takers], gets)
            turn[takers] -= gets * seats


def _fewest_first(has: Ints, most: Ints, units: int) -> Ints:
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
        more = np.minimum(pour(has[open_] + gets[open_], units), most[open_] - gets[open_])
        gets[open_] += more
        units -= int(more.sum())
    in_order = np.empty_like(gets)
    in_order[order] = gets
    return in_order


def _in_rounds(gained: Ints) -> Ints:
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
