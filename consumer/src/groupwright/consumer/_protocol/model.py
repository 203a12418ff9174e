"""The group protocol's requests and answers, as plain values.

Only what membership needs, apart from any library's classes: `network` translates to and from the wire.
Field names are Kafka's. Partitions are held per topic, ascending.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groupwright.assignors import JoinedMember, Topic

Partitions = Mapping[str, Sequence[int]]
"""Topic name to partition numbers."""

TopicPartitionKey = tuple[str, int]

PROTOCOL_TYPE = "consumer"


class ErrorCode(IntEnum):
    """The broker's error codes that membership tells apart (`org.apache.kafka.common.protocol.Errors`)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    FENCED_INSTANCE_ID = 82
    UNSTABLE_OFFSET_COMMIT = 88


def error_name(code: int) -> str:
    """Return the protocol's name of an error code, or the number where none is known here."""
    return next((known.name for known in ErrorCode if known == code), f"error {code}")


COORDINATOR_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Answers after which the coordinator must be looked up again."""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """Who a member is in its group: the triple that every request carries.

    A generation of -1 means that no generation is held; an empty member id that none was given yet.
    """

    generation: int = -1
    member_id: str = ""
    protocol: str | None = None

    @property
    def valid(self) -> bool:
        """Whether this is a member in some generation, so that what it owns is its own."""
        return self.generation >= 0 and bool(self.member_id)


class GroupMembershipOperation(Enum):
    """What closing does about the group (KIP-1092; Java's `CloseOptions.GroupMembershipOperation`)."""

    DEFAULT = "default"
    """A dynamic member leaves; a static one (``group.instance.id``) stays until its session ends."""
    LEAVE_GROUP = "leave"
    """The member leaves, a static one too, and its partitions go to others at once."""
    REMAIN_IN_GROUP = "remain"
    """The member sends no LeaveGroup: its partitions go to others when its session ends."""


@dataclass(frozen=True, slots=True)
class JoinGroupPayload:
    """JoinGroup (KIP-62, KIP-345, KIP-394, KIP-800)."""

    member_id: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """JoinGroup's response; `members` is empty unless this member leads."""

    error: int = 0
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: "tuple[JoinedMember, ...]" = ()
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
    """A position to commit, or one that was committed; `offset` -1 where there is none."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


Offsets = Mapping[TopicPartitionKey, Offset]

UNREADABLE = Offset(-2)
"""Stands for a committed offset that the coordinator refuses to return."""


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
    """DescribeGroups' response, as far as an error message needs it."""

    state: str
    protocol: str
    client_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """Metadata's response, as far as the group is concerned with it."""

    topics: "Mapping[str, Topic]" = field(default_factory=dict)
    """Those that exist."""
    internal: frozenset[str] = frozenset()
    """Kafka's own, such as ``__consumer_offsets``."""
    refused: frozenset[str] = frozenset()
    """Those that were asked for by name, and that this client may not see."""


class DisconnectedError(Exception):
    """A request had no answer: the connection broke, or the time-out passed."""


def count(partitions: Partitions) -> int:
    """Return how many partitions there are over all topics."""
    return sum(len(numbers) for numbers in partitions.values())


def keys(partitions: Partitions) -> list[TopicPartitionKey]:
    """Return (topic, partition) pairs, in the order given."""
    return [(topic, number) for topic, numbers in partitions.items() for number in numbers]


def without(partitions: Partitions, others: Partitions) -> Partitions:
    """Return the partitions that are not among the others."""
    left = {
        topic: tuple(sorted(set(numbers).difference(others.get(topic, ()))))
        for topic, numbers in partitions.items()
    }
    return {topic: numbers for topic, numbers in left.items() if numbers}
