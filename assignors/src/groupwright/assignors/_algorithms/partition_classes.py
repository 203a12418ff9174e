"""Partitions that may take each other's place, counted instead of listed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import BoolArray, Int32Array, Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED
from groupwright.assignors._model.group import Group, Topic

NO_ARC = -1
_ANY_RACK = 0


@dataclass(frozen=True, eq=False)
class PartitionClasses:
    """The group as a transport from rows of partitions to members.

    A row is all partitions whose topics have the same audience and that match the same racks: any of them may
    stand for any other, except that some are owned. An arc joins a row to one of its audience. Arcs come by
    row, then by member.

    Attributes:
        members: How many members there are.
        sizes: For each row, how many partitions it has: at least one.
        starts: The arcs of row `i` are those from `starts[i]` to `starts[i + 1]`.
        partition_class: The row of each arc.
        member: The member of each arc.
        owned: How many of the row's partitions the member owns.
        near: Whether the member matches the row's racks.
        audience: The audience of each row in the layout.
    """

    members: int
    sizes: Int64Array
    starts: Int64Array
    class_of_arc: Int64Array
    member_of_arc: Int64Array
    owned: Int64Array
    rack_match: BoolArray
    subscriber_set: Int64Array

    def loads(self, flow: Int64Array) -> Int64Array:
        """Return how many partitions each member has, if it has so many of each row."""
        return np.bincount(self.member_of_arc, flow, self.members).astype(np.int64)

    def totals(self, flow: Int64Array) -> Int64Array:
        """Return how many partitions of each row members have."""
        return np.bincount(self.class_of_arc, flow, self.sizes.size).astype(np.int64)

    def without_racks(self) -> "PartitionClasses":
        """Return the same group with the rows of each audience taken together."""
        if (np.diff(self.subscriber_set) > 0).all():
            return self
        opens = np.append(True, np.diff(self.subscriber_set) > 0)
        firsts = np.flatnonzero(opens)
        widths = np.diff(self.starts)[firsts]
        starts = np.concatenate([[0], np.cumsum(widths)])
        seat = np.arange(self.class_of_arc.size) - self.starts[self.class_of_arc]
        arc = starts[(np.cumsum(opens) - 1)[self.class_of_arc]] + seat
        keeps = opens[self.class_of_arc]
        return PartitionClasses(
            members=self.members,
            sizes=np.add.reduceat(self.sizes, firsts),
            starts=starts,
            class_of_arc=np.repeat(np.arange(firsts.size), widths),
            member_of_arc=self.member_of_arc[keeps],
            owned=np.bincount(arc, self.owned).astype(np.int64),
            rack_match=np.ones(starts[-1], np.bool_),
            subscriber_set=self.subscriber_set[firsts],
        )


@dataclass(frozen=True, eq=False)
class ClassIndex:
    """Where each partition of a layout stands among rows and arcs.

    Attributes:
        partition_class: Its row.
        arc: The arc to the member that owns it, or `NO_ARC`.
    """

    partition_class: Int64Array
    arc: Int64Array


def classify_partitions(
    group: Group, indexed: IndexedGroup, owner: Int32Array
) -> tuple[PartitionClasses, ClassIndex]:
    """Count the partitions of a group by row, and by row and owner.

    Args:
        group: The group.
        indexed: The group as arrays; it has at least one partition.
        owner: For each partition the member that owns it, one of its audience, or `UNASSIGNED`.
    """
    racks = _RackClasses(group, indexed)
    kind = indexed.subscriber_set_of.astype(np.int64)[indexed.topic]
    if racks.count > 1:
        kind = kind * racks.count + racks.of_partitions()
    counts = np.bincount(kind)
    kinds = np.flatnonzero(counts)
    class_of = (np.cumsum(counts > 0) - 1)[kind]
    subscriber_set, rack_class = np.divmod(kinds, racks.count)
    subscriber_sets = [indexed.subscriber_sets[number] for number in subscriber_set.tolist()]
    widths = np.array([members.size for members in subscriber_sets], np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)])
    partition_class = np.repeat(np.arange(kinds.size), widths)
    member = np.concatenate(subscriber_sets).astype(np.int64)
    class_index = ClassIndex(class_of, _arcs(indexed, starts[class_of], owner))
    classes = PartitionClasses(
        members=len(indexed.members),
        sizes=counts[kinds],
        starts=starts,
        class_of_arc=partition_class,
        member_of_arc=member,
        owned=np.bincount(class_index.arc + 1, minlength=partition_class.size + 1)[1:],
        rack_match=racks.matches[rack_class[partition_class], racks.of_members[member]],
        subscriber_set=subscriber_set,
    )
    return classes, class_index


class _RackClasses:
    """Sets of racks that match the same members, numbered; number 0 matches all of them."""

    def __init__(self, group: Group, indexed: IndexedGroup) -> None:
        rack_of = {member.id: member.rack for member in group.members}
        names = sorted({rack for rack in rack_of.values() if rack is not None})
        numbers = {name: number for number, name in enumerate(names)}
        self._topics = [group.topics[name] for name in indexed.topics]
        self.of_members = np.array([numbers.get(rack_of[id_] or "", len(names)) for id_ in indexed.members])
        self._classes = _classes(frozenset(names), self._topics)
        self.count = max(self._classes.values(), default=_ANY_RACK) + 1
        self.matches = np.ones((self.count, len(names) + 1), np.bool_)
        for racks, number in self._classes.items():
            if number != _ANY_RACK:
                self.matches[number, : len(names)] = [name in racks for name in names]

    def of_partitions(self) -> Int64Array:
        """Return the class of each partition, topic after topic."""
        return np.concatenate([self._of_topic(topic) for topic in self._topics])

    def _of_topic(self, topic: Topic) -> Int64Array:
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


def _arcs(indexed: IndexedGroup, first: Int64Array, owner: Int32Array) -> Int64Array:
    """Return, for each partition, the arc to its owner, or `NO_ARC`.

    Args:
        indexed: The group.
        first: For each partition the first arc of its row.
        owner: As in `classify_partitions`.
    """
    arcs = np.full(owner.size, NO_ARC, np.int64)
    owned = np.flatnonzero(owner != UNASSIGNED)
    arcs[owned] = first[owned] + indexed.subscriber_index(indexed.topic[owned], owner[owned])
    return arcs
