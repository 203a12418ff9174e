"""A group without its names: what an assignor of ours depends on, apart from who owns what.

Its result depends on names only through their order. So members and topics are numbered in that order, and groups and
generations of the same structure share what was worked out for one of them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from groupwright.assignors import Group, Member, Topic
from groupwright.assignors.indexed import IndexedGroup

Owners = npt.NDArray[np.int32]
"""For each partition, topics on end, its owner's place among the members, or `NOBODY`."""

Racks = tuple[tuple[str, ...], ...]
"""For each partition of a topic the racks of its replicas."""


@dataclass(frozen=True, slots=True)
class ShapeKey:
    """What tells structures apart.

    Attributes:
        sizes: How many partitions each topic has; topics come in Kafka's order, and each has a subscriber.
        subscriptions: The different subscriptions, as places in `sizes`.
        subscription_of: Which of them each member has; members come in Kafka's order.
        member_racks: Each member's rack; empty if none has one.
        topic_racks: The racks of each topic's partitions, or None where they are not known; empty without racks.
    """

    sizes: tuple[int, ...]
    subscriptions: tuple[tuple[int, ...], ...]
    subscription_of: tuple[int, ...]
    member_racks: tuple[str | None, ...] = ()
    topic_racks: tuple[Racks | None, ...] = ()


class GroupShape:
    """A group whose members and topics are numbered.

    Attributes:
        members: How many members there are.
        partitions: How many partitions there are.
        topics: How many topics there are.
        group: The group, of which nobody owns anything.
        layout: The same as arrays; members and topics have there the places that they have here.
        has_racks: Whether racks have a say.
        is_uniform: Whether all subscribe to all topics, and racks have no say.
    """

    def __init__(self, key: ShapeKey) -> None:
        """Build the structure that a key describes."""
        names = [f"{number:09d}" for number in range(max(len(key.sizes), len(key.subscription_of)))]
        subscriptions = [tuple(names[topic] for topic in listed) for listed in key.subscriptions]
        racks = key.member_racks or (None,) * len(key.subscription_of)
        topic_racks = key.topic_racks or (None,) * len(key.sizes)
        self.members = len(key.subscription_of)
        self.topics = len(key.sizes)
        self.partitions = sum(key.sizes)
        self.group = Group(
            [
                Member(names[number], subscriptions[subscription], rack=rack)
                for number, (subscription, rack) in enumerate(zip(key.subscription_of, racks, strict=True))
            ],
            {
                names[number]: Topic(size, of_topic)
                for number, (size, of_topic) in enumerate(zip(key.sizes, topic_racks, strict=True))
            },
        )
        self.layout = IndexedGroup.of(self.group)
        self.has_racks = bool(key.member_racks and key.topic_racks)
        self.is_uniform = len(key.subscriptions) == 1 and not self.has_racks

    @cached_property
    def subscribes(self) -> npt.NDArray[np.bool_]:
        """By topic and member, whether the member subscribes to the topic."""
        table = np.zeros((self.topics, self.members), np.bool_)
        for topic, audience in enumerate(self.layout.audience_of.tolist()):
            table[topic, self.layout.audiences[audience]] = True
        return table

    @cached_property
    def _rack_classes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return each partition's class, and by class and member whether the member is far."""
        numbers: dict[frozenset[str] | None, int] = {}
        class_of = [
            numbers.setdefault(racks, len(numbers))
            for topic in self.group.topics.values()
            for racks in topic.racks or (None,) * topic.partitions
        ]
        far = [
            [
                bool(racks) and member.rack is not None and member.rack not in (racks or ())
                for member in self.group.members
            ]
            for racks in numbers
        ]
        return np.array(class_of, np.int64), np.array(far, np.bool_)

    def far(self, owners: Owners) -> int:
        """Return how many partitions have an owner in a rack where they have no replica."""
        class_of, far = self._rack_classes
        owned = np.flatnonzero(owners >= 0)
        return int(np.count_nonzero(far[class_of[owned], owners[owned]]))
