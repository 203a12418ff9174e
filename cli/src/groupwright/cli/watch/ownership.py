"""Owners of partitions, and the difference between two moments. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupwright.cli._cluster.model import DescribedGroup
from groupwright.core import TopicPartitionKey

Ownership = Mapping[str, frozenset[TopicPartitionKey]]
"""Partitions by the identity of the member. In share groups a partition may have several owners."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Partitions that members lost and gained, by their identities; members without either are left out."""

    lost: Ownership = field(default_factory=dict)
    gained: Ownership = field(default_factory=dict)

    @property
    def partitions(self) -> frozenset[TopicPartitionKey]:
        """The partitions whose owners differ."""
        return frozenset().union(*self.lost.values(), *self.gained.values())


def ownership(group: DescribedGroup) -> Ownership | None:
    """Return the owners of partitions; None while they are not known."""
    if not group.is_assignment_known:
        return None
    return {
        member.identity: frozenset(
            (topic, number) for topic, numbers in member.assigned.items() for number in numbers
        )
        for member in group.members
    }


def moves(before: Ownership, after: Ownership) -> Moves:
    """Return what members lost and gained."""
    identities = before.keys() | after.keys()
    nothing = frozenset[TopicPartitionKey]()
    lost = {each: before.get(each, nothing) - after.get(each, nothing) for each in identities}
    gained = {each: after.get(each, nothing) - before.get(each, nothing) for each in identities}
    return Moves(
        {key: some for key, some in lost.items() if some}, {key: some for key, some in gained.items() if some}
    )
