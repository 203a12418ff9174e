"""Group with members, topics and partitions as integers, for computing in arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groupwright.assignors._model.arrays import Int32Array, IntegerArray, Offsets
from groupwright.assignors._model.columns import (
    NOT_FOUND,
    UNASSIGNED,
    Assignment,
    IndexedSubscriptions,
    PairTable,
)
from groupwright.assignors._model.group import Group, sorted_members
from groupwright.assignors._model.partitions import sorted_names

_RADIX_SORT_LIMIT = 2**16  # numpy sorts integers of 16 bits with a radix sort, longer ones slower


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
    def of(cls, group: Group) -> IndexedGroup:
        """Create the indexed form of a group."""
        members = sorted_members(group.members)
        names = sorted_names(name for name, topic in group.topics.items() if topic.partitions)
        topics, subscriber_set_of, subscriber_sets = _subscriber_sets(
            names, IndexedSubscriptions.of(members, names)
        )
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
        return (np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], self.sizes)).astype(np.int32)

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


def _subscriber_sets(
    names: tuple[str, ...], subscriptions: IndexedSubscriptions
) -> tuple[tuple[str, ...], Int32Array, tuple[Int32Array, ...]]:
    """Return the subscribed topics, the index of each topic's subscriber set, and the subscriber sets.

    Args:
        names: The topics that have partitions.
        subscriptions: The members' subscriptions, as indexes into `names`.
    """
    topic, subscription = subscriptions.topic, subscriptions.subscription
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
            subscriber_sets.append(_subscribers(subscribed_by, subscriptions))
    topics = names if wanted.size == len(names) else tuple(names[number] for number in wanted.tolist())
    return topics, np.array(subscriber_set_of, np.int32), tuple(subscriber_sets)


def _subscribers(chosen: Int32Array, subscriptions: IndexedSubscriptions) -> Int32Array:
    """Return `(subscribers,) int32`: the members with one of the chosen subscriptions, ascending.

    Args:
        chosen: Indexes of subscriptions, ascending.
        subscriptions: The members' subscriptions.
    """
    if subscriptions.count == subscriptions.of_member.size:
        return chosen  # every member has its own, numbered in the order of members
    is_chosen = np.zeros(subscriptions.count, np.bool_)
    is_chosen[chosen] = True
    return np.flatnonzero(is_chosen[subscriptions.of_member]).astype(np.int32)
