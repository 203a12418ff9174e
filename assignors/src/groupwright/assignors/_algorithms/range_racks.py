"""Rack-aware `range` (KIP-881): partitions that match their owner's rack first, then the others in ranges."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.group import Group, Topic

SubscriberIndex = Int64Array
"""`(partitions,) int64`: the owners of a topic's partitions, as indexes among its subscribers."""

_Racks = frozenset[str]


def rack_aware_index(group: Group, indexed: IndexedGroup) -> Iterator[tuple[list[int], SubscriberIndex]]:
    """Yield lists of topics (indexes) to which racks apply, and the owners that all topics of a list share.

    A topic needs racks if its partitions are not all in the same racks, and some are in a subscriber's rack
    (Java's `needsRackAwareAssignment`). If any topic does, racks apply to it, and to all co-partitioned
    topics: those with the same subscribers and the same number of partitions as another.
    """
    rack_of = {member.id: member.rack for member in group.members}
    of_members = np.array([rack_of[id_] for id_ in indexed.members], object)
    racks: list[list[str | None]] = [
        of_members[subscriber_set].tolist() for subscriber_set in indexed.subscriber_sets
    ]
    subscriber_set_of = indexed.subscriber_set_of.tolist()
    topics = [group.topics[name] for name in indexed.topics]
    needs_racks = [
        _needs_racks(topic, racks[subscriber_set])
        for topic, subscriber_set in zip(topics, subscriber_set_of, strict=True)
    ]
    if not any(needs_racks):
        return
    co_partitioned: dict[tuple[int, int], list[int]] = {}
    for number, topic in enumerate(topics):
        co_partitioned.setdefault((subscriber_set_of[number], topic.partitions), []).append(number)
    for (subscriber_set, partitions), numbers in co_partitioned.items():
        if len(numbers) > 1 or needs_racks[numbers[0]]:
            ranges = _RangeBuilder(partitions, racks[subscriber_set])
            rack_matches = _racks_in_common([topics[number] for number in numbers])
            (ranges.assign_co_partitioned if len(numbers) > 1 else ranges.assign_rack_matches)(rack_matches)
            yield numbers, ranges.subscriber_index()


class _RangeBuilder:
    """Builds the assignment of topics with the same subscribers and the same number of partitions.

    Java's `RangeAssignor.TopicAssignmentState`.
    """

    def __init__(self, partitions: int, racks: Sequence[str | None]) -> None:
        """Start with unassigned partitions.

        Args:
            partitions: The number of partitions of each topic.
            racks: The rack of each subscriber.
        """
        self._racks = racks
        # Java's `numPartitionsPerConsumer` and `remainingConsumersWithExtraPartition`.
        self._per_subscriber, self._larger_ranges_left = divmod(partitions, len(racks))
        self._assigned = [0] * len(racks)
        self._owner = [UNASSIGNED] * partitions

    def assign_co_partitioned(self, rack_matches: Sequence[_Racks]) -> None:
        """Assign each partition, in all topics at once, to the first rack-matching subscriber with room.

        Args:
            rack_matches: By partition, the racks where all topics have a replica.
        """
        subscribers_by_rack: dict[str | None, deque[int]] = {}
        for owner, rack in enumerate(self._racks):
            subscribers_by_rack.setdefault(rack, deque()).append(owner)
        for partition, racks in enumerate(rack_matches):
            queues = [subscribers_by_rack[rack] for rack in (None, *racks) if rack in subscribers_by_rack]
            for queue in queues:
                while queue and not self._room(queue[0]):
                    queue.popleft()
            owner = min((queue[0] for queue in queues if queue), default=UNASSIGNED)
            if owner != UNASSIGNED:
                self._assign(owner, [partition])

    def assign_rack_matches(self, rack_matches: Sequence[_Racks]) -> None:
        """Assign to each subscriber in turn the first rack-matching partitions, as many as it has room for.

        Args:
            rack_matches: By partition, the racks where the topic has a replica.
        """
        partitions_by_rack: dict[str | None, list[int]] = {None: list(range(len(rack_matches)))}
        for partition, racks in enumerate(rack_matches):
            for name in racks:
                partitions_by_rack.setdefault(name, []).append(partition)
        unassigned_by_rack = {
            rack: self._unassigned(partitions) for rack, partitions in partitions_by_rack.items()
        }
        left = len(rack_matches)
        for owner, rack in enumerate(self._racks):
            if not left:
                break
            if rack in unassigned_by_rack:
                left -= self._assign(owner, list(islice(unassigned_by_rack[rack], self._room(owner))))

    def subscriber_index(self) -> SubscriberIndex:
        """Assign the remaining partitions in ranges; return all owners as indexes among the subscribers."""
        assigned = np.array(self._assigned)
        has_larger = assigned > self._per_subscriber
        sizes = self._per_subscriber + has_larger
        sizes[np.flatnonzero(~has_larger)[: self._larger_ranges_left]] += 1
        subscriber_index = np.array(self._owner)
        subscriber_index[subscriber_index == UNASSIGNED] = np.repeat(
            np.arange(assigned.size), sizes - assigned
        )
        return subscriber_index

    def _room(self, owner: int) -> int:
        """Return how many partitions the subscriber may still be assigned (Java's `maxAssignable`)."""
        return max(0, self._per_subscriber + (self._larger_ranges_left > 0) - self._assigned[owner])

    def _assign(self, owner: int, partitions: Sequence[int]) -> int:
        """Assign partitions to a subscriber, and return their number."""
        before = self._assigned[owner]
        self._assigned[owner] += len(partitions)
        self._larger_ranges_left -= before <= self._per_subscriber < self._assigned[owner]
        for partition in partitions:
            self._owner[partition] = owner
        return len(partitions)

    def _unassigned(self, partitions: Iterable[int]) -> Iterator[int]:
        return (partition for partition in partitions if self._owner[partition] == UNASSIGNED)


def _needs_racks(topic: Topic, racks: Iterable[str | None]) -> bool:
    """Return whether the topic needs racks, given those of its subscribers."""
    distinct = set(topic.racks or ())
    return len(distinct) > 1 and not frozenset[str | None]().union(*distinct).isdisjoint(racks)


def _racks_in_common(topics: Sequence[Topic]) -> list[_Racks]:
    """Return, by partition, the racks where all topics have a replica of it."""
    racks = [topic.racks or (frozenset[str](),) * topic.partitions for topic in topics]
    return [frozenset.intersection(*set(in_topics)) for in_topics in zip(*racks, strict=True)]
