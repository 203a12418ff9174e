"""Exceptions of the consumer.

Each is a `GroupwrightError`. `ConsumerError` and its subclasses are also a `confluent_kafka.KafkaException`,
so that code written for confluent-kafka (``except KafkaException as e: e.args[0].code()``) works unchanged.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from groupwright.core import GroupwrightError

__all__ = [
    "AssignorFailedError",
    "CommitError",
    "ConcurrentAccessError",
    "ConfigurationError",
    "ConsumerError",
    "GroupError",
    "WakeupError",
]


class ConsumerError(GroupwrightError, KafkaException):
    """Base class of a `Consumer`'s own errors; ``args[0]`` is a `confluent_kafka.KafkaError`."""

    def __init__(self, code: int, message: str) -> None:
        """Create an error of `code`, which is Kafka's, or one of librdkafka's negative codes."""
        super().__init__(KafkaError(code, message))
        self.code = code
        self.message = message

    def __str__(self) -> str:
        """Return the message and the code's name."""
        return f"{self.message} ({self.args[0].name()})"


class ConcurrentAccessError(GroupwrightError, RuntimeError):
    """Two threads used a consumer at once (Java's ConcurrentModificationException); the call had no effect.

    It is a programming error, so it is no `confluent_kafka.KafkaException`, which an application may retry.
    """

    def __init__(self, call: str, thread: str, inside: str) -> None:
        """Create it for a `call` by `thread`, while the thread `inside` is in another call."""
        super().__init__(
            f"{call}() was called by the thread {thread} while the thread {inside} is inside a call of the "
            "same consumer. Give each thread its own consumer, or poll on one only: others may commit, "
            "store_offsets, pause or close at any time, and seek, subscribe or assign unless a rebalance "
            "callback runs"
        )


class WakeupError(GroupwrightError):
    """`Consumer.wakeup` ended a poll (Java's WakeupException).

    No message is lost, and polling may continue.
    """

    def __init__(self) -> None:
        """Create it."""
        super().__init__("wakeup() was called")


class ConfigurationError(ConsumerError):
    """A configuration property is missing, out of range, unsupported, or contradicts another one."""

    def __init__(self, message: str) -> None:
        """Create it; `message` names the property and its value, and says what to write instead."""
        super().__init__(KafkaError._INVALID_ARG, message)  # noqa: SLF001 - librdkafka's public code


class GroupError(ConsumerError):
    """The membership failed inside this consumer.

    Errors of the broker are returned as messages with an `error()`.

    Raised by `Consumer.poll` and `Consumer.consume`. The next poll tries to join again.
    """


class AssignorFailedError(GroupError):
    """This member leads the group, and its assignor raised or returned an invalid assignment."""


class CommitError(ConsumerError):
    """A synchronous commit failed, for all partitions or for some of them."""
