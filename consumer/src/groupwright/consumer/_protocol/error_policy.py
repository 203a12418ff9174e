"""What each error code, in answer to each request, means for a membership: one table.

The codes are those that Kafka's group coordinator sends (GroupMetadataManager, GroupCoordinatorService); what to do
is what Kafka's AbstractCoordinator and ConsumerCoordinator do, except where a comment says otherwise.
"""

from enum import Enum, auto

from groupwright.consumer._protocol.model import ErrorCode


class Api(Enum):
    """The requests whose answers say something about the membership."""

    FIND_COORDINATOR = "FindCoordinator"
    JOIN_GROUP = "JoinGroup"
    SYNC_GROUP = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    OFFSET_FETCH = "OffsetFetch"
    OFFSET_COMMIT = "OffsetCommit"


class Verdict(Enum):
    """What to do about an answer."""

    FINE = auto()
    """Nothing: the membership is as it was."""
    REJOIN = auto()
    """Join again, with the same ids; nothing is lost."""
    LATER = auto()
    """The same again, after a pause."""
    ELSEWHERE = auto()
    """Look the coordinator up, then the same again; the ids are kept, for it may hold them still."""
    NEW_GENERATION = auto()
    """The generation is over, and what was owned in it is lost; join again with the same member id."""
    NEW_MEMBER = auto()
    """The coordinator does not know the member: as `NEW_GENERATION`, with a new member id."""
    FENCED = auto()
    """Another member has taken this one's place for good."""
    REFUSED = auto()
    """The application must hear of it: trying again unchanged will not help."""


_EVERYWHERE = {
    ErrorCode.NONE: Verdict.FINE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.ELSEWHERE,
    ErrorCode.NOT_COORDINATOR: Verdict.ELSEWHERE,
}

_MEMBERS = {
    **_EVERYWHERE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.LATER,
    # In answer to JoinGroup: the coordinator could not store the group, and asks for the same again. In answer to
    # SyncGroup the new generation is kept: resetting it was tried in Kafka, and revoked everything (KAFKA-13891).
    ErrorCode.REBALANCE_IN_PROGRESS: Verdict.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: Verdict.NEW_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: Verdict.NEW_MEMBER,
    # Sent for a missing group by newer versions; the Java client takes it for unexpected.
    ErrorCode.GROUP_ID_NOT_FOUND: Verdict.NEW_MEMBER,
    ErrorCode.FENCED_INSTANCE_ID: Verdict.FENCED,
}

_TABLE: dict[Api, tuple[dict[ErrorCode, Verdict], Verdict]] = {
    Api.FIND_COORDINATOR: (
        {
            ErrorCode.NONE: Verdict.FINE,
            ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.LATER,
            ErrorCode.NOT_COORDINATOR: Verdict.LATER,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.LATER,
            ErrorCode.REQUEST_TIMED_OUT: Verdict.LATER,
        },
        Verdict.REFUSED,
    ),
    Api.JOIN_GROUP: (_MEMBERS, Verdict.REFUSED),
    # The Java client has no branch for a loading coordinator here, and fails.
    Api.SYNC_GROUP: (_MEMBERS, Verdict.REFUSED),
    # What is unknown here is tried again: if it stays, the session ends, and JoinGroup's answer says why. The Java client
    # and librdkafka keep silent about an authorization that was withdrawn, too.
    Api.HEARTBEAT: (_MEMBERS, Verdict.LATER),
    Api.OFFSET_FETCH: (
        {
            **_EVERYWHERE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.LATER,
            ErrorCode.REQUEST_TIMED_OUT: Verdict.LATER,
            # An open transaction may still change the offset: falling to the reset policy would lose or repeat.
            ErrorCode.UNSTABLE_OFFSET_COMMIT: Verdict.LATER,
            # The topic was just made or deleted; if deleted, a rebalance takes it away.
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.LATER,
        },
        Verdict.REFUSED,
    ),
    # Any other error of a commit is the business of whoever committed.
    Api.OFFSET_COMMIT: (
        {
            **_MEMBERS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.FINE,
            ErrorCode.REQUEST_TIMED_OUT: Verdict.ELSEWHERE,
        },
        Verdict.FINE,
    ),
}


def verdict(api: Api, code: int) -> Verdict:
    """Return what an answer's error code means."""
    known, otherwise = _TABLE[api]
    return next((found for error, found in known.items() if error == code), otherwise)
