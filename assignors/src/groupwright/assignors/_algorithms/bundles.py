"""Bundles: partitions with the same number in joined topics, assigned to one member.

A group of bundles is a group like any other. A topic of bundles stands for certain topics: each of its
partitions is a bundle of their partitions, and its subscribers are the members that subscribe to all of them.
So every algorithm that assigns partitions assigns bundles too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import Int32Array, Int64Array
from groupwright.assignors._model.columns import NOT_FOUND, UNASSIGNED
from groupwright.assignors._model.group import Group, Topic
from groupwright.assignors.errors import AssignorError

Joined = Sequence[Sequence[str]]
"""Lists of joined topics. No topic is in two of them."""

_NO_RACK = frozenset({""})
"""Racks of a bundle whose partitions have no rack in common: no member has an empty rack."""

_log = logging.getLogger("groupwright.assignors.co_partitioned")


@dataclass(frozen=True, eq=False)
class Bundles:
    """The group of bundles of a group.

    Attributes:
        group: The topics of bundles with their racks, and the members. The members' subscriptions are still
            those to the original topics.
        indexed: The indexed form of the group of bundles. Its members are those of the original group.
        bundle_of: `(partitions,) int64`: the bundle of each partition of the original group.
    """

    group: Group
    indexed: IndexedGroup
    bundle_of: Int64Array

    def owners(self, partition_owners: Owners) -> Owners:
        """Return `(bundles,) int32`: the current owner of each bundle, or `UNASSIGNED`.

        A bundle belongs to the member that owns most of its partitions, of those that subscribe to all its
        topics. Of several that own as many, it belongs to the one with the fewest bundles so far, then to the
        first. These ties are resolved last, in the order of the bundles.

        Args:
            partition_owners: `(partitions,) int32`: the current owner of each partition, or `UNASSIGNED`.
        """
        members = len(self.indexed.members)
        owned = np.flatnonzero(partition_owners != UNASSIGNED)
        keys = self.bundle_of[owned] * members + partition_owners[owned]
        pairs, counts = np.unique(keys, return_counts=True)
        bundle, member = np.divmod(pairs, members)
        subscribes = self.indexed.subscriber_index(self.indexed.topic[bundle], member) != NOT_FOUND
        bundle, member, counts = bundle[subscribes], member[subscribes], counts[subscribes]
        most = np.zeros(self.indexed.starts[-1], np.int64)
        np.maximum.at(most, bundle, counts)
        has_most = counts == most[bundle]
        bundle, member = bundle[has_most], member[has_most]
        is_tie = np.bincount(bundle, minlength=most.size)[bundle] > 1
        owner = np.full(most.size, UNASSIGNED, np.int32)
        owner[bundle[~is_tie]] = member[~is_tie]
        loads = np.bincount(member[~is_tie], minlength=members)
        for tied, candidates in _slices(bundle[is_tie], member[is_tie]):
            owner[tied] = candidates[loads[candidates].argmin()]
            loads[owner[tied]] += 1
        return owner


@dataclass(frozen=True, slots=True)
class _BundleTopic:
    """A topic of bundles: the partitions `first` to `end - 1` of its topics.

    Attributes:
        topics: The indexes of the topics, ascending.
        first: The first partition.
        end: The partition after the last one.
        subscribers: The indexes of the members that subscribe to all of the topics, ascending.
    """

    topics: list[int]
    first: int
    end: int
    subscribers: Int32Array

    @property
    def size(self) -> int:
        """The number of bundles."""
        return self.end - self.first


def bundle_partitions(
    group: Group, indexed: IndexedGroup, joined: Joined | None, *, allow_unequal: bool
) -> Bundles:
    """Return the bundles of a group.

    Where the topics of a list have different numbers of partitions, a bundle has fewer partitions: those of
    the topics that have its partition number. Topics without a common subscriber are not joined.

    Args:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        joined: The joined topics; None to join topics with the same subscribers and equal numbers of
            partitions.
        allow_unequal: Whether the topics of a list may have different numbers of partitions.

    Raises:
        AssignorError: Joined topics have different numbers of partitions. The message names them.
    """
    lists = _same_shape(indexed) if joined is None else _from_joined(indexed, joined)
    if not allow_unequal:
        _check_sizes(indexed, lists)
    bundle_topics = [bundle_topic for topics in lists for bundle_topic in _bundle_topics(indexed, topics)]
    bundle_topics.sort(key=lambda bundle_topic: (bundle_topic.topics[0], bundle_topic.first))
    with_racks = any(member.rack is not None for member in group.members)
    topics = {
        f"{number:010}": Topic(each.size, _racks(group, indexed, each) if with_racks else None)
        for number, each in enumerate(bundle_topics)
    }
    return Bundles(
        Group(group.members, topics),
        _index(indexed.members, tuple(topics), bundle_topics),
        _bundle_of(indexed, bundle_topics),
    )


def _same_shape(indexed: IndexedGroup) -> list[list[int]]:
    """Return the lists of topics with the same subscribers and equal numbers of partitions."""
    lists: dict[tuple[int, int], list[int]] = {}
    keys = zip(indexed.subscriber_set_of.tolist(), indexed.sizes.tolist(), strict=True)
    for topic, key in enumerate(keys):
        lists.setdefault(key, []).append(topic)
    return list(lists.values())


def _from_joined(indexed: IndexedGroup, joined: Joined) -> list[list[int]]:
    """Return the indexes of the topics in each list, and of every other topic in a list of its own."""
    not_listed = {name: number for number, name in enumerate(indexed.topics)}
    lists = [sorted(not_listed.pop(name) for name in names if name in not_listed) for names in joined]
    return [topics for topics in lists if topics] + [[topic] for topic in not_listed.values()]


def _check_sizes(indexed: IndexedGroup, lists: Sequence[Sequence[int]]) -> None:
    for topics in lists:
        if np.ptp(indexed.sizes[topics]):
            counts = ", ".join(f"{indexed.topics[topic]!r} has {indexed.sizes[topic]}" for topic in topics)
            raise AssignorError(
                f"joined topics have different numbers of partitions: {counts}. Create them with equal "
                "numbers, or pass allow_unequal=True"
            )


def _bundle_topics(indexed: IndexedGroup, topics: list[int]) -> Iterator[_BundleTopic]:
    """Yield the topics of bundles of a list: one per range of partitions that the same topics have."""
    bounds = [0, *np.unique(indexed.sizes[topics]).tolist()]
    for first, end in pairwise(bounds):
        have_these = [topic for topic in topics if indexed.sizes[topic] >= end]
        sets = {int(indexed.subscriber_set_of[topic]): topic for topic in have_these}
        common = reduce(np.intersect1d, [indexed.subscriber_sets[number] for number in sets])
        if common.size:
            yield _BundleTopic(have_these, first, end, common.astype(np.int32))
            continue
        names = ", ".join(repr(indexed.topics[topic]) for topic in have_these)
        _log.warning("No member subscribes to all joined topics (%s), so they are assigned separately", names)
        for topic in have_these:
            subscribers = indexed.subscriber_sets[indexed.subscriber_set_of[topic]]
            yield _BundleTopic([topic], first, end, subscribers)


def _racks(group: Group, indexed: IndexedGroup, bundle_topic: _BundleTopic) -> list[frozenset[str]] | None:
    """Return, by bundle, the racks where all partitions have a replica; None if the racks are unknown.

    As elsewhere, a partition without racks matches every member, and so does an empty set of racks.
    """
    topics = [group.topics[indexed.topics[topic]] for topic in bundle_topic.topics]
    known = [topic.racks for topic in topics if topic.racks is not None]
    if not known:
        return None
    bundles = zip(*(racks[bundle_topic.first : bundle_topic.end] for racks in known), strict=True)
    return [_common_racks([racks for racks in bundle if racks]) for bundle in bundles]


def _common_racks(racks: Sequence[frozenset[str]]) -> frozenset[str]:
    return (frozenset.intersection(*racks) or _NO_RACK) if racks else frozenset()


def _index(
    members: tuple[str, ...], names: tuple[str, ...], bundle_topics: Sequence[_BundleTopic]
) -> IndexedGroup:
    """Return the indexed form of the group of bundles."""
    sets: dict[bytes, int] = {}
    set_of = [sets.setdefault(each.subscribers.tobytes(), len(sets)) for each in bundle_topics]
    return IndexedGroup(
        members=members,
        topics=names,
        sizes=np.array([each.size for each in bundle_topics], np.int32),
        subscriber_set_of=np.array(set_of, np.int32),
        subscriber_sets=tuple(np.frombuffer(data, np.int32) for data in sets),
    )


def _bundle_of(indexed: IndexedGroup, bundle_topics: Sequence[_BundleTopic]) -> Int64Array:
    """Return `(partitions,) int64`: the bundle of each partition."""
    bundle_of = np.empty(indexed.starts[-1], np.int64)
    next_bundle = 0
    for bundle_topic in bundle_topics:
        bundles = np.arange(next_bundle, next_bundle + bundle_topic.size)
        for topic in bundle_topic.topics:
            start = indexed.starts[topic] + bundle_topic.first
            bundle_of[start : start + bundle_topic.size] = bundles
        next_bundle += bundle_topic.size
    return bundle_of


def _slices(keys: Int64Array, values: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """Yield each distinct key, and its values.

    Args:
        keys: `(pairs,) int64`: ascending keys.
        values: `(pairs,) int64`: the value of each.
    """
    distinct, starts = np.unique(keys, return_index=True)
    if distinct.size:
        yield from zip(distinct.tolist(), np.split(values, starts[1:]), strict=True)
