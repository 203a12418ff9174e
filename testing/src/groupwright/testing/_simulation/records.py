"""Records that the coordinator writes to `__consumer_offsets`: all that survives a restart or a move.

The log is a table from keys to records, as compaction leaves it. Deleting a key stands for a tombstone.
"""

from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.testing._simulation.messages import CommittedOffset


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """Key of a group's record."""

    group_id: str


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member in a group's record, with its subscription for the chosen protocol only."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """A generation of a group (`GroupMetadataValue`).

    Attributes:
        protocol_type: None for a group that never had a member.
        state_since_ms: When the group's state last changed.
    """

    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    state_since_ms: int
    members: tuple[MemberRecord, ...]


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """Key of a committed offset's record."""

    group_id: str
    partition: TopicPartitionKey


@dataclass(frozen=True, slots=True)
class OffsetCommitRecord:
    """A committed offset, with the time of its commit (`OffsetCommitValue`)."""

    committed: CommittedOffset
    commit_time_ms: int


Log = dict[GroupMetadataKey | OffsetCommitKey, GroupMetadataRecord | OffsetCommitRecord]
"""Content of `__consumer_offsets`, in order of the first record of each key."""
