"""A group's generations, and what came between one and the next. Pure: neither Spark nor a clock.

A classic group's log shows each generation once it is done. What a rebalance cost is the difference between two of
them, measured by `groupwright.assignors.measure`, the same that a consumer's leader reports.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from groupwright.assignors import AssignorError, Group, InvalidInputError, Member, TopicPartitions, measure

Partitions = Mapping[str, tuple[int, ...]]
"""Partition numbers by topic."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member in a generation."""

    id: str
    client_id: str | None = None
    subscribed: tuple[str, ...] = ()
    assigned: Partitions = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many partitions it has."""
        return sum(map(len, self.assigned.values()))


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation, or an epoch in which a KIP-848 group was stable.

    Attributes:
        number: Its number.
        completed: When the log had it.
        members: Its members, by id.
        protocol: The assignor.
        started: When the rebalance that led to it began, where the records say it.
        trigger: Why, where the records say it.
    """

    number: int
    completed: datetime
    members: Mapping[str, GroupMember]
    protocol: str | None = None
    started: datetime | None = None
    trigger: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a rebalance changed; the numbers are those of the table `rebalances`."""

    before: Generation | None
    after: Generation
    trigger: str
    joined: tuple[str, ...]
    left: tuple[str, ...]
    partitions: int
    moved: int | None
    fewest_moves: int | None
    imbalance_before: int | None
    imbalance_after: int
    error: str | None = None


def changes(generations: Iterable[Generation]) -> Iterator[Change]:
    """Return what changed in each generation of one group.

    Args:
        generations: In the order of the log. What the log no longer has is left out: a change then spans the gap.
    """
    before: Generation | None = None
    known: dict[str, int] = {}
    for after in generations:
        yield _change(before, after, known)
        _learn(known, after)
        before = after


def _change(before: Generation | None, after: Generation, known: Mapping[str, int]) -> Change:
    joined, left = _difference(after, before), _difference(before, after)
    moved, fewest, error = _moves(before, after, known)
    return Change(
        before=before,
        after=after,
        trigger=after.trigger or _trigger(before, after, known, joined, left),
        joined=joined,
        left=left,
        partitions=sum(member.size for member in after.members.values()),
        moved=moved,
        fewest_moves=fewest,
        imbalance_before=None if before is None else imbalance(before),
        imbalance_after=imbalance(after),
        error=error,
    )


def imbalance(generation: Generation) -> int:
    """Return how many partitions more the member with the most has than the one with the fewest."""
    sizes = [member.size for member in generation.members.values()]
    return max(sizes) - min(sizes) if sizes else 0


def _difference(these: Generation | None, those: Generation | None) -> tuple[str, ...]:
    return tuple(
        sorted((these.members.keys() if these else set()) - (those.members.keys() if those else set()))
    )


def _trigger(
    before: Generation | None,
    after: Generation,
    known: Mapping[str, int],
    joined: tuple[str, ...],
    left: tuple[str, ...],
) -> str:
    """Return why the group rebalanced, as far as two generations show it.

    A member that is replaced by another both leaves and joins: it left first. The first generation that a group was
    assigned need not be its number 1: each member that joins before that may begin another.
    """
    if before is None:
        return "first" if after.number <= max(1, len(after.members)) else "unknown"
    if left:
        return "leave"
    if joined:
        return "join" if before.members else "first"
    if any(
        set(after.members[id_].subscribed) != set(before.members[id_].subscribed) for id_ in after.members
    ):
        return "subscription"
    new = _assigned(after) - _assigned(before)
    if any(number >= known.get(topic, 0) for topic, number in new):
        return "metadata"
    return "handover" if new else "unknown"


def _assigned(generation: Generation) -> set[tuple[str, int]]:
    return {
        (topic, number)
        for member in generation.members.values()
        for topic, numbers in member.assigned.items()
        for number in numbers
    }


def _moves(
    before: Generation | None, after: Generation, known: Mapping[str, int]
) -> tuple[int | None, int | None, str | None]:
    """Return partitions moved, the fewest that had to, and why these cannot be told."""
    if before is None or not after.members:
        return 0, 0, None
    topics = dict(known)
    _learn(topics, after)
    # Topics that are assigned without a subscription: it could not be read, or was changed since.
    wanted = {
        id_: {*member.subscribed, *member.assigned} & topics.keys() for id_, member in after.members.items()
    }
    owned = {
        id_: TopicPartitions(
            {topic: numbers for topic, numbers in member.assigned.items() if topic in wanted[id_]}
        )
        for id_, member in before.members.items()
        if id_ in wanted
    }
    try:
        group = Group([Member(id_, sorted(names)) for id_, names in wanted.items()], topics)
        result = measure(group, {id_: member.assigned for id_, member in after.members.items()}, before=owned)
    except (AssignorError, InvalidInputError) as error:
        return None, None, str(error)
    return result.moved, result.best_moved, None


def _learn(topics: dict[str, int], generation: Generation) -> None:
    """Note how many partitions each topic has at least."""
    for topic, number in _assigned(generation):
        topics[topic] = max(topics.get(topic, 0), number + 1)
