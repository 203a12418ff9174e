"""What the membership asks its driver to do. Each is a value; doing it is `driver`'s part."""

from collections.abc import Mapping
from dataclasses import dataclass

from groupwright.assignors import JoinedMember
from groupwright.consumer._protocol.events import Event
from groupwright.consumer._protocol.model import JoinGroupPayload, MemberIdentity, Partitions
from groupwright.consumer._protocol.rebalance import Timeline


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Find the group's coordinator; answer with `coordinator_found` or `coordinator_missing`."""


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Close the connection to the coordinator, and with it whatever is under way on it."""


@dataclass(frozen=True, slots=True)
class SendJoinGroup:
    """Send JoinGroup; answer with `joined`, `disconnected` or `denied`."""

    attempt: int
    request: JoinGroupPayload


@dataclass(frozen=True, slots=True)
class PerformAssignment:
    """This member leads: look at the group's topics, run the assignor; answer with `assigned` or `assignment_failed`."""

    attempt: int
    protocol: str
    members: tuple[JoinedMember, ...]
    skip: bool = False
    """The group keeps the plan that it has (KIP-814): only the topics are wanted."""


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """Send Metadata for these topics (None: for all); answer with `topics_found` or `topics_missing`."""

    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SendSyncGroup:
    """Send SyncGroup; answer with `synced`, `disconnected` or `denied`."""

    attempt: int
    identity: MemberIdentity
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class NotifyAssignor:
    """Tell the assignor what this member was assigned in which generation."""

    protocol: str
    assignment: Partitions
    generation: int


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """Send OffsetFetch; answer with `offsets_fetched`, `disconnected` or `denied`."""

    attempt: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Send Heartbeat; answer with `heartbeat_answered` or `heartbeat_unanswered`."""

    identity: MemberIdentity


@dataclass(frozen=True, slots=True)
class SendLeaveGroup:
    """Send LeaveGroup once; answer with `left`, whatever came of it."""

    attempt: int
    identity: MemberIdentity
    reason: str


@dataclass(frozen=True, slots=True)
class SendOffsetCommits:
    """Send all commits that wait; answer with `committed`, whatever came of them."""

    attempt: int


@dataclass(frozen=True, slots=True)
class DeliverEvent:
    """Put an event into the application's inbox."""

    event: Event


@dataclass(frozen=True, slots=True)
class WithdrawEvent:
    """Take an event back if the application has not taken it; answer with `withdrawn` if so."""

    ticket: int


@dataclass(frozen=True, slots=True)
class ReportError:
    """Tell the application why it cannot be a member; the driver words it, and delivers `Reported` or `Failed`."""

    error: int
    detail: str
    timeline: Timeline | None
    repeated: bool = False
    """Whether the application has been told the same already."""


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
    | DeliverEvent
    | WithdrawEvent
    | ReportError
)
