"""Generations of a group, and the changes between them. Pure: no Spark, no clock.

The log has a record for each completed generation of a classic group. The moves of a rebalance are computed
from two of them by `groupwright.assignors.evaluate`, which also computes the statistics of the group leader.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest

from groupwright.assignors import AssignorError, Group, InvalidInputError, Member, PartitionsByTopic, evaluate
from groupwright.core.assignor_traits import is_cooperative

Partitions = Mapping[str, tuple[int, ...]]
"""Partition numbers by topic."""
TopicPartition = tuple[str, int]

MAX_PARTITIONS = 4_000_000
"""Maximum number of partitions of a group that is evaluated or replayed: a damaged record can name any."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member in a generation."""

    id: str
    client_id: str | None = None
    subscribed: tuple[str, ...] = ()
    assigned: Partitions = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of assigned partitions."""
        return sum(map(len, self.assigned.values()))


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation, or an epoch in which a KIP-848 group was stable.

    Attributes:
        number: Generation number, or epoch.
        completed: When it was written to the log.
        members: Its members, by member id.
        protocol: The assignor.
        started: When its rebalance began, if recorded.
        cause: The cause of its rebalance, if recorded.
    """

    number: int
    completed: datetime
    members: Mapping[str, GroupMember]
    protocol: str | None = None
    started: datetime | None = None
    cause: str | None = None

    @property
    def partitions(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return {
            (topic, number)
            for member in self.members.values()
            for topic, numbers in member.assigned.items()
            for number in numbers
        }


@dataclass(frozen=True, slots=True)
class Change:
    """Changes made by a rebalance; the fields but `before` and `after` are columns of `rebalances`."""

    before: Generation | None
    after: Generation
    cause: str
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    partitions: int
    moved: int | None
    min_moves: int | None
    imbalance_before: int | None
    imbalance_after: int
    error: str | None = None


def changes(
    generations: Iterable[Generation], before: Generation | None = None, *, begins: bool = True
) -> Iterator[Change]:
    """Yield the changes made by each generation of one group.

    Args:
        generations: Generations in log order. If the log has gaps, a change spans the gap.
        before: The generation before them, if known.
        begins: Whether no earlier generation of the group is known to exist, so that the first one may be
            the group's first. Generation 1 always is.
    """
    partition_counts: dict[str, int] = {}
    if before:
        _update_partition_counts(partition_counts, before)
    listed = list(generations)
    for after, following in zip_longest(listed, listed[1:]):
        cause = _cause(before, after, partition_counts, begins=begins)
        yield change(before, after, cause=cause, withheld=_withheld(before, after, following))
        _update_partition_counts(partition_counts, after)
        before = after


def change(
    before: Generation | None,
    after: Generation,
    *,
    cause: str = "unknown",
    withheld: AbstractSet[TopicPartition] = frozenset(),
) -> Change:
    """Return the changes from one generation of a group to the next.

    Args:
        before: The previous generation; None if it is not recorded or there is none.
        after: The next one.
        cause: The cause of its rebalance, if `after` records none.
        withheld: Partitions that exist but are not assigned in `after`. All others that it does not assign
            count as deleted.
    """
    joined, left = difference(after, before), difference(before, after)
    moved, fewest, error = _moves(before, after, withheld)
    cause = after.cause or cause
    is_unknown = before is None and cause == "unknown"
    return Change(
        before=before,
        after=after,
        cause=cause,
        joined=None if is_unknown else joined,
        left=None if is_unknown else left,
        partitions=sum(member.size for member in after.members.values()),
        moved=None if is_unknown else moved,
        min_moves=None if is_unknown else fewest,
        imbalance_before=None if before is None else imbalance(before),
        imbalance_after=imbalance(after),
        error=error,
    )


def imbalance(generation: Generation) -> int:
    """Return the maximum minus the minimum number of partitions per member."""
    sizes = [member.size for member in generation.members.values()]
    return max(sizes) - min(sizes) if sizes else 0


def difference(first: Generation | None, second: Generation | None) -> tuple[str, ...]:
    """Return the ids of the members that are only in the first generation."""
    return tuple(
        sorted((first.members.keys() if first else set()) - (second.members.keys() if second else set()))
    )


def _cause(
    before: Generation | None, after: Generation, partition_counts: Mapping[str, int], *, begins: bool
) -> str:
    """Derive the reason for a rebalance from two generations.

    If members both left and joined, as in a replacement, the cause is `leave`. A group's first recorded
    generation need not be number 1: each member that joins before the first assignment may start another one.
    """
    if before is None:
        highest = len(after.members) if begins else 1
        return "first" if after.number <= max(1, highest) else "unknown"
    if difference(before, after):
        return "leave"
    if difference(after, before):
        return "join" if before.members else "first"
    if any(
        set(after.members[id_].subscribed) != set(before.members[id_].subscribed) for id_ in after.members
    ):
        return "subscription"
    new = after.partitions - before.partitions
    if any(number >= partition_counts.get(topic, 0) for topic, number in new):
        return "metadata"
    return "handover" if new else "unknown"


def _withheld(
    before: Generation | None, after: Generation, following: Generation | None
) -> AbstractSet[TopicPartition]:
    """Return the partitions that `before` assigned and `after` withholds from their next owners.

    A cooperative assignor assigns them in the generation that follows; if that is unknown, each partition
    without an owner counts as withheld.
    """
    if before is None or is_cooperative(after.protocol or "") is False:
        return frozenset()
    missing = before.partitions - after.partitions
    return missing & following.partitions if following and following.members else missing


def _moves(
    before: Generation | None, after: Generation, withheld: AbstractSet[TopicPartition]
) -> tuple[int | None, int | None, str | None]:
    """Return the moves, the minimum of moves, and the error if they cannot be computed."""
    if before is None or not after.members:
        return 0, 0, None
    counts = _partition_counts(after.partitions | withheld)
    total = sum(counts.values())
    if total > MAX_PARTITIONS:
        return None, None, f"too many partitions: the assignments name {total} of at most {MAX_PARTITIONS}"
    # Assigned topics count as subscribed, in case the subscription is malformed or has changed since.
    topics_of = {
        id_: {*member.subscribed, *member.assigned} & counts.keys() for id_, member in after.members.items()
    }
    owned = {
        id_: PartitionsByTopic(
            {
                topic: [number for number in numbers if number < counts[topic]]
                for topic, numbers in member.assigned.items()
                if topic in topics_of[id_]
            }
        )
        for id_, member in before.members.items()
        if id_ in topics_of
    }
    try:
        group = Group([Member(id_, sorted(names)) for id_, names in topics_of.items()], counts)
        result = evaluate(
            group, {id_: member.assigned for id_, member in after.members.items()}, before=owned
        )
    except (AssignorError, InvalidInputError) as error:
        return None, None, str(error)
    return result.moves, result.min_moves, None


def _partition_counts(partitions: AbstractSet[TopicPartition]) -> dict[str, int]:
    """Return each topic's count up to its highest partition; the topic may have more partitions."""
    counts: dict[str, int] = {}
    for topic, number in partitions:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def _update_partition_counts(counts: dict[str, int], generation: Generation) -> None:
    """Raise each topic's count to its highest assigned partition, unless these are too many."""
    found = _partition_counts(generation.partitions)
    if sum(found.values()) <= MAX_PARTITIONS:
        counts.update({topic: max(counts.get(topic, 0), count) for topic, count in found.items()})
