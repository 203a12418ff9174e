"""Polling a consumer until something has come of it."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message

from groupwright.consumer import Consumer
from integration_tests.harness.patience import PATIENCE


def poll_until(consumer: Consumer, condition: Callable[[list[Message]], bool], what: str) -> list[Message]:
    """Poll until `condition` holds for the messages so far, errors among them; return these."""
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while not condition(messages):
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {PATIENCE:.0f} s")
        message = consumer.poll(0.1)
        if message is not None:
            messages.append(message)
    return messages


def take(consumer: Consumer, count: int) -> list[Message]:
    """Poll until `count` messages have come; none of them may be an error."""
    messages = poll_until(consumer, lambda messages: len(messages) >= count, f"{count} messages")
    assert [message.error() for message in messages] == [None] * count
    return messages


def polls_in_peace(consumer: Consumer) -> bool:
    """Poll once; return whether the consumer is a member, and its group has not refused it."""
    message = consumer.poll(0)
    return (message is None or message.error() is None) and consumer.memberid() is not None


def refusal(consumer: Consumer) -> KafkaError:
    """Poll until the consumer hands an error out; return it."""
    errors: list[KafkaError] = []

    def has_error(messages: list[Message]) -> bool:
        errors.extend(filter(None, (message.error() for message in messages)))
        return bool(errors)

    poll_until(consumer, has_error, "a refusal")
    return errors[0]


def values(messages: list[Message]) -> list[int]:
    """Return the numbers that the messages carry."""
    return [int(message.value() or b"") for message in messages]
