"""A group as arrays: what the assignors compute on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat

import numpy as np
import numpy.typing as npt

from groupwright.assignors.assignment import NOBODY, Assignment
from groupwright.assignors.model import Group, Member
from groupwright.assignors.order import member_order, sorted_names
from groupwright.assignors.partitions import Offsets, numbers_in_slices

_Numbers = npt.NDArray[np.int32]

_RADIX = 2**16


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
        members = sorted(group.members, key=member_order)
        subscriptions, subscription_of = distinct_subscriptions(members)
        wanted = frozenset().union(*subscriptions)
        topics = sorted_names(
            name for name, topic in group.topics.items() if topic.partitions and name in wanted
        )
        audience_of, audiences = _audiences(topics, subscriptions, subscription_of)
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


def topic_numbers(topics: Sequence[str], subscriptions: Sequence[tuple[str, ...]]) -> Iterator[_Numbers]:
    """Go through subscriptions as places in `topics`; what is not there has the place behind the last."""
    numbers = {topic: number for number, topic in enumerate(topics)}
    for subscription in subscriptions:
        found = map(numbers.get, subscription, repeat(len(topics)))
        yield np.fromiter(found, np.int32, len(subscription))


def _audiences(
    topics: tuple[str, ...], subscriptions: Sequence[tuple[str, ...]], subscription_of: _Numbers
) -> tuple[_Numbers, tuple[_Numbers, ...]]:
    """Return each topic's audience, and the audiences.

    Args:
        topics: The topics.
        subscriptions: What the members subscribe to, each once.
        subscription_of: Which of the subscriptions each member has.
    """
    topic = np.concatenate([np.empty(0, np.int32), *topic_numbers(topics, subscriptions)])
    subscription = np.repeat(
        np.arange(len(subscriptions), dtype=np.int32), [len(listed) for listed in subscriptions]
    )
    by_topic = np.argsort(topic.astype(np.uint16 if len(topics) < _RADIX else np.int32), kind="stable")
    topic, subscription = topic[by_topic], subscription[by_topic]
    once = np.ones(topic.size, np.bool_)
    once[1:] = (topic[1:] != topic[:-1]) | (subscription[1:] != subscription[:-1])
    topic, subscription = topic[once], subscription[once]
    bounds = np.searchsorted(topic, np.arange(len(topics) + 1)).tolist()
    numbers: dict[bytes, int] = {}
    audience_of = []
    audiences: list[_Numbers] = []
    for start, end in pairwise(bounds):
        held_by = subscription[start:end]
        number = numbers.setdefault(held_by.tobytes(), len(numbers))
        audience_of.append(number)
        if number == len(audiences):
            holds = np.zeros(len(subscriptions), np.bool_)
            holds[held_by] = True
            audiences.append(np.flatnonzero(holds[subscription_of]).astype(np.int32))
    return np.array(audience_of, np.int32), tuple(audiences)
