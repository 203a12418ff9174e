"""librdkafka's errors, classified by their effect on a membership."""

import pytest
from confluent_kafka import KafkaError

from groupwright.core.membership_errors import REJECTIONS, ErrorKind, classify_error

FATAL = KafkaError._FATAL

HEARTBEAT_FATAL = [
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.INVALID_REQUEST,
    KafkaError.GROUP_MAX_SIZE_REACHED,
    KafkaError.UNSUPPORTED_ASSIGNOR,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError.UNRELEASED_INSTANCE_ID,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
]
"""Those that librdkafka's handler of ConsumerGroupHeartbeat names as fatal."""


def describe(code: int) -> str:
    return KafkaError(code).str()


@pytest.mark.parametrize("cause", HEARTBEAT_FATAL)
def test_a_fatal_error_is_a_rejection_and_its_text_names_the_cause(cause: int) -> None:
    found = classify_error(FATAL, f"ConsumerGroupHeartbeat fatal error: {describe(cause)}", describe)

    assert (found.kind, found.code) == (ErrorKind.REJECTED, cause)


def test_a_fatal_error_of_a_cause_that_is_not_known_is_a_rejection_too() -> None:
    found = classify_error(FATAL, "ConsumerGroupHeartbeat fatal error: Broker: Something new", describe)

    assert (found.kind, found.code) == (ErrorKind.REJECTED, FATAL)


@pytest.mark.parametrize("code", sorted(REJECTIONS))
def test_a_rejection_need_not_be_fatal(code: int) -> None:
    """The classic protocol reports a permanent error of JoinGroup by its own code."""
    assert classify_error(code, f"JoinGroup failed: {describe(code)}", describe).kind is ErrorKind.REJECTED


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (KafkaError.FENCED_INSTANCE_ID, "anything"),
        (FATAL, f"Fatal consumer error: {describe(KafkaError.FENCED_INSTANCE_ID)}"),
    ],
)
def test_a_fenced_member_is_told_apart(code: int, text: str) -> None:
    found = classify_error(code, text, describe)

    assert (found.kind, found.code) == (ErrorKind.FENCED, KafkaError.FENCED_INSTANCE_ID)


def test_a_member_that_does_not_poll_is_told_apart() -> None:
    assert classify_error(KafkaError._MAX_POLL_EXCEEDED, "", describe).kind is ErrorKind.MAX_POLL_EXCEEDED


@pytest.mark.parametrize(
    "code", [KafkaError._TRANSPORT, KafkaError.INVALID_REQUEST, KafkaError.UNSUPPORTED_VERSION]
)
def test_codes_that_other_requests_are_answered_with_count_only_where_they_are_fatal(code: int) -> None:
    assert classify_error(code, describe(code), describe).kind is ErrorKind.OTHER
