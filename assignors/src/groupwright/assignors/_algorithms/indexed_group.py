"""A group as arrays: what the assignors compute on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groupwright.assignors._model.arrays import Int32Array, IntegerArray, Offsets, numbers_in_slices
from groupwright.assignors._model.assignment import UNASSIGNED, Assignment
from groupwright.assignors._model.group import Group, Member
from groupwright.assignors._model.order import sorted_members, sorted_names
from groupwright.assignors._wire.interning import topic_indexes

NOT_FOUND = -1
"""The place of a pair that is not among the given ones."""

_RADIX = 2**16
_CELLS = 2**22  # of a table at a time


@dataclass(frozen=True, eq=False)
class IndexedGroup:
    """Members and topics by number, and the partitions of all topics on end.

    Topics with the same subscribers share one audience, so that a group in which all subscribe to the same
    has one, however many members and topics it has.

    Attributes:
        members: The ids, in Kafka's order of members.
        topics: The topics that can be assigned (they have partitions and a subscriber), by name.
        sizes: How many partitions each topic has.
        audience_of: Which of the audiences each topic has.
        audiences: The numbers of some topics' subscribers, ascending; none is empty.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    sizes: Int32Array
    subscriber_set_of: Int32Array
    subscriber_sets: tuple[Int32Array, ...]

    @classmethod
    def of(cls, group: Group) -> "IndexedGroup":
        """Lay out a group."""
        members = sorted_members(group.members)
        subscriptions, subscription_of = distinct_subscriptions(members)
        names = sorted_names(name for name, topic in group.topics.items() if topic.partitions)
        topics, subscriber_set_of, subscriber_sets = _audiences(names, subscriptions, subscription_of)
        return cls(
            members=tuple(member.id for member in members),
            topics=topics,
            sizes=np.array([group.topics[name].partitions for name in topics], np.int32),
            subscriber_set_of=subscriber_set_of,
            subscriber_sets=subscriber_sets,
        )

    @cached_property
    def subscriber_counts(self) -> Int32Array:
        """How many subscribers each topic has."""
        return np.array([subscriber_set.size for subscriber_set in self.subscriber_sets], np.int32)[
            self.subscriber_set_of
        ]

    @cached_property
    def starts(self) -> Offsets:
        """Where each topic's partitions start among all, and, last, how many partitions there are."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @cached_property
    def topic(self) -> Int32Array:
        """The topic of each partition."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), self.sizes)

    @cached_property
    def partition(self) -> Int32Array:
        """The number within its topic of each partition."""
        return numbers_in_slices(self.starts)

    def subscriber_index(self, topics: IntegerArray, members: IntegerArray) -> Int32Array:
        """Return, pair by pair, the member's place in the topic's audience; `NOT_FOUND` if it is not in it."""
        widths = [subscriber_set.size for subscriber_set in self.subscriber_sets]
        if min(widths) == len(self.members):
            return members.astype(np.int32)
        of_pair = self.subscriber_set_of[topics]
        subscriber_set = np.repeat(np.arange(len(widths)), widths)
        table = PairTable(subscriber_set, np.concatenate(self.subscriber_sets), len(self.members))
        place = table.find(of_pair, members)
        first = (np.cumsum(widths) - widths).astype(np.int32)
        return np.where(place == NOT_FOUND, place, place - first[of_pair])

    def assignment_by_index(self, subscriber_index: Int32Array) -> Assignment:
        """Return the assignment that gives each partition to one of its topic's subscribers.

        Args:
            subscriber_index: For each partition its owner's place in the topic's audience.
        """
        if len(self.subscriber_sets) == 1 and self.subscriber_sets[0].size == len(self.members):
            return self.assignment_of(subscriber_index)
        first_index = np.cumsum([0, *(subscriber_set.size for subscriber_set in self.subscriber_sets)])[
            self.subscriber_set_of
        ]
        all_seats = np.concatenate([np.empty(0, np.int32), *self.subscriber_sets])
        return self.assignment_of(all_seats[first_index[self.topic] + subscriber_index])

    def assignment_of(self, owners: IntegerArray) -> Assignment:
        """Return the assignment that gives each partition to a member.

        Args:
            owners: For each partition its owner's number, or `UNASSIGNED`.
        """
        return Assignment.from_column(self.members, self.topics, self.starts, owners)

    def owners_of(self, assignment: Assignment) -> Int32Array:
        """Return, for each partition, the number of the member that an assignment gives it to, or `UNASSIGNED`.

        Args:
            assignment: An assignment that `check.check_assignment` lets pass.
        """
        topic_numbers = {name: number for number, name in enumerate(self.topics)}
        member_numbers = {id_: number for number, id_ in enumerate(self.members)}
        topics = np.array([topic_numbers[name] for name in assignment.topics], np.int64)
        members = np.array([member_numbers[id_] for id_ in assignment.members], np.int32)
        sizes = np.diff(assignment.run_starts)
        first = np.repeat(self.starts[topics[assignment.run_topics]], sizes)
        owners = np.full(self.starts[-1], UNASSIGNED, np.int32)
        owner_of_run = np.repeat(members, np.diff(assignment.member_starts))
        owners[first + assignment.partitions] = np.repeat(owner_of_run, sizes)
        return owners


def distinct_subscriptions(members: Iterable[Member]) -> tuple[list[tuple[str, ...]], Int32Array]:
    """Return the different subscriptions, and which of them each member has."""
    numbers: dict[tuple[str, ...], int] = {}
    by_identity: dict[int, int] = {}  # members share long ones, and to hash one takes long
    number_of = []
    for member in members:
        number = by_identity.get(id(member.topics))
        if number is None:
            number = by_identity[id(member.topics)] = numbers.setdefault(member.topics, len(numbers))
        number_of.append(number)
    return list(numbers), np.array(number_of, np.int32)


class PairTable:
    """Finds pairs of numbers among given ones, many at a time."""

    def __init__(self, first: IntegerArray, second: IntegerArray, seconds: int) -> None:
        """Take the pairs.

        Args:
            first: The first number of each pair, ascending.
            second: The second number of each.
            seconds: How many second numbers there may be.
        """
        self._first = first
        self._second = second
        self._seconds = seconds

    def find(self, first: IntegerArray, second: IntegerArray) -> Int32Array:
        """Return the place of each of these pairs among the given ones, or `NOT_FOUND`.

        A table of all pairs that there may be is laid out, of so many first numbers at a time that it has a
        bounded size.
        """
        found = np.full(first.size, NOT_FOUND, np.int32)
        firsts = int(self._first[-1]) + 1 if self._first.size else 0
        at_once = max(1, _CELLS // self._seconds)
        for start in range(0, firsts, at_once):
            end = min(start + at_once, firsts)
            is_all = end - start == firsts
            given = slice(None) if is_all else slice(*np.searchsorted(self._first, [start, end]))
            places = np.arange(self._first.size, dtype=np.int32)[given]
            table = np.full((end - start) * self._seconds, NOT_FOUND, np.int32)
            table[(self._first[given] - start).astype(np.int64) * self._seconds + self._second[given]] = (
                places
            )
            here = slice(None) if is_all else np.flatnonzero((first >= start) & (first < end))
            found[here] = table[(first[here] - start).astype(np.int64) * self._seconds + second[here]]
        return found


def _audiences(
    names: tuple[str, ...], subscriptions: Sequence[tuple[str, ...]], subscription_of: Int32Array
) -> tuple[tuple[str, ...], Int32Array, tuple[Int32Array, ...]]:
    """Return the topics that somebody subscribes to, the audience of each, and the audiences.

    Args:
        names: The topics that have partitions.
        subscriptions: What the members subscribe to, each once.
        subscription_of: Which of the subscriptions each member has.
    """
    topic = np.concatenate([np.empty(0, np.int32), *topic_indexes(names, subscriptions)])
    subscription = np.repeat(
        np.arange(len(subscriptions), dtype=np.int32), [len(listed) for listed in subscriptions]
    )
    by_topic = np.argsort(topic.astype(np.uint16 if len(names) < _RADIX else np.int32), kind="stable")
    topic, subscription = topic[by_topic], subscription[by_topic]
    once = np.ones(topic.size, np.bool_)
    once[1:] = (topic[1:] != topic[:-1]) | (subscription[1:] != subscription[:-1])
    topic, subscription = topic[once], subscription[once]
    bounds = np.searchsorted(topic, np.arange(len(names) + 1))
    wanted = np.flatnonzero(bounds[1:] > bounds[:-1])
    numbers: dict[bytes, int] = {}
    subscriber_set_of = []
    subscriber_sets: list[Int32Array] = []
    for start, end in zip(bounds[wanted].tolist(), bounds[wanted + 1].tolist(), strict=True):
        held_by = subscription[start:end]
        number = numbers.setdefault(held_by.tobytes(), len(numbers))
        subscriber_set_of.append(number)
        if number == len(subscriber_sets):
            subscriber_sets.append(_subscribers(held_by, subscription_of, len(subscriptions)))
    topics = names if wanted.size == len(names) else tuple(names[number] for number in wanted.tolist())
    return topics, np.array(subscriber_set_of, np.int32), tuple(subscriber_sets)


def _subscribers(subscriptions: Int32Array, subscription_of: Int32Array, count: int) -> Int32Array:
    """Return the members that have one of these subscriptions, of so many in all."""
    if count == subscription_of.size:
        return subscriptions  # which are numbered in the order of members
    holds = np.zeros(count, np.bool_)
    holds[subscriptions] = True
    return np.flatnonzero(holds[subscription_of]).astype(np.int32)
