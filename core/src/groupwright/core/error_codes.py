"""Error codes that members of groups distinguish (`org.apache.kafka.common.protocol.Errors`)."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """An error code in a broker's response."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112


class LibrdkafkaError(IntEnum):
    """librdkafka's own codes about a membership."""

    UNSUPPORTED_FEATURE = -165
    FATAL = -150
    MAX_POLL_EXCEEDED = -147


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, or its number if it is not in `ErrorCode`."""
    return next((known.name for known in ErrorCode if known == code), f"error {code}")
