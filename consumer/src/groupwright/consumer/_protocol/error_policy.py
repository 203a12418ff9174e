"""Error policy: a table of what a membership does about each error code of each response.

The codes are those that Kafka's group coordinator sends (GroupMetadataManager, GroupCoordinatorService); what
to do is what Kafka's AbstractCoordinator and ConsumerCoordinator do, except where a comment says otherwise.
"""

from __future__ import annotations

from enum import Enum, auto

from groupwright.core import ErrorCode


class Api(Enum):
    """Requests whose responses may change the membership."""

    FIND_COORDINATOR = "FindCoordinator"
    JOIN_GROUP = "JoinGroup"
    SYNC_GROUP = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    OFFSET_FETCH = "OffsetFetch"
    OFFSET_COMMIT = "OffsetCommit"
    LEAVE_GROUP = "LeaveGroup"


class ErrorAction(Enum):
    """The membership's reaction to an error code. Of several codes, the last action in this order applies."""

    NONE = auto()
    """Nothing: the membership does not change."""
    REJOIN = auto()
    """Join again with the same member id and generation; partitions are kept."""
    RETRY = auto()
    """Send the request again after a pause; JoinGroup in place of SyncGroup."""
    REDISCOVER = auto()
    """Look the coordinator up, and do as `RETRY`, with the same member id and generation."""
    NEW_GENERATION = auto()
    """Join again with the same member id; the generation has ended, and its partitions are lost."""
    NEW_MEMBER = auto()
    """As `NEW_GENERATION`, with a new member id: the coordinator does not know this one."""
    FENCED = auto()
    """Another member has taken this member's ``group.instance.id``; never join again."""
    FATAL = auto()
    """Report the error to the application: trying again unchanged will not help."""


_COORDINATOR_ERRORS = {
    ErrorCode.NONE: ErrorAction.NONE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: ErrorAction.REDISCOVER,
}

# OffsetCommit has these too: a code that is retried here is NONE there, as the commit queue retries commits.
_MEMBER_ERRORS = {
    **_COORDINATOR_ERRORS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
    # From JoinGroup: the coordinator could not store the group, and asks for another JoinGroup. From
    # SyncGroup: the new generation is kept; resetting it was tried in Kafka, and revoked all partitions
    # (KAFKA-13891).
    ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: ErrorAction.NEW_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.NEW_MEMBER,
    # Newer brokers send it for a missing group; the Java client has no branch for it.
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
    Api.JOIN_GROUP: (_MEMBER_ERRORS, ErrorAction.FATAL),
    # The Java client has no branch for a loading coordinator here, and fails.
    Api.SYNC_GROUP: (_MEMBER_ERRORS, ErrorAction.FATAL),
    # Any other error is retried: if it stays, the session expires, and JoinGroup's response says why. The
    # Java client and librdkafka do not report an authorization that was withdrawn either.
    Api.HEARTBEAT: (_MEMBER_ERRORS, ErrorAction.RETRY),
    Api.OFFSET_FETCH: (
        {
            **_COORDINATOR_ERRORS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
            ErrorCode.REQUEST_TIMED_OUT: ErrorAction.RETRY,
            # An open transaction may still change the offset: auto.offset.reset would lose or repeat
            # messages.
            ErrorCode.UNSTABLE_OFFSET_COMMIT: ErrorAction.RETRY,
            # The topic was just created or deleted; if deleted, a rebalance will revoke it.
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        },
        ErrorAction.FATAL,
    ),
    # Any other error of a commit concerns its caller alone.
    Api.OFFSET_COMMIT: (
        {
            **_MEMBER_ERRORS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.NONE,
            ErrorCode.REQUEST_TIMED_OUT: ErrorAction.REDISCOVER,
        },
        ErrorAction.NONE,
    ),
    # The Java client and librdkafka send LeaveGroup once: after a coordinator that has just moved, their
    # partitions have no owner until the session expires. Any other error means that the member has left, or
    # that it cannot.
    Api.LEAVE_GROUP: (
        {**_COORDINATOR_ERRORS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY},
        ErrorAction.NONE,
    ),
}


def classify(api: Api, code: int) -> ErrorAction:
    """Return what to do about an error code in a response."""
    known, otherwise = _TABLE[api]
    return next((found for error, found in known.items() if error == code), otherwise)
