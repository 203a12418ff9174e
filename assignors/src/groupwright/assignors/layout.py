"""A group as arrays: what the assignors compute on."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from groupwright.assignors.assignment import Assignment
from groupwright.assignors.model import Group
from groupwright.assignors.order import member_order, sorted_names
from groupwright.assignors.partitions import Offsets, numbers_in_slices

_Numbers = npt.NDArray[np.int32]


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
        subscriptions: dict[tuple[str, ...], int] = {}
        subscription_of = np.array(
            [subscriptions.setdefault(member.topics, len(subscriptions)) for member in members], np.int32
        )
        wanted = {topic for subscription in subscriptions for topic in subscription}
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
        first_seats = np.cumsum([0, *(audience.size for audience in self.audiences)])[self.audience_of]
        all_seats = np.concatenate([np.empty(0, np.int32), *self.audiences])
        owners = all_seats[first_seats[self.topic] + seats]
        by_topic = np.split(owners, self.starts[1:-1]) if self.topics else []
        return Assignment.from_owners(self.members, dict(zip(self.topics, by_topic, strict=True)))


def _audiences(
    topics: tuple[str, ...], subscriptions: Iterable[tuple[str, ...]], subscription_of: _Numbers
) -> tuple[_Numbers, tuple[_Numbers, ...]]:
    """Return each topic's audience, and the audiences.

    Args:
        topics: The topics.
        subscriptions: What the members subscribe to, each once.
        subscription_of: Which of the subscriptions each member has.
    """
    holders: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, subscription in enumerate(subscriptions):
        for topic in set(subscription):
            if topic in holders:
                holders[topic].append(number)
    numbers: dict[tuple[int, ...], int] = {}
    audience_of = [numbers.setdefault(tuple(held_by), len(numbers)) for held_by in holders.values()]
    return np.array(audience_of, np.int32), tuple(
        np.flatnonzero(np.isin(subscription_of, held_by)).astype(np.int32) for held_by in numbers
    )
