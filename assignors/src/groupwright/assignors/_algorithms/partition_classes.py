"""Partition classes: interchangeable partitions, counted instead of listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import BoolArray, Int32Array, Int64Array
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.group import Group, Topic

NO_ARC = -1
"""Arc of a partition without an owner."""

_ANY_RACK = 0


@dataclass(frozen=True, eq=False)
class PartitionClasses:
    """The group as a transportation problem: partition classes supply partitions, and members take them.

    A class is all partitions whose topics have the same subscribers and that match the same racks. They are
    interchangeable, except that some are owned. An arc joins a class to one of its subscribers. Arcs are
    sorted by class, then by member.

    Attributes:
        members: The number of members.
        sizes: `(classes,) int64`: the number of partitions of each class, at least one.
        starts: `(classes + 1,) int64`: the arcs of class `i` are `starts[i]` to `starts[i + 1]`.
        class_of_arc: `(arcs,) int64`: the class of each arc.
        member_of_arc: `(arcs,) int64`: the member of each arc.
        owned: `(arcs,) int64`: how many partitions of the class the member owns.
        rack_match: `(arcs,) bool`: whether the member matches the racks of the class.
        subscriber_set: `(classes,) int64`: the index of each class's subscriber set in the indexed group.
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
        """Return `(members,) int64`: the number of partitions of each member in a flow."""
        return np.bincount(self.member_of_arc, flow, self.members).astype(np.int64)

    def totals(self, flow: Int64Array) -> Int64Array:
        """Return `(classes,) int64`: the number of assigned partitions of each class in a flow."""
        return np.bincount(self.class_of_arc, flow, self.sizes.size).astype(np.int64)

    def without_racks(self) -> PartitionClasses:
        """Return the same group with one class per subscriber set."""
        if (np.diff(self.subscriber_set) > 0).all():
            return self
        is_first = np.append(True, np.diff(self.subscriber_set) > 0)
        firsts = np.flatnonzero(is_first)
        degrees = np.diff(self.starts)[firsts]
        starts = np.concatenate([[0], np.cumsum(degrees)])
        offset = np.arange(self.class_of_arc.size) - self.starts[self.class_of_arc]
        arc = starts[(np.cumsum(is_first) - 1)[self.class_of_arc]] + offset
        keeps = is_first[self.class_of_arc]
        return PartitionClasses(
            members=self.members,
            sizes=np.add.reduceat(self.sizes, firsts),
            starts=starts,
            class_of_arc=np.repeat(np.arange(firsts.size), degrees),
            member_of_arc=self.member_of_arc[keeps],
            owned=np.bincount(arc, self.owned).astype(np.int64),
            rack_match=np.ones(starts[-1], np.bool_),
            subscriber_set=self.subscriber_set[firsts],
        )


@dataclass(frozen=True, eq=False)
class ClassIndex:
    """The class and the arc of each partition of an indexed group.

    Attributes:
        partition_class: `(partitions,) int64`: the class.
        arc: `(partitions,) int64`: the arc to the member that owns the partition, or `NO_ARC`.
    """

    partition_class: Int64Array
    arc: Int64Array


def classify_partitions(
    group: Group, indexed: IndexedGroup, owner: Int32Array
) -> tuple[PartitionClasses, ClassIndex]:
    """Count the partitions of a group by class, and by class and owner.

    Args:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        owner: `(partitions,) int32`: the member that owns each partition, a subscriber of its topic, or
            `UNASSIGNED`.

    Returns:
        The classes, and the class and arc of each partition.
    """
    racks = _RackClasses(group, indexed)
    key = indexed.subscriber_set_of.astype(np.int64)[indexed.topic]
    if racks.count > 1:
        key = key * racks.count + racks.of_partitions()
    counts = np.bincount(key)
    keys = np.flatnonzero(counts)
    class_of = (np.cumsum(counts > 0) - 1)[key]
    subscriber_set, rack_class = np.divmod(keys, racks.count)
    subscriber_sets = [indexed.subscriber_sets[number] for number in subscriber_set.tolist()]
    degrees = np.array([members.size for members in subscriber_sets], np.int64)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    partition_class = np.repeat(np.arange(keys.size), degrees)
    member = np.concatenate(subscriber_sets).astype(np.int64)
    class_index = ClassIndex(class_of, _arcs(indexed, starts[class_of], owner))
    classes = PartitionClasses(
        members=len(indexed.members),
        sizes=counts[keys],
        starts=starts,
        class_of_arc=partition_class,
        member_of_arc=member,
        owned=np.bincount(class_index.arc + 1, minlength=partition_class.size + 1)[1:],
        rack_match=racks.matches[rack_class[partition_class], racks.of_members[member]],
        subscriber_set=subscriber_set,
    )
    return classes, class_index


class _RackClasses:
    """Classes of rack sets that match the same members; class 0 matches all members.

    Attributes:
        count: The number of classes.
        of_members: `(members,) int64`: the number of each member's rack.
        matches: `(classes, racks + 1) bool`: whether a class matches the members of a rack.
    """

    def __init__(self, group: Group, indexed: IndexedGroup) -> None:
        rack_of = {member.id: member.rack for member in group.members}
        names = sorted({rack for rack in rack_of.values() if rack is not None})
        numbers = {name: number for number, name in enumerate(names)}
        self._topics = [group.topics[name] for name in indexed.topics]
        # Members without a rack have the number after the last; its column in `matches` is all true.
        self.of_members = np.array([numbers.get(rack_of[id_] or "", len(names)) for id_ in indexed.members])
        self._rack_classes = _rack_classes(frozenset(names), self._topics)
        self.count = max(self._rack_classes.values(), default=_ANY_RACK) + 1
        self.matches = np.ones((self.count, len(names) + 1), np.bool_)
        for racks, number in self._rack_classes.items():
            if number != _ANY_RACK:
                self.matches[number, : len(names)] = [name in racks for name in names]

    def of_partitions(self) -> Int64Array:
        """Return `(partitions,) int64`: the rack class of each partition."""
        return np.concatenate([self._of_topic(topic) for topic in self._topics])

    def _of_topic(self, topic: Topic) -> Int64Array:
        if topic.racks is None:
            return np.full(topic.partitions, _ANY_RACK, np.int64)
        return np.fromiter(map(self._rack_classes.__getitem__, topic.racks), np.int64, topic.partitions)


def _rack_classes(member_racks: frozenset[str], topics: Sequence[Topic]) -> dict[frozenset[str], int]:
    """Return the class of each rack set of a partition, by the racks of members in it.

    Empty if no member has a rack: then racks make no difference.
    """
    if not member_racks:
        return {}
    distinct = {racks for topic in topics for racks in topic.racks or ()}
    numbers = {member_racks: _ANY_RACK}
    ordered = sorted(distinct, key=sorted)
    return {
        racks: numbers.setdefault(racks & member_racks, len(numbers)) if racks else _ANY_RACK
        for racks in ordered
    }


def _arcs(indexed: IndexedGroup, first: Int64Array, owner: Int32Array) -> Int64Array:
    """Return `(partitions,) int64`: the arc to each partition's owner, or `NO_ARC`.

    Args:
        indexed: The group.
        first: `(partitions,) int64`: the first arc of each partition's class.
        owner: See `classify_partitions`.
    """
    arcs = np.full(owner.size, NO_ARC, np.int64)
    owned = np.flatnonzero(owner != UNASSIGNED)
    arcs[owned] = first[owned] + indexed.subscriber_index(indexed.topic[owned], owner[owned])
    return arcs
