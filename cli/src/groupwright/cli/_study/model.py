"""A group to study: its members and topics, as read from a cluster or a file. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from groupwright.assignors import NO_GENERATION, Group, LoadAwareAssignor, Member, Topic
from groupwright.cli._cluster.model import GroupMember, GroupType, Partitions
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.output import compact
from groupwright.cli._study.events import Event
from groupwright.core import TopicPartitionKey
from groupwright.core.assignor_traits import BROKER_PREFIX
from groupwright.core.spelling import did_you_mean

_GENERATION = 1  # any, and the same for all


@dataclass(frozen=True, slots=True)
class StudiedGroup:
    """A group to study.

    Attributes:
        state: State of the group, as the broker writes it; empty if it is not known.
        assignor: The assignor that the group uses; None if it is not known.
        topics: The existing topics that members subscribe to, or that a new member would.
        capacities: By member id, the capacities for `load-aware` that are not 1.
        has_assignment: Whether `GroupMember.assigned` is known.
        events: Events to simulate.
        epoch: The group's epoch (KIP-848).
        missing: Subscribed topics that do not exist, or that these credentials may not describe.
    """

    id: str
    type: GroupType
    state: str
    assignor: str | None
    members: tuple[GroupMember, ...]
    topics: Mapping[str, Topic]
    capacities: Mapping[str, float] = field(default_factory=dict)
    has_assignment: bool = True
    events: tuple[Event, ...] = ()
    epoch: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def client_assignor(self) -> str | None:
        """The assignor that the group's leader runs; None if brokers assign, or it is not known."""
        return self.assignor if self.type is GroupType.CLASSIC else None

    @property
    def studied_assignor(self) -> str | None:
        """The name of the group's assignor in studies, as in `broker:uniform`; None if it is not known."""
        if self.type is GroupType.CONSUMER and self.assignor:
            return f"{BROKER_PREFIX}{self.assignor}"
        return self.assignor

    @property
    def is_assignment_unknown(self) -> bool:
        """True if neither assigned nor owned partitions of any member are known."""
        if self.has_assignment or not self.members:
            return False
        return not any(member.owned for member in self.members)

    def present(self, member: GroupMember) -> Partitions:
        """Return the partitions that a member has before the next rebalance."""
        return member.assigned if self.has_assignment else member.owned

    def member_topics(self) -> tuple[str, ...]:
        """Return the subscription of most members: that of a new one; all topics if there are no members."""
        subscriptions = Counter(tuple(sorted(member.topics)) for member in self.members)
        return max(subscriptions, key=lambda each: subscriptions[each], default=tuple(sorted(self.topics)))

    def as_group(self, owned: Mapping[str, Partitions], *, with_capacities: bool = False) -> Group:
        """Return the group as an assignor sees it.

        Args:
            owned: By member id, the partitions that members own.
            with_capacities: Whether members send their capacities, as those of `load-aware` do.
        """
        generation = _GENERATION if any(owned.values()) else NO_GENERATION
        members = [
            Member(
                member.id,
                member.topics,
                owned=owned.get(member.id, {}),
                generation=generation,
                instance_id=member.instance_id,
                rack=member.rack,
                user_data=capacity_data(self.capacities.get(member.id)) if with_capacities else None,
            )
            for member in self.members
        ]
        return Group(members, self.topics)

    @property
    def has_weights(self) -> bool:
        """True if the weight of any partition of a subscribed topic is known."""
        return has_weights(self.topics, self.members)

    @property
    def has_racks(self) -> bool:
        """True if racks can matter: a member and a topic have some."""
        return any(member.rack for member in self.members) and any(
            any(topic.racks or ()) for topic in self.topics.values()
        )


@dataclass(frozen=True, slots=True)
class OpenedGroup:
    """A group that a command's options name.

    Attributes:
        study: The group.
        warnings: What is not known of it, in sentences, each with its exit status.
    """

    study: StudiedGroup
    warnings: tuple[tuple[str, ExitStatus], ...]


def has_weights(topics: Mapping[str, Topic], members: Iterable[GroupMember | Member]) -> bool:
    """Return whether the weight of any partition of a subscribed topic is known."""
    subscribed = {topic for member in members for topic in member.topics}
    return any(topics[name].weights is not None for name in subscribed & topics.keys())


def capacity_data(capacity: float | None) -> bytes | None:
    """Return the user data with which a member of `load-aware` sends its capacity; None for the default."""
    return None if capacity is None else LoadAwareAssignor(capacity=capacity).user_data(frozenset())


def find_member(members: Iterable[GroupMember], names: Mapping[str, str], wanted: str) -> str:
    """Return the id of the member with this name, member id, instance id or client id.

    Args:
        members: The members.
        names: Their short names, by member id.
        wanted: What the user wrote.

    Raises:
        CommandError: There is none, or there are several of the client id.
    """
    listed = list(members)
    for exact in (
        [member.id for member in listed if wanted in (member.id, names[member.id], member.instance_id)],
        [member.id for member in listed if wanted == member.client_id],
    ):
        if len(exact) == 1:
            return exact[0]
        if exact:
            known = ", ".join(names[id_] for id_ in exact[:5])
            raise CommandError(
                f"{len(exact)} members are named {wanted!r}: write one of {known}", ExitStatus.USAGE
            )
    known_names = sorted(names[member.id] for member in listed)
    advice = f"; there are: {', '.join(known_names[:10])}" if known_names else ": the group has none"
    raise CommandError(
        f"there is no member {wanted!r}{did_you_mean(wanted, known_names) or advice}", ExitStatus.NOT_FOUND
    )


def find_topic(topics: Iterable[str], wanted: str) -> str:
    """Return the name of a topic of the group.

    Raises:
        CommandError: The group has no such topic.
    """
    known = sorted(topics)
    if wanted in known:
        return wanted
    advice = f"; its topics are: {', '.join(known[:10])}" if known else ""
    raise CommandError(
        f"the group has no topic {wanted!r}{did_you_mean(wanted, known) or advice}", ExitStatus.NOT_FOUND
    )


def flat(partitions: Partitions) -> list[TopicPartitionKey]:
    """Return topics and numbers of partitions."""
    return [(topic, number) for topic, numbers in partitions.items() for number in numbers]


def count(partitions: Partitions) -> int:
    """Return the number of partitions."""
    return sum(map(len, partitions.values()))


def in_ranges(partitions: Partitions) -> str:
    """Return partitions as ranges, such as `audit 0-2, orders 4 6`; `nothing` for none."""
    return ", ".join(f"{topic} {compact(partitions[topic])}" for topic in sorted(partitions)) or "nothing"


def headline(study: StudiedGroup) -> str:
    """Return the group in one line."""
    topics = {topic for member in study.members for topic in member.topics} & study.topics.keys()
    partitions = sum(study.topics[topic].partitions for topic in topics)
    parts = [
        study.state,
        study.type.value,
        study.assignor or "no assignor",
        counted(len(study.members), "member"),
        f"{counted(partitions, 'partition')} of {counted(len(topics), 'topic')}",
    ]
    return f"{study.id}: {', '.join(filter(None, parts))}"


def does(number: int) -> str:
    """Return the verb for a number of things."""
    return "does" if number == 1 else "do"


def counted(number: int, what: str) -> str:
    """Return `1 partition`, `2 partitions`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
