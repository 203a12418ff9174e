"""Group with members, topics and partitions as integers, for computing in arrays."""

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
"""Index of a pair that is not in the table."""

_RADIX_SORT_LIMIT = 2**16  # numpy sorts integers of 16 bits with a radix sort, longer ones slower
_MAX_TABLE_SIZE = 2**22  # of a look-up table at a time


@dataclass(frozen=True, eq=False)
class IndexedGroup:
    """A group whose members and topics are indexes, and whose partitions are concatenated over all topics.

    Topics with the same subscribers share one subscriber set. A group with equal subscriptions has one,
    whatever its numbers of members and topics.

    Attributes:
        members: The member ids, in Kafka's order of members.
        topics: The topics with partitions and subscribers, sorted by name.
        sizes: `(topics,) int32`: the number of partitions of each topic.
        subscriber_set_of: `(topics,) int32`: the index of each topic's subscriber set.
        subscriber_sets: Each set of subscribers as ascending member indexes; none is empty.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    sizes: Int32Array
    subscriber_set_of: Int32Array
    subscriber_sets: tuple[Int32Array, ...]

    @classmethod
    def of(cls, group: Group) -> "IndexedGroup":
        """Create the indexed form of a group."""
        members = sorted_members(group.members)
        subscriptions, subscription_of = distinct_subscriptions(members)
        names = sorted_names(name for name, topic in group.topics.items() if topic.partitions)
        topics, subscriber_set_of, subscriber_sets = _subscriber_sets(names, subscriptions, subscription_of)
        return cls(
            members=tuple(member.id for member in members),
            topics=topics,
            sizes=np.array([group.topics[name].partitions for name in topics], np.int32),
            subscriber_set_of=subscriber_set_of,
            subscriber_sets=subscriber_sets,
        )

    @cached_property
    def subscriber_counts(self) -> Int32Array:
        """`(topics,) int32`: the number of subscribers of each topic."""
        return np.array([subscriber_set.size for subscriber_set in self.subscriber_sets], np.int32)[
            self.subscriber_set_of
        ]

    @cached_property
    def starts(self) -> Offsets:
        """`(topics + 1,) int64`: the first partition of each topic, and the number of all partitions."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @cached_property
    def topic(self) -> Int32Array:
        """`(partitions,) int32`: the topic of each partition."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), self.sizes)

    @cached_property
    def partition(self) -> Int32Array:
        """`(partitions,) int32`: the number of each partition within its topic."""
        return numbers_in_slices(self.starts)

    def subscriber_index(self, topics: IntegerArray, members: IntegerArray) -> Int32Array:
        """Return `(pairs,) int32`: the member's index among the topic's subscribers, or `NOT_FOUND`.

        Args:
            topics: `(pairs,)` integers: indexes into `topics`.
            members: `(pairs,)` integers: indexes into `members`.
        """
        sizes = [subscriber_set.size for subscriber_set in self.subscriber_sets]
        if min(sizes) == len(self.members):
            return members.astype(np.int32)
        set_of_pair = self.subscriber_set_of[topics]
        subscriber_set = np.repeat(np.arange(len(sizes)), sizes)
        table = PairTable(subscriber_set, np.concatenate(self.subscriber_sets), len(self.members))
        index = table.find(set_of_pair, members)
        first = (np.cumsum(sizes) - sizes).astype(np.int32)
        return np.where(index == NOT_FOUND, index, index - first[set_of_pair])

    def assignment_by_index(self, subscriber_index: Int32Array) -> Assignment:
        """Return the assignment of each partition to one of its topic's subscribers.

        Args:
            subscriber_index: `(partitions,) int32`: the owner's index among the topic's subscribers.
        """
        if len(self.subscriber_sets) == 1 and self.subscriber_sets[0].size == len(self.members):
            return self.assignment_of(subscriber_index)
        first_index = np.cumsum([0, *(subscriber_set.size for subscriber_set in self.subscriber_sets)])[
            self.subscriber_set_of
        ]
        all_subscribers = np.concatenate([np.empty(0, np.int32), *self.subscriber_sets])
        return self.assignment_of(all_subscribers[first_index[self.topic] + subscriber_index])

    def assignment_of(self, owners: IntegerArray) -> Assignment:
        """Return the assignment with these owners.

        Args:
            owners: `(partitions,)` integers: the index of the owner in `members`, or `UNASSIGNED`.
        """
        return Assignment.from_column(self.members, self.topics, self.starts, owners)

    def owners_of(self, assignment: Assignment) -> Int32Array:
        """Return `(partitions,) int32`: the index of each partition's owner, or `UNASSIGNED`.

        Args:
            assignment: An assignment that `check.check_assignment` accepts.
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
    """Return the distinct subscriptions, and `(members,) int32`: the index of each member's among them."""
    numbers: dict[tuple[str, ...], int] = {}
    by_identity: dict[int, int] = {}  # members share long tuples, which are slow to hash
    number_of = []
    for member in members:
        number = by_identity.get(id(member.topics))
        if number is None:
            number = by_identity[id(member.topics)] = numbers.setdefault(member.topics, len(numbers))
        number_of.append(number)
    return list(numbers), np.array(number_of, np.int32)


class PairTable:
    """Finds pairs of numbers in a table of pairs, many at a time."""

    def __init__(self, first: IntegerArray, second: IntegerArray, bound: int) -> None:
        """Create the table of these pairs.

        Args:
            first: `(pairs,)` integers: the first numbers, ascending.
            second: `(pairs,)` integers: the second numbers.
            bound: An upper bound of the second numbers, exclusive.
        """
        self._first = first
        self._second = second
        self._bound = bound

    def find(self, first: IntegerArray, second: IntegerArray) -> Int32Array:
        """Return `(pairs,) int32`: the index of each of these pairs in the table, or `NOT_FOUND`.

        The look-up uses a dense array of all possible pairs, built for part of the first numbers at a time so
        that its size is bounded.
        """
        found = np.full(first.size, NOT_FOUND, np.int32)
        firsts = int(self._first[-1]) + 1 if self._first.size else 0
        at_once = max(1, _MAX_TABLE_SIZE // self._bound)
        for start in range(0, firsts, at_once):
            end = min(start + at_once, firsts)
            is_all = end - start == firsts and (not first.size or int(first.max()) < end)
            chosen = slice(None) if is_all else slice(*np.searchsorted(self._first, [start, end]))
            indexes = np.arange(self._first.size, dtype=np.int32)[chosen]
            table = np.full((end - start) * self._bound, NOT_FOUND, np.int32)
            table[(self._first[chosen] - start).astype(np.int64) * self._bound + self._second[chosen]] = (
                indexes
            )
            asked = slice(None) if is_all else np.flatnonzero((first >= start) & (first < end))
            found[asked] = table[(first[asked] - start).astype(np.int64) * self._bound + second[asked]]
        return found


def _subscriber_sets(
    names: tuple[str, ...], subscriptions: Sequence[tuple[str, ...]], subscription_of: Int32Array
) -> tuple[tuple[str, ...], Int32Array, tuple[Int32Array, ...]]:
    """Return the subscribed topics, the index of each topic's subscriber set, and the subscriber sets.

    Args:
        names: The topics that have partitions.
        subscriptions: The distinct subscriptions.
        subscription_of: The index of each member's subscription.
    """
    topic = np.concatenate([np.empty(0, np.int32), *topic_indexes(names, subscriptions)])
    subscription = np.repeat(
        np.arange(len(subscriptions), dtype=np.int32), [len(listed) for listed in subscriptions]
    )
    by_topic = np.argsort(
        topic.astype(np.uint16 if len(names) < _RADIX_SORT_LIMIT else np.int32), kind="stable"
    )
    topic, subscription = topic[by_topic], subscription[by_topic]
    is_first = np.ones(topic.size, np.bool_)
    is_first[1:] = (topic[1:] != topic[:-1]) | (subscription[1:] != subscription[:-1])
    topic, subscription = topic[is_first], subscription[is_first]
    bounds = np.searchsorted(topic, np.arange(len(names) + 1))
    wanted = np.flatnonzero(bounds[1:] > bounds[:-1])
    numbers: dict[bytes, int] = {}
    subscriber_set_of = []
    subscriber_sets: list[Int32Array] = []
    for start, end in zip(bounds[wanted].tolist(), bounds[wanted + 1].tolist(), strict=True):
        subscribed_by = subscription[start:end]
        number = numbers.setdefault(subscribed_by.tobytes(), len(numbers))
        subscriber_set_of.append(number)
        if number == len(subscriber_sets):
            subscriber_sets.append(_subscribers(subscribed_by, subscription_of, len(subscriptions)))
    topics = names if wanted.size == len(names) else tuple(names[number] for number in wanted.tolist())
    return topics, np.array(subscriber_set_of, np.int32), tuple(subscriber_sets)


def _subscribers(subscriptions: Int32Array, subscription_of: Int32Array, count: int) -> Int32Array:
    """Return `(subscribers,) int32`: the members with one of these subscriptions, ascending.

    Args:
        subscriptions: Indexes of subscriptions, ascending.
        subscription_of: The index of each member's subscription.
        count: The number of all subscriptions.
    """
    if count == subscription_of.size:
        return subscriptions  # every member has its own, numbered in the order of members
    is_chosen = np.zeros(count, np.bool_)
    is_chosen[subscriptions] = True
    return np.flatnonzero(is_chosen[subscription_of]).astype(np.int32)
