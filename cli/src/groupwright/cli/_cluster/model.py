"""Groups, topics and offsets, as brokers report them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from groupwright.consumer.cluster import Broker

Partitions = Mapping[str, tuple[int, ...]]
"""Partition numbers by topic, ascending."""

_NOT_REBALANCING = frozenset({"Stable", "Empty", "Dead", ""})
"""States outside rebalances."""

_LEFT_FOR_A_WHILE = -2
"""Member epoch of a static member that has stopped (KIP-848)."""


class GroupType(StrEnum):
    """Protocol of a group."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in the list of a broker.

    Attributes:
        type: The group's type; None if the broker is older than 3.8, where all are classic.
        state: The state as the broker writes it, such as `Stable`; empty if it is older than 2.6.
        protocol_type: `consumer`, or another client's, such as `connect`; empty if it only commits offsets.
        coordinator: The id of the broker that coordinates the group.
    """

    id: str
    type: GroupType
    state: str
    protocol_type: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group.

    Attributes:
        host: The client's address.
        instance_id: `group.instance.id` of a static member.
        rack: `client.rack`; None if the member sends none, or its protocol does not carry it.
        topics: The subscribed topics.
        topic_regex: The subscribed pattern, which the broker matches (KIP-848).
        assigned: The assigned partitions.
        target: The partitions that it gets when the present rebalance is done (KIP-848, streams groups); None
            in other groups.
        epoch: The member epoch (KIP-848, share and streams groups); -2 of a static member that has stopped.
        owned: The partitions that it claimed to own when it joined (classic, version 1 and later).
        subscription_version: Version of its subscription (classic): 1 carries `owned`, 2 the generation, 3
            the rack.
        generation: The generation in which it owned them (classic, version 2 and later).
        user_data: What its assignor sent to the leader (classic).
        has_assignment_data: Whether the leader's assignor sent it user data with its partitions (classic).
        is_classic: Whether it speaks the classic protocol in a group of KIP-848.
        undecodable: Why its subscription or its assignment cannot be decoded (classic); None if both can.
    """

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack: str | None = None
    topics: tuple[str, ...] = ()
    topic_regex: str | None = None
    assigned: Partitions = field(default_factory=dict)
    target: Partitions | None = None
    epoch: int | None = None
    owned: Partitions = field(default_factory=dict)
    subscription_version: int | None = None
    generation: int | None = None
    user_data: bytes | None = field(default=None, repr=False)
    has_assignment_data: bool = False
    is_classic: bool = False
    undecodable: str | None = None

    @property
    def identity(self) -> str:
        """Identity of the member over restarts: static members get a new id, and keep their partitions."""
        return self.id if self.instance_id is None else f"instance {self.instance_id}"

    @property
    def has_stopped(self) -> bool:
        """True if it is a static member that has stopped, whose partitions wait for its return (KIP-848)."""
        return self.epoch == _LEFT_FOR_A_WHILE


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group with its members.

    Attributes:
        state: As in `ListedGroup`; `Dead` if the group does not exist.
        assignor: The assignor that the group uses; empty while there is none.
        epoch: The group's epoch (KIP-848, share and streams groups); None in classic groups, whose generation
            brokers do not return.
        assignment_epoch: The epoch of the target assignment, likewise.
        coordinator: The broker that coordinates the group.
    """

    id: str
    type: GroupType
    state: str
    protocol_type: str
    assignor: str
    members: tuple[GroupMember, ...]
    coordinator: Broker
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def exists(self) -> bool:
        """True if the group exists."""
        return self.state != "Dead"

    @property
    def is_rebalancing(self) -> bool:
        """True if partitions move, or are about to.

        A group of KIP-848 is Reconciling also while a static member has stopped, and keeps its partitions.
        """
        if self.state == "Reconciling" and any(each.has_stopped for each in self.members):
            return any(
                not each.has_stopped and (each.epoch != self.assignment_epoch or each.assigned != each.target)
                for each in self.members
            )
        return self.state not in _NOT_REBALANCING

    @property
    def is_assignment_known(self) -> bool:
        """True if the subscriptions and partitions of all members are known, but for `undecodable` ones.

        Those of a classic group are known only while it is stable: when it rebalances, brokers return none,
        and Kafka 4.0 to 4.4.0 return former ones (KAFKA-21648). Members of Connect and the like send others.
        """
        if self.type is not GroupType.CLASSIC or not self.members:
            return True
        return self.state == "Stable" and self.protocol_type == "consumer"

    @property
    def topics(self) -> frozenset[str]:
        """The topics that members subscribe to by name, or have partitions of, or will have."""
        members = self.members
        return frozenset(
            topic
            for each in members
            for some in (each.topics, each.assigned, each.target or ())
            for topic in some
        )

    def subscribes(self, topic: str) -> bool | None:
        """Return whether a member subscribes to a topic, or is assigned it; None if that is not known.

        Brokers do not return what a pattern matches, but somebody has each partition of it once the group is
        stable (KIP-848).
        """
        members = self.members
        if any(
            topic in each.topics or topic in each.assigned or topic in (each.target or ()) for each in members
        ):
            return True
        if not self.is_assignment_known or any(each.undecodable is not None for each in members):
            return None
        has_pattern = any(each.topic_regex is not None for each in members)
        return None if has_pattern and self.state != "Stable" else False


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic.

    Attributes:
        id: Its id; empty if the broker has none.
        leaders: By partition, the id of the leader's broker; -1 while there is none.
        racks: By partition, the racks of its replicas; empty where brokers have none.
    """

    name: str
    id: str
    leaders: tuple[int, ...]
    racks: tuple[frozenset[str], ...]
    is_internal: bool = False

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.leaders)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset, or the start offset of a share group.

    Attributes:
        lag: The lag of a share group, which only the broker knows: messages after the start offset may be
            processed. None if it does not return it, as before Kafka 4.2.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is neither committed nor aborted, or whose markers are not all written.

    Attributes:
        started: When it began, in seconds since the epoch.
        partitions: Its partitions; while it ends, those without a marker.
    """

    transactional_id: str
    state: str
    producer_id: int
    started: float
    partitions: Partitions
