"""Requests and responses of the group protocol, as plain values.

They have only the fields that the membership needs; `_network` converts them to and from Kafka's wire format.
Field names are Kafka's. Partitions are grouped by topic, in ascending order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from groupwright.core import ErrorCode, Partitions, TopicPartitionKey

if TYPE_CHECKING:
    from groupwright.assignors import JoinedMember, Topic

PROTOCOL_TYPE = "consumer"


COORDINATOR_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Errors after which the coordinator must be looked up again."""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member's identity in its group, which every request carries.

    A generation of -1 means that the member is in none; an empty member id that the coordinator has not given
    it one yet. `protocol` is the name of the generation's assignor.
    """

    generation: int = -1
    member_id: str = ""
    protocol: str | None = None

    @property
    def valid(self) -> bool:
        """True if this is a member of some generation, so that it may own partitions."""
        return self.generation >= 0 and bool(self.member_id)


class GroupMembershipOperation(Enum):
    """Choice whether `close` leaves the group (KIP-1092; Java's `CloseOptions.GroupMembershipOperation`)."""

    DEFAULT = "default"
    """A dynamic member leaves; a static one (``group.instance.id``) stays until its session expires."""
    LEAVE_GROUP = "leave"
    """The member leaves, even a static one, and its partitions are reassigned at once."""
    REMAIN_IN_GROUP = "remain"
    """The member sends no LeaveGroup: its partitions are reassigned when its session expires."""


@dataclass(frozen=True, slots=True)
class JoinGroupPayload:
    """JoinGroup (KIP-62, KIP-345, KIP-394, KIP-800)."""

    member_id: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """JoinGroup's response; `members` is empty unless this member leads.

    Without a leader the broker assigns, since the group has members of KIP-848.
    """

    error: int = 0
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """SyncGroup's response; `assignment` holds ConsumerProtocol bytes."""

    error: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Offset:
    """An offset to commit, or a committed one; `offset` is -1 if there is none."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


Offsets = Mapping[TopicPartitionKey, Offset]

UNREADABLE = Offset(-2)
"""Placeholder for a committed offset that this client may not read, such as without authorization."""


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """OffsetFetch's response: the group's error, then each partition's offset or error."""

    error: int = 0
    offsets: Offsets = field(default_factory=dict)
    errors: Mapping[TopicPartitionKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """OffsetCommit's response: an error code for each partition of the request."""

    errors: Mapping[TopicPartitionKey, int]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """DescribeGroups' response: the fields that messages need.

    Attributes:
        client_ids: The `client.id` of each member by member id.
        hosts: The address of each member by member id.
    """

    state: str
    protocol: str
    client_ids: Mapping[str, str]
    hosts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """Metadata's response: the fields that the group needs."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    """The topics that exist, by name, with their partitions and racks."""
    internal: frozenset[str] = frozenset()
    """Kafka's internal topics, such as ``__consumer_offsets``."""
    unauthorized: frozenset[str] = frozenset()
    """Topics that were requested by name, and that this client is not authorized to describe (Java's
    `Cluster.unauthorizedTopics`)."""
    replicas: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """By topic and partition, the brokers' ids of all replicas, offline ones too."""
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """The racks of all brokers that were ever listed, by id; None for a broker without a rack.

    Metadata lists live brokers only. The rack of a broker that was never listed is unknown.
    """


class DisconnectedError(Exception):
    """A request had no response: the connection was lost, or the request timed out. Retriable."""


def count(partitions: Partitions) -> int:
    """Return the number of partitions over all topics."""
    return sum(len(numbers) for numbers in partitions.values())


def keys(partitions: Partitions) -> list[TopicPartitionKey]:
    """Return (topic, partition) pairs in the order given."""
    return [(topic, number) for topic, numbers in partitions.items() for number in numbers]


def without(partitions: Partitions, others: Partitions) -> Partitions:
    """Return the partitions that are not among the others."""
    left = {
        topic: tuple(sorted(set(numbers).difference(others.get(topic, ()))))
        for topic, numbers in partitions.items()
    }
    return {topic: numbers for topic, numbers in left.items() if numbers}
