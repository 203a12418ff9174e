"""Requests to the group coordinator and their responses, with Kafka's names.

Fields that have no influence on the coordinator, such as the reason in JoinGroup, are left out. All times are
in milliseconds.
"""

from dataclasses import dataclass

from groupwright.core import ErrorCode, TopicPartitionKey


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol that a member supports: an assignor's name, with the subscription for it."""

    name: str
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """JoinGroup.

    Attributes:
        member_id: Empty for a new member.
        group_instance_id: Set for a static member (KIP-345).
        protocols: In order of preference.
        client_id: `client.id` of the request's header.
        version: Version of the request. From 4, a new dynamic member must join again with the id that it is
            given (KIP-394). From 9, a returning static leader gets the list of members (KIP-814).
    """

    group_id: str
    member_id: str = ""
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    protocols: tuple[Protocol, ...] = (Protocol("range"),)
    client_id: str = ""
    version: int = 9


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """Response to JoinGroup.

    Attributes:
        leader: Member id of the leader.
        skip_assignment: Whether the leader must not assign partitions (KIP-814).
        members: The members of the generation; empty for all but the leader.
    """

    error: ErrorCode = ErrorCode.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupRequest:
    """SyncGroup.

    Attributes:
        assignments: (member id, assignment) by the leader; empty for all others.
        protocol_type: The member's protocol type; required from version 5 (KIP-559).
        protocol_name: The protocol of JoinGroup's response; required from version 5.
    """

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = "consumer"
    protocol_name: str | None = "range"
    assignments: tuple[tuple[str, bytes], ...] = ()
    version: int = 5


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """Response to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """Heartbeat."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Response to Heartbeat."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """A member in LeaveGroup. An administrator leaves `member_id` empty and names the instance."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest:
    """LeaveGroup, version 3 or later."""

    group_id: str
    members: tuple[LeavingMember, ...]


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """Response to LeaveGroup.

    Attributes:
        error: Error of the whole request.
        members: The members of the request, in its order, each with its own error.
    """

    error: ErrorCode = ErrorCode.NONE
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """An offset with the metadata of the commit."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


NO_OFFSET = CommittedOffset(-1)
"""The value of OffsetFetch for a partition without a committed offset."""


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """OffsetCommit, without the retention time of versions 2 to 4.

    Attributes:
        generation_id: -1 for a commit from outside the group, such as an administrator's.
    """

    group_id: str
    offsets: tuple[tuple[TopicPartitionKey, CommittedOffset], ...]
    member_id: str = ""
    generation_id: int = -1
    group_instance_id: str | None = None
    version: int = 9


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """Response to OffsetCommit: an error for each partition, in the order of the request."""

    partitions: tuple[tuple[TopicPartitionKey, ErrorCode], ...]


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """OffsetFetch for one group."""

    group_id: str
    partitions: tuple[TopicPartitionKey, ...]


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """Response to OffsetFetch, in the order of the request; `NO_OFFSET` where nothing is committed."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[tuple[TopicPartitionKey, CommittedOffset], ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest:
    """OffsetDelete for one group (KIP-496)."""

    group_id: str
    partitions: tuple[TopicPartitionKey, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    """Response to OffsetDelete: an error for each partition, in the order of the request."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[tuple[TopicPartitionKey, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """DescribeGroups for one group, before version 6."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member in DescribeGroups' response."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse:
    """Response to DescribeGroups.

    Attributes:
        state: The group's state by its name; "Dead" for a missing group.
        protocol: The chosen protocol, in state Stable only.
    """

    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """DeleteGroups for one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse:
    """Response to DeleteGroups."""

    error: ErrorCode = ErrorCode.NONE


Request = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | DescribeGroupsRequest
    | DeleteGroupsRequest
)

Response = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DescribeGroupsResponse
    | DeleteGroupsResponse
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response that the coordinator sends now.

    Attributes:
        correlation_id: The correlation id with which the request came.
    """

    correlation_id: int
    response: Response
