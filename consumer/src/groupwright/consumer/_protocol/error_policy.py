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


class ErrorAction(Enum):
    """What to do about an answer."""

    NONE = auto()
    """Nothing: the membership is as it was."""
    REJOIN = auto()
    """Join again, with the same ids; nothing is lost."""
    RETRY = auto()
    """The same again, after a pause."""
    REDISCOVER = auto()
    """Look the coordinator up, then the same again; the ids are kept, for it may hold them still."""
    NEW_GENERATION = auto()
    """The generation is over, and what was owned in it is lost; join again with the same member id."""
    NEW_MEMBER = auto()
    """The coordinator does not know the member: as `NEW_GENERATION`, with a new member id."""
    FENCED = auto()
    """Another member has taken this one's place for good."""
    FATAL = auto()
    """The application must hear of it: trying again unchanged will not help."""


_EVERYWHERE = {
    ErrorCode.NONE: ErrorAction.NONE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: ErrorAction.REDISCOVER,
}

_MEMBERS = {
    **_EVERYWHERE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
    # In answer to JoinGroup: the coordinator could not store the group, and asks for the same again. In answer to
    # SyncGroup the new generation is kept: resetting it was tried in Kafka, and revoked everything (KAFKA-13891).
    ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: ErrorAction.NEW_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.NEW_MEMBER,
    # Sent for a missing group by newer versions; the Java client takes it for unexpected.
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorAction.NEW_MEMBER,
    ErrorCode.FENCED_INSTANCE_ID: ErrorAction.FENCED,
}

_TABLE: dict[Api, tuple[dict[ErrorCode, ErrorAction], ErrorAction]] = {
    Api.FIND_COORDINATOR: (
        {
            ErrorCode.NONE: ErrorAction.NONE,
            ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.RETRY,
            ErrorCode.NOT_COORDINATOR: ErrorAction.RETRY,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
            ErrorCode.REQUEST_TIMED_OUT: ErrorAction.RETRY,
        },
        ErrorAction.FATAL,
    ),
    Api.JOIN_GROUP: (_MEMBERS, ErrorAction.FATAL),
    # The Java client has no branch for a loading coordinator here, and fails.
    Api.SYNC_GROUP: (_MEMBERS, ErrorAction.FATAL),
    # What is unknown here is tried again: if it stays, the session ends, and JoinGroup's answer says why. The Java client
    # and librdkafka keep silent about an authorization that was withdrawn, too.
    Api.HEARTBEAT: (_MEMBERS, ErrorAction.RETRY),
    Api.OFFSET_FETCH: (
        {
            **_EVERYWHERE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
            ErrorCode.REQUEST_TIMED_OUT: ErrorAction.RETRY,
            # An open transaction may still change the offset: falling to the reset policy would lose or repeat.
            ErrorCode.UNSTABLE_OFFSET_COMMIT: ErrorAction.RETRY,
            # The topic was just made or deleted; if deleted, a rebalance takes it away.
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        },
        ErrorAction.FATAL,
    ),
    # Any other error of a commit is the business of whoever committed.
    Api.OFFSET_COMMIT: (
        {
            **_MEMBERS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.NONE,
            ErrorCode.REQUEST_TIMED_OUT: ErrorAction.REDISCOVER,
        },
        ErrorAction.NONE,
    ),
}


def classify(api: Api, code: int) -> ErrorAction:
    """Return what an answer's error code means."""
    known, otherwise = _TABLE[api]
    return next((found for error, found in known.items() if error == code), otherwise)
