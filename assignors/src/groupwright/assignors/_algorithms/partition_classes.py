"""Partitions that may take each other's place, counted instead of listed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._model.assignment import NOBODY
from groupwright.assignors._model.group import Group, Topic

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_ARC = -1
_ANY_RACK = 0


@dataclass(frozen=True, eq=False)
class Rows:
    """The group as a transport from rows of partitions to members.

    A row is all partitions whose topics have the same audience and that match the same racks: any of them may
    stand for any other, except that some are owned. An arc joins a row to one of its audience. Arcs come by
    row, then by member.

    Attributes:
        members: How many members there are.
        sizes: For each row, how many partitions it has: at least one.
        starts: The arcs of row `i` are those from `starts[i]` to `starts[i + 1]`.
        row: The row of each arc.
        member: The member of each arc.
        owned: How many of the row's partitions the member owns.
        near: Whether the member matches the row's racks.
        audience: The audience of each row in the layout.
    """

    members: int
    sizes: Ints
    starts: Ints
    row: Ints
    member: Ints
    owned: Ints
    near: Flags
    audience: Ints

    def loads(self, flow: Ints) -> Ints:
        """Return how many partitions each member has, if it has so many of each row."""
        return np.bincount(self.member, flow, self.members).astype(np.int64)

    def totals(self, flow: Ints) -> Ints:
        """Return how many partitions of each row members have."""
        return np.bincount(self.row, flow, self.sizes.size).astype(np.int64)

    def without_racks(self) -> "Rows":
        """Return the same group with the rows of each audience taken together."""
        if (np.diff(self.audience) > 0).all():
            return self
        opens = np.append(True, np.diff(self.audience) > 0)
        firsts = np.flatnonzero(opens)
        widths = np.diff(self.starts)[firsts]
        starts = np.concatenate([[0], np.cumsum(widths)])
        seat = np.arange(self.row.size) - self.starts[self.row]
        arc = starts[(np.cumsum(opens) - 1)[self.row]] + seat
        keeps = opens[self.row]
        return Rows(
            members=self.members,
            sizes=np.add.reduceat(self.sizes, firsts),
            starts=starts,
            row=np.repeat(np.arange(firsts.size), widths),
            member=self.member[keeps],
            owned=np.bincount(arc, self.owned).astype(np.int64),
            near=np.ones(starts[-1], np.bool_),
            audience=self.audience[firsts],
        )


@dataclass(frozen=True, eq=False)
class Places:
    """Where each partition of a layout stands among rows and arcs.

    Attributes:
        row: Its row.
        arc: The arc to the member that owns it, or `NO_ARC`.
    """

    row: Ints
    arc: Ints


def make_rows(group: Group, layout: Layout, owner: npt.NDArray[np.int32]) -> tuple[Rows, Places]:
    """Count the partitions of a group by row, and by row and owner.

    Args:
        group: The group.
        layout: The group as arrays; it has at least one partition.
        owner: For each partition the member that owns it, one of its audience, or `NOBODY`.
    """
    racks = _RackClasses(group, layout)
    kind = layout.audience_of.astype(np.int64)[layout.topic]
    if racks.count > 1:
        kind = kind * racks.count + racks.of_partitions()
    counts = np.bincount(kind)
    kinds = np.flatnonzero(counts)
    row_of = (np.cumsum(counts > 0) - 1)[kind]
    audience, rack_class = np.divmod(kinds, racks.count)
    audiences = [layout.audiences[number] for number in audience.tolist()]
    widths = np.array([members.size for members in audiences], np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)])
    row = np.repeat(np.arange(kinds.size), widths)
    member = np.concatenate(audiences).astype(np.int64)
    places = Places(row_of, _arcs(layout, starts[row_of], owner))
    rows = Rows(
        members=len(layout.members),
        sizes=counts[kinds],
        starts=starts,
        row=row,
        member=member,
        owned=np.bincount(places.arc + 1, minlength=row.size + 1)[1:],
        near=racks.matches[rack_class[row], racks.of_members[member]],
        audience=audience,
    )
    return rows, places


class _RackClasses:
    """Sets of racks that match the same members, numbered; number 0 matches all of them."""

    def __init__(self, group: Group, layout: Layout) -> None:
        rack_of = {member.id: member.rack for member in group.members}
        names = sorted({rack for rack in rack_of.values() if rack is not None})
        numbers = {name: number for number, name in enumerate(names)}
        self._topics = [group.topics[name] for name in layout.topics]
        self.of_members = np.array([numbers.get(rack_of[id_] or "", len(names)) for id_ in layout.members])
        self._classes = _classes(frozenset(names), self._topics)
        self.count = max(self._classes.values(), default=_ANY_RACK) + 1
        self.matches = np.ones((self.count, len(names) + 1), np.bool_)
        for racks, number in self._classes.items():
            if number != _ANY_RACK:
                self.matches[number, : len(names)] = [name in racks for name in names]

    def of_partitions(self) -> Ints:
        """Return the class of each partition, topic after topic."""
        return np.concatenate([self._of_topic(topic) for topic in self._topics])

    def _of_topic(self, topic: Topic) -> Ints:
        if topic.racks is None:
            return np.full(topic.partitions, _ANY_RACK, np.int64)
        return np.fromiter(map(self._classes.__getitem__, topic.racks), np.int64, topic.partitions)


def _classes(of_members: frozenset[str], topics: Sequence[Topic]) -> dict[frozenset[str], int]:
    """Return the number of each set of racks that a partition has, if there are members with racks."""
    if not of_members:
        return {}
    distinct = {racks for topic in topics for racks in topic.racks or ()}
    numbers = {of_members: _ANY_RACK}
    in_order = sorted(distinct, key=sorted)
    return {
        racks: numbers.setdefault(racks & of_members, len(numbers)) if racks else _ANY_RACK
        for racks in in_order
    }


def _arcs(layout: Layout, first: Ints, owner: npt.NDArray[np.int32]) -> Ints:
    """Return, for each partition, the arc to its owner, or `NO_ARC`.

    Args:
        layout: The group.
        first: For each partition the first arc of its row.
        owner: As in `make_rows`.
    """
    arcs = np.full(owner.size, NO_ARC, np.int64)
    owned = np.flatnonzero(owner != NOBODY)
    arcs[owned] = first[owned] + layout.seats(layout.topic[owned], owner[owned])
    return arcs
