"""Actions: what the membership has its driver do, and replies: how a `Request` ended. All are values.

The driver passes the one reply of each request to `Membership.reply`, whose table says what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from groupwright.assignors import JoinedMember
from groupwright.consumer._protocol.events import Event
from groupwright.consumer._protocol.model import JoinGroupPayload, MemberIdentity, MetadataResponse
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.consumer._protocol.transitions import Step
from groupwright.core import Partitions

# --- Replies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """The response came; its type is that of the request, and None where there is nothing to say."""

    response: Any = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A broker answered FindCoordinator, but named no coordinator, as while it moves to another broker."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """No response will come: the connection was lost, or the request timed out."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request failed, and a retry will not help, such as with wrong credentials.

    Attributes:
        error: Kafka's or librdkafka's code, or 0 if the assignor failed.
        detail: The message for the application.
    """

    error: int
    detail: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An unexpected exception, a defect of this package, ended the request; the driver reports it."""


Reply = Answered | Unavailable | Disconnected | Refused | Broken

# --- Requests -----------------------------------------------------------------------------------------------


class Request:
    """An action that takes time: a request to a broker, or work that ends with a response like one."""

    __slots__ = ()

    to_coordinator: ClassVar[bool] = False
    """True if it is sent on the coordinator's connection, and fails when that is lost."""


@dataclass(frozen=True, slots=True)
class StepRequest(Request):
    """A request that is a `Step`. A reply to an attempt that was abandoned has no effect."""

    step: ClassVar[Step]

    attempt: int


@dataclass(frozen=True, slots=True)
class FindCoordinator(Request):
    """Find the group's coordinator and connect to it."""


@dataclass(frozen=True, slots=True)
class SendJoinGroup(StepRequest):
    """Send JoinGroup; the response is a `JoinGroupResponse`."""

    step = Step.JOIN
    to_coordinator = True

    request: JoinGroupPayload


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The leader's assignment for the whole group, ready for SyncGroup.

    Attributes:
        assignments: ConsumerProtocol bytes by member id; empty if the group keeps its assignment (KIP-814).
        subscribed: All topics that members subscribe to.
        topics: The metadata that the assignment is based on.
        change: The members that joined and left since the previous generation, in words; None if that is
            unknown.
        undecodable: By member id, the reason why a subscription or user data could not be decoded.
    """

    assignments: Mapping[str, bytes]
    subscribed: frozenset[str]
    topics: MetadataResponse
    change: str | None = None
    undecodable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PerformAssignment(StepRequest):
    """Assign the group's partitions, as its leader: fetch metadata and run the assignor.

    The response is a `GroupAssignment`.

    Attributes:
        protocol: The assignor's name.
        members: All members, with their subscriptions.
        skip: Whether the group keeps its assignment (KIP-814), so that only metadata is needed.
    """

    step = Step.ASSIGN

    protocol: str
    members: tuple[JoinedMember, ...]
    skip: bool = False


@dataclass(frozen=True, slots=True)
class FetchMetadata(Request):
    """Send Metadata for these topics (None: for all); the response is a `MetadataResponse`."""

    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SendSyncGroup(StepRequest):
    """Send SyncGroup; the response is a `SyncGroupResponse`. Only the leader's carries an assignment."""

    step = Step.SYNC
    to_coordinator = True

    identity: MemberIdentity
    assignment: GroupAssignment | None = None


@dataclass(frozen=True, slots=True)
class FetchOffsets(StepRequest):
    """Send OffsetFetch; the response is an `OffsetFetchResponse`."""

    step = Step.OFFSETS
    to_coordinator = True

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Request):
    """Send Heartbeat; the response is an error code."""

    to_coordinator = True

    identity: MemberIdentity


@dataclass(frozen=True, slots=True)
class SendLeaveGroup(StepRequest):
    """Send LeaveGroup; the response is an error code.

    The attempt is 0 where nothing waits for the end of the request, and it is then sent once.
    """

    step = Step.LEAVE
    to_coordinator = True

    identity: MemberIdentity
    reason: str


@dataclass(frozen=True, slots=True)
class SendOffsetCommits(StepRequest):
    """Send all queued commits; the response is None once the queue is empty, even if commits have failed."""

    step = Step.COMMITS


# --- Other actions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Close the connection to the coordinator, and with it all requests under way on it."""


@dataclass(frozen=True, slots=True)
class NotifyAssignor:
    """Call the assignor's `on_assignment` with this member's assignment."""

    protocol: str
    assignment: Partitions
    generation: int


@dataclass(frozen=True, slots=True)
class StayInGroup:
    """Log that the member ends without LeaveGroup, and stays in the group until its session expires.

    It does so by design, as a static member that closes, or because the coordinator is not known.
    """

    by_design: bool


@dataclass(frozen=True, slots=True)
class DeliverEvent:
    """Put an event into the application's inbox.

    The polling thread calls `Membership.taken` before the callback of an `Assign`, and `Membership.applied`
    after that of an `Assign` or a `Revoke`.
    """

    event: Event


@dataclass(frozen=True, slots=True)
class WithdrawEvent:
    """Remove an event from the inbox, unless the application has taken it.

    If it was removed, the driver calls `Membership.withdrawn`.
    """

    ticket: int


@dataclass(frozen=True, slots=True)
class ReportError:
    """Report to the application why it cannot be a member. The driver delivers `Reported` or `Failed`.

    Attributes:
        error: Kafka's error code, or 0 for an assignor's failure.
        detail: What happened, in words.
        timeline: The rebalance that the error ended, if one was under way.
        repeated: Whether the same error was reported before.
    """

    error: int
    detail: str
    timeline: Timeline | None
    repeated: bool = False


Action = (
    FindCoordinator
    | DropConnection
    | SendJoinGroup
    | PerformAssignment
    | FetchMetadata
    | SendSyncGroup
    | NotifyAssignor
    | FetchOffsets
    | SendHeartbeat
    | SendOffsetCommits
    | SendLeaveGroup
    | StayInGroup
    | DeliverEvent
    | WithdrawEvent
    | ReportError
)
