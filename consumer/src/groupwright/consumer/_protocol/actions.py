"""Actions: what the membership has its driver do. Each is a value, with methods for its replies.

A reply is a method of the action, which calls the matching input of `Membership` and passes it the attempt or
ticket of the action. So the driver and the tests need not know the inputs. Like an input, a reply takes the
time as its last argument and returns the next actions. A `Request` gets exactly one of its replies.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from groupwright.assignors import JoinedMember
from groupwright.consumer._protocol.events import Event
from groupwright.consumer._protocol.model import (
    JoinGroupPayload,
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.core import Partitions

if TYPE_CHECKING:
    from groupwright.consumer._protocol.membership import Membership

_ResponseT = TypeVar("_ResponseT")


class Request(ABC, Generic[_ResponseT]):
    """An action that takes time: a request to a broker, or work that ends with a response like one."""

    __slots__ = ()

    to_coordinator: ClassVar[bool] = False
    """True if it is sent on the coordinator's connection, and fails when that is lost."""

    @abstractmethod
    def answered(self, member: "Membership", response: _ResponseT, now: float) -> "list[Action]":
        """Reply with the response."""

    @abstractmethod
    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """Reply that no response will come: the connection was lost, or the request timed out."""

    def refused(self, member: "Membership", _error: int, _detail: str, now: float) -> "list[Action]":
        """Reply that the request failed and a retry will not help, such as with wrong credentials.

        `error` is Kafka's or librdkafka's code, `detail` the message for the application.
        """
        return self.disconnected(member, now)

    def broken(self, member: "Membership", now: float) -> "list[Action]":
        """Reply that an unexpected exception, a defect of this package, ended it."""
        return self.disconnected(member, now)


@dataclass(frozen=True, slots=True)
class StepRequest(Request[_ResponseT]):
    """A request that is a `Step`. A reply to an attempt that was abandoned has no effect."""

    attempt: int

    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.disconnected(self.attempt, now)

    def refused(self, member: "Membership", error: int, detail: str, now: float) -> "list[Action]":
        """See `Request`."""
        return member.refused(self.attempt, error, detail, now)

    def broken(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.broken(self.attempt, now)


@dataclass(frozen=True, slots=True)
class FindCoordinator(Request[None]):
    """Find the group's coordinator and connect to it."""

    def answered(self, member: "Membership", _response: None, now: float) -> "list[Action]":
        """Reply that the coordinator was found."""
        return member.coordinator_found(now)

    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.coordinator_missing(None, "", now)

    def unavailable(self, member: "Membership", now: float) -> "list[Action]":
        """Reply that a broker answered, but named no coordinator, as while it moves to another broker."""
        return member.coordinator_unavailable(now)

    def refused(self, member: "Membership", error: int, detail: str, now: float) -> "list[Action]":
        """See `Request`."""
        return member.coordinator_missing(error, detail, now)


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Close the connection to the coordinator, and with it all requests under way on it."""


@dataclass(frozen=True, slots=True)
class SendJoinGroup(StepRequest[JoinGroupResponse]):
    """Send JoinGroup."""

    request: JoinGroupPayload

    to_coordinator = True

    def answered(self, member: "Membership", response: JoinGroupResponse, now: float) -> "list[Action]":
        """See `Request`."""
        return member.joined(self.attempt, response, now)


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
class PerformAssignment(StepRequest[GroupAssignment]):
    """Assign the group's partitions, as its leader: fetch metadata and run the assignor.

    Attributes:
        protocol: The assignor's name.
        members: All members, with their subscriptions.
        skip: Whether the group keeps its assignment (KIP-814), so that only metadata is needed.
    """

    protocol: str
    members: tuple[JoinedMember, ...]
    skip: bool = False

    def answered(self, member: "Membership", response: GroupAssignment, now: float) -> "list[Action]":
        """See `Request`."""
        return member.assignment_computed(self.attempt, response, now)

    def refused(self, member: "Membership", error: int, detail: str, now: float) -> "list[Action]":
        """Reply that the metadata was refused; or, with an `error` of 0, that the assignor failed."""
        return member.assignment_failed(self.attempt, error, detail, now)


@dataclass(frozen=True, slots=True)
class FetchMetadata(Request[MetadataResponse]):
    """Send Metadata for these topics (None: for all)."""

    topics: tuple[str, ...] | None

    def answered(self, member: "Membership", response: MetadataResponse, now: float) -> "list[Action]":
        """See `Request`."""
        return member.topics_found(response, now)

    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.topics_missing(None, "", now)

    def refused(self, member: "Membership", error: int, detail: str, now: float) -> "list[Action]":
        """See `Request`."""
        return member.topics_missing(error, detail, now)


@dataclass(frozen=True, slots=True)
class SendSyncGroup(StepRequest[SyncGroupResponse]):
    """Send SyncGroup. Only the leader's carries an assignment."""

    identity: MemberIdentity
    assignment: GroupAssignment | None = None

    to_coordinator = True

    def answered(self, member: "Membership", response: SyncGroupResponse, now: float) -> "list[Action]":
        """See `Request`."""
        return member.synced(self.attempt, self.assignment, response, now)


@dataclass(frozen=True, slots=True)
class NotifyAssignor:
    """Call the assignor's `on_assignment` with this member's assignment."""

    protocol: str
    assignment: Partitions
    generation: int


@dataclass(frozen=True, slots=True)
class FetchOffsets(StepRequest[OffsetFetchResponse]):
    """Send OffsetFetch."""

    partitions: Partitions

    to_coordinator = True

    def answered(self, member: "Membership", response: OffsetFetchResponse, now: float) -> "list[Action]":
        """See `Request`."""
        return member.offsets_fetched(self.attempt, response, now)


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Request[int]):
    """Send Heartbeat; its response is an error code."""

    identity: MemberIdentity

    to_coordinator = True

    def answered(self, member: "Membership", response: int, now: float) -> "list[Action]":
        """See `Request`."""
        return member.heartbeat_answered(self.identity, response, now)

    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.heartbeat_unanswered(now)


@dataclass(frozen=True, slots=True)
class SendLeaveGroup(StepRequest[int]):
    """Send LeaveGroup; its response is an error code.

    The attempt is 0 where nothing waits for the end of the request, and it is then sent once.
    """

    identity: MemberIdentity
    reason: str

    to_coordinator = True

    def answered(self, member: "Membership", response: int, now: float) -> "list[Action]":
        """See `Request`."""
        return member.leave_answered(self.attempt, response, now)

    def disconnected(self, member: "Membership", now: float) -> "list[Action]":
        """See `Request`."""
        return member.leave_ended(self.attempt, now)

    def refused(self, member: "Membership", _error: int, _detail: str, now: float) -> "list[Action]":
        """See `Request`."""
        return member.leave_ended(self.attempt, now)


@dataclass(frozen=True, slots=True)
class StayInGroup:
    """Log that the member ends without LeaveGroup, and stays in the group until its session expires.

    It does so by design, as a static member that closes, or because the coordinator is not known.
    """

    by_design: bool


@dataclass(frozen=True, slots=True)
class SendOffsetCommits(StepRequest[None]):
    """Send all queued commits.

    The reply says that the queue is empty, whether the commits succeeded or not.
    """

    def answered(self, member: "Membership", _response: None, now: float) -> "list[Action]":
        """See `Request`."""
        return member.commits_ended(self.attempt, now)


@dataclass(frozen=True, slots=True)
class DeliverEvent:
    """Put an event into the application's inbox.

    `Assign` and `Revoke` are replied to with `Membership.applied`, once their callbacks have returned, and
    `Assign` with `Membership.taken` before.
    """

    event: Event


@dataclass(frozen=True, slots=True)
class WithdrawEvent:
    """Remove an event from the inbox, unless the application has taken it.

    The reply says that it was removed.
    """

    ticket: int

    def withdrawn(self, member: "Membership", now: float) -> "list[Action]":
        """Reply that the application never saw the event."""
        return member.withdrawn(self.ticket, now)


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
