"""Group shape: a group whose members and topics are numbered in Kafka's order, instead of named.

Kafka's assignors depend on names only through their order. Groups and generations of the same shape
therefore share cached assignments.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from groupwright.assignors import Group, Member, Topic
from groupwright.assignors.indexed import IndexedGroup

Owners = npt.NDArray[np.int32]
"""`(partitions,) int32`, ordered by topic: index of each partition's owner, or `UNASSIGNED`."""

Racks = tuple[tuple[str, ...], ...]
"""The racks of the replicas of each partition of a topic."""


@dataclass(frozen=True, slots=True)
class ShapeKey:
    """Identity of a group shape.

    Attributes:
        sizes: Number of partitions of each subscribed topic, in Kafka's order of topics.
        subscriptions: The distinct subscriptions, as indices into `sizes`.
        subscription_of: Index of each member's subscription, in Kafka's order of members.
        member_racks: Each member's rack; empty if no member has one.
        topic_racks: The racks of each topic's partitions, or None if unknown; empty without racks.
    """

    sizes: tuple[int, ...]
    subscriptions: tuple[tuple[int, ...], ...]
    subscription_of: tuple[int, ...]
    member_racks: tuple[str | None, ...] = ()
    topic_racks: tuple[Racks | None, ...] = ()


class GroupShape:
    """A group with numbered members and topics.

    Attributes:
        members: Number of members.
        partitions: Number of partitions.
        topics: Number of topics.
        group: The group, without owned partitions.
        indexed: The same group with integers for members and topics.
        has_racks: Whether racks affect the assignment.
        is_uniform: Whether all members subscribe to all topics, and racks have no effect.
    """

    def __init__(self, key: ShapeKey) -> None:
        """Build the shape that a key describes."""
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
        self.indexed = IndexedGroup.of(self.group)
        self.has_racks = bool(key.member_racks and key.topic_racks)
        self.is_uniform = len(key.subscriptions) == 1 and not self.has_racks

    @cached_property
    def subscribes(self) -> npt.NDArray[np.bool_]:
        """True if a member subscribes to a topic, as `(topics, members) bool`."""
        table = np.zeros((self.topics, self.members), np.bool_)
        for topic, subscriber_set in enumerate(self.indexed.subscriber_set_of.tolist()):
            table[topic, self.indexed.subscriber_sets[subscriber_set]] = True
        return table

    @cached_property
    def _rack_classes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return each partition's rack class, and whether a class mismatches a member's rack.

        Partitions of a class have replicas in the same racks. Shapes: `(partitions,) int64` and
        `(classes, members) bool`.
        """
        numbers: dict[frozenset[str] | None, int] = {}
        class_of = [
            numbers.setdefault(racks, len(numbers))
            for topic in self.group.topics.values()
            for racks in topic.racks or (None,) * topic.partitions
        ]
        is_mismatch = [
            [
                bool(racks) and member.rack is not None and member.rack not in (racks or ())
                for member in self.group.members
            ]
            for racks in numbers
        ]
        return np.array(class_of, np.int64), np.array(is_mismatch, np.bool_)

    def rack_mismatches(self, owners: Owners) -> int:
        """Return the number of partitions whose owner is in a rack without a replica (KIP-881)."""
        class_of, is_mismatch = self._rack_classes
        owned = np.flatnonzero(owners >= 0)
        return int(np.count_nonzero(is_mismatch[class_of[owned], owners[owned]]))
