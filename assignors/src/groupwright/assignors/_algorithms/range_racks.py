"""How racks change the ranges (KIP-881): partitions near their members first, then the others in ranges."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED
from groupwright.assignors._model.group import Group, Topic

SubscriberIndex = Int64Array
"""For each partition of a topic its owner's place in the topic's audience."""

_Racks = frozenset[str]


def rack_aware_index(group: Group, indexed: IndexedGroup) -> Iterator[tuple[list[int], SubscriberIndex]]:
    """Go through the topics in which racks have a say: the numbers of some that are cut alike, and their seats.

    Racks have a say if some topic needs it: one whose partitions are not all in the same racks, and are in the
    rack of a subscriber. Then they have it in all topics that are to stay together, since others have the same
    subscribers and the same number of partitions; and in those of the rest that need it.
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
    cut_alike: dict[tuple[int, int], list[int]] = {}
    for number, topic in enumerate(topics):
        cut_alike.setdefault((subscriber_set_of[number], topic.partitions), []).append(number)
    for (subscriber_set, partitions), numbers in cut_alike.items():
        if len(numbers) > 1 or needs_racks[numbers[0]]:
            ranges = _Ranges(partitions, racks[subscriber_set])
            near = _racks_in_common([topics[number] for number in numbers])
            (ranges.give_together if len(numbers) > 1 else ranges.give_near)(near)
            yield numbers, ranges.subscriber_index()


class _Ranges:
    """One cut of some topics with the same subscribers and the same number of partitions, in the making."""

    def __init__(self, partitions: int, racks: Sequence[str | None]) -> None:
        """Start with nothing given.

        Args:
            partitions: How many partitions each topic has.
            racks: The rack of each subscriber, who has a seat in this order.
        """
        self._racks = racks
        self._each, self._larger_left = divmod(partitions, len(racks))
        self._given = [0] * len(racks)
        self._seat_of = [UNASSIGNED] * partitions

    def give_together(self, near: Sequence[_Racks]) -> None:
        """Give each partition, of all topics, to the first that is near and has room. One with no rack is near.

        Args:
            near: For each partition the racks where all topics have it.
        """
        waiting: dict[str | None, deque[int]] = {}
        for seat, rack in enumerate(self._racks):
            waiting.setdefault(rack, deque()).append(seat)
        for partition, racks in enumerate(near):
            queues = [waiting[rack] for rack in (None, *racks) if rack in waiting]
            for queue in queues:
                while queue and not self._room(queue[0]):
                    queue.popleft()
            seat = min((queue[0] for queue in queues if queue), default=UNASSIGNED)
            if seat != UNASSIGNED:
                self._fill_class(seat, [partition])

    def give_near(self, near: Sequence[_Racks]) -> None:
        """Give each member in turn the first partitions that are near, as many as it has room for."""
        here: dict[str | None, list[int]] = {None: list(range(len(near)))}
        for partition, racks in enumerate(near):
            for name in racks:
                here.setdefault(name, []).append(partition)
        free = {rack: self._free(partitions) for rack, partitions in here.items()}
        left = len(near)
        for seat, rack in enumerate(self._racks):
            if not left:
                break
            if rack in free:
                left -= self._fill_class(seat, list(islice(free[rack], self._room(seat))))

    def subscriber_index(self) -> SubscriberIndex:
        """Give the rest in ranges, and return all."""
        given = np.array(self._given)
        larger = given > self._each
        shares = self._each + larger
        shares[np.flatnonzero(~larger)[: self._larger_left]] += 1
        subscriber_index = np.array(self._seat_of)
        subscriber_index[subscriber_index == UNASSIGNED] = np.repeat(np.arange(given.size), shares - given)
        return subscriber_index

    def _room(self, seat: int) -> int:
        return max(0, self._each + (self._larger_left > 0) - self._given[seat])

    def _fill_class(self, seat: int, partitions: Sequence[int]) -> int:
        """Give partitions to a seat, and return how many."""
        had = self._given[seat]
        self._given[seat] += len(partitions)
        self._larger_left -= had <= self._each < self._given[seat]
        for partition in partitions:
            self._seat_of[partition] = seat
        return len(partitions)

    def _free(self, partitions: Iterable[int]) -> Iterator[int]:
        return (partition for partition in partitions if self._seat_of[partition] == UNASSIGNED)


def _needs_racks(topic: Topic, racks: Iterable[str | None]) -> bool:
    """Tell whether it matters who of its subscribers, in these racks, gets which partition."""
    different = set(topic.racks or ())
    return len(different) > 1 and not frozenset[str | None]().union(*different).isdisjoint(racks)


def _racks_in_common(topics: Sequence[Topic]) -> list[_Racks]:
    """Return, for each partition number, the racks where all topics have a replica of it."""
    racks = [topic.racks or (frozenset[str](),) * topic.partitions for topic in topics]
    return [frozenset.intersection(*set(in_topics)) for in_topics in zip(*racks, strict=True)]
