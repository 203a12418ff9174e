"""A group as arrays: what the assignors compute on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import Offsets, numbers_in_slices
from groupwright.assignors._model.assignment import NOBODY, Assignment
from groupwright.assignors._model.group import Group, Member
from groupwright.assignors._model.order import sorted_members, sorted_names
from groupwright.assignors._wire.interning import places_in

_Numbers = npt.NDArray[np.int32]

NOT_THERE = -1
"""The place of a pair that is not among the given ones."""

_RADIX = 2**16
_CELLS = 2**22  # of a table at a time


@dataclass(frozen=True, eq=False)
class Layout:
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
    sizes: _Numbers
    audience_of: _Numbers
    audiences: tuple[_Numbers, ...]

    @classmethod
    def of(cls, group: Group) -> "Layout":
        """Lay out a group."""
        members = sorted_members(group.members)
        subscriptions, subscription_of = distinct_subscriptions(members)
        names = sorted_names(name for name, topic in group.topics.items() if topic.partitions)
        topics, audience_of, audiences = _audiences(names, subscriptions, subscription_of)
        return cls(
            members=tuple(member.id for member in members),
            topics=topics,
            sizes=np.array([group.topics[name].partitions for name in topics], np.int32),
            audience_of=audience_of,
            audiences=audiences,
        )

    @cached_property
    def audience_sizes(self) -> _Numbers:
        """How many subscribers each topic has."""
        return np.array([audience.size for audience in self.audiences], np.int32)[self.audience_of]

    @cached_property
    def starts(self) -> Offsets:
        """Where each topic's partitions start among all, and, last, how many partitions there are."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @cached_property
    def topic(self) -> _Numbers:
        """The topic of each partition."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), self.sizes)

    @cached_property
    def partition(self) -> _Numbers:
        """The number within its topic of each partition."""
        return numbers_in_slices(self.starts)

    def seats(self, topics: npt.NDArray[np.integer], members: npt.NDArray[np.integer]) -> _Numbers:
        """Return, pair by pair, the member's place in the topic's audience; `NOT_THERE` if it is not in it."""
        widths = [audience.size for audience in self.audiences]
        if min(widths) == len(self.members):
            return members.astype(np.int32)
        of_pair = self.audience_of[topics]
        audience = np.repeat(np.arange(len(widths)), widths)
        table = PairTable(audience, np.concatenate(self.audiences), len(self.members))
        place = table.find(of_pair, members)
        first = (np.cumsum(widths) - widths).astype(np.int32)
        return np.where(place == NOT_THERE, place, place - first[of_pair])

    def assignment(self, seats: _Numbers) -> Assignment:
        """Return the assignment that gives each partition to one of its topic's subscribers.

        Args:
            seats: For each partition its owner's place in the topic's audience.
        """
        if len(self.audiences) == 1 and self.audiences[0].size == len(self.members):
            return self.given(seats)
        first_seats = np.cumsum([0, *(audience.size for audience in self.audiences)])[self.audience_of]
        all_seats = np.concatenate([np.empty(0, np.int32), *self.audiences])
        return self.given(all_seats[first_seats[self.topic] + seats])

    def given(self, owners: npt.NDArray[np.integer]) -> Assignment:
        """Return the assignment that gives each partition to a member.

        Args:
            owners: For each partition its owner's number, or `NOBODY`.
        """
        return Assignment.from_column(self.members, self.topics, self.starts, owners)

    def owners(self, assignment: Assignment) -> _Numbers:
        """Return, for each partition, the number of the member that an assignment gives it to, or `NOBODY`.

        Args:
            assignment: An assignment that `check.check_assignment` lets pass.
        """
        topic_numbers = {name: number for number, name in enumerate(self.topics)}
        member_numbers = {id_: number for number, id_ in enumerate(self.members)}
        topics = np.array([topic_numbers[name] for name in assignment.topics], np.int64)
        members = np.array([member_numbers[id_] for id_ in assignment.members], np.int32)
        sizes = np.diff(assignment.run_starts)
        first = np.repeat(self.starts[topics[assignment.run_topics]], sizes)
        owners = np.full(self.starts[-1], NOBODY, np.int32)
        owner_of_run = np.repeat(members, np.diff(assignment.member_starts))
        owners[first + assignment.partitions] = np.repeat(owner_of_run, sizes)
        return owners


def distinct_subscriptions(members: Iterable[Member]) -> tuple[list[tuple[str, ...]], _Numbers]:
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

    def __init__(self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], seconds: int) -> None:
        """Take the pairs.

        Args:
            first: The first number of each pair, ascending.
            second: The second number of each.
            seconds: How many second numbers there may be.
        """
        self._first = first
        self._second = second
        self._seconds = seconds

    def find(self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Return the place of each of these pairs among the given ones, or `NOT_THERE`.

        A table of all pairs that there may be is laid out, of so many first numbers at a time that it has a
        bounded size.
        """
        found = np.full(first.size, NOT_THERE, np.int32)
        firsts = int(self._first[-1]) + 1 if self._first.size else 0
        at_once = max(1, _CELLS // self._seconds)
        for start in range(0, firsts, at_once):
            end = min(start + at_once, firsts)
            is_all = end - start == firsts
            given = slice(None) if is_all else slice(*np.searchsorted(self._first, [start, end]))
            places = np.arange(self._first.size, dtype=np.int32)[given]
            table = np.full((end - start) * self._seconds, NOT_THERE, np.int32)
            table[(self._first[given] - start).astype(np.int64) * self._seconds + self._second[given]] = (
                places
            )
            here = slice(None) if is_all else np.flatnonzero((first >= start) & (first < end))
            found[here] = table[(first[here] - start).astype(np.int64) * self._seconds + second[here]]
        return found


def _audiences(
    names: tuple[str, ...], subscriptions: Sequence[tuple[str, ...]], subscription_of: _Numbers
) -> tuple[tuple[str, ...], _Numbers, tuple[_Numbers, ...]]:
    """Return the topics that somebody subscribes to, the audience of each, and the audiences.

    Args:
        names: The topics that have partitions.
        subscriptions: What the members subscribe to, each once.
        subscription_of: Which of the subscriptions each member has.
    """
    topic = np.concatenate([np.empty(0, np.int32), *places_in(names, subscriptions)])
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
    audience_of = []
    audiences: list[_Numbers] = []
    for start, end in zip(bounds[wanted].tolist(), bounds[wanted + 1].tolist(), strict=True):
        held_by = subscription[start:end]
        number = numbers.setdefault(held_by.tobytes(), len(numbers))
        audience_of.append(number)
        if number == len(audiences):
            audiences.append(_subscribers(held_by, subscription_of, len(subscriptions)))
    topics = names if wanted.size == len(names) else tuple(names[number] for number in wanted.tolist())
    return topics, np.array(audience_of, np.int32), tuple(audiences)


def _subscribers(subscriptions: _Numbers, subscription_of: _Numbers, count: int) -> _Numbers:
    """Return the members that have one of these subscriptions, of so many in all."""
    if count == subscription_of.size:
        return subscriptions  # which are numbered in the order of members
    holds = np.zeros(count, np.bool_)
    holds[subscriptions] = True
    return np.flatnonzero(holds[subscription_of]).astype(np.int32)
