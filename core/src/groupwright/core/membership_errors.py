"""librdkafka's errors that end a membership of its own, or an attempt to join.

Groupwright's own membership does not ask here: its errors are in the consumer's error policy.

Sources: librdkafka's ``rdkafka_cgrp.c``. A ConsumerGroupHeartbeat (KIP-848) error that permits no retry
becomes a fatal error (``RD_KAFKA_RESP_ERR__FATAL``), which names its cause in its text alone. The classic
protocol makes FENCED_INSTANCE_ID alone fatal, and reports the other permanent errors of JoinGroup by their
own codes. No other fatal error exists in a consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from groupwright.core.error_codes import ErrorCode, LibrdkafkaError

REJECTIONS: frozenset[int] = frozenset(
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
    }
)
"""Codes by which a coordinator rejects a member, fatal or not. Other requests of a consumer do not fail with
them, except for the authorization errors; without that authorization the member cannot join either."""

_FATAL_CAUSES = REJECTIONS | {
    ErrorCode.FENCED_INSTANCE_ID,
    # Other requests may be answered with these too, so they count only where librdkafka has made them fatal.
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.INVALID_REQUEST,
    LibrdkafkaError.UNSUPPORTED_FEATURE,
    ErrorCode.UNSUPPORTED_VERSION,
}


class ErrorKind(Enum):
    """The effect of an error on a membership."""

    FENCED = auto()
    """Another consumer took over the member's ``group.instance.id``. It is final, and reported repeatedly."""
    MAX_POLL_EXCEEDED = auto()
    """The application did not poll for ``max.poll.interval.ms``; the member has left."""
    REJECTED = auto()
    """The coordinator rejected the member."""
    OTHER = auto()
    """No effect: the error is not about the membership."""


@dataclass(frozen=True, slots=True)
class MembershipError:
    """An error, classified."""

    kind: ErrorKind
    code: int
    """The cause of a fatal error where its text names one, otherwise the error's own code."""


def classify_error(code: int, text: str, describe: Callable[[int], str]) -> MembershipError:
    """Classify an error that librdkafka reported.

    Args:
        code: The error's code.
        text: The error's text.
        describe: Returns librdkafka's text for a code (`rd_kafka_err2str`), which identifies the cause of a
            fatal error.
    """
    fatal = code == LibrdkafkaError.FATAL
    if fatal:
        causes = [cause for cause in _FATAL_CAUSES if describe(cause) in text]
        # The longest, since one description may be the beginning of another.
        code = max(causes, key=lambda cause: len(describe(cause)), default=LibrdkafkaError.FATAL)
    if code == ErrorCode.FENCED_INSTANCE_ID:
        kind = ErrorKind.FENCED
    elif code == LibrdkafkaError.MAX_POLL_EXCEEDED:
        kind = ErrorKind.MAX_POLL_EXCEEDED
    else:
        kind = ErrorKind.REJECTED if fatal or code in REJECTIONS else ErrorKind.OTHER
    return MembershipError(kind, int(code))
