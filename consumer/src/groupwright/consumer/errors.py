"""Exceptions of consumers.

Every class is both a `GroupwrightError` and a `confluent_kafka.KafkaException`, so that code written for
confluent-kafka (``except KafkaException as e: e.args[0].code()``) works unchanged.
"""

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
    """Base of the exceptions that only a `Consumer` raises; ``args[0]`` is a `confluent_kafka.KafkaError`."""

    def __init__(self, code: int, message: str) -> None:
        """Keep `code` (a broker's error code, or one of librdkafka's negative ones) with its message."""
        super().__init__(KafkaError(code, message))
        self.code = code
        self.message = message

    def __str__(self) -> str:
        """Return the message and the code's name."""
        return f"{self.message} ({self.args[0].name()})"


class ConcurrentAccessError(GroupwrightError, RuntimeError):
    """Two threads used a consumer at once (Java's ConcurrentModificationException); nothing was done.

    This is a bug of the program, so it is no `confluent_kafka.KafkaException`, which a loop may ignore.
    """

    def __init__(self, call: str, thread: str, inside: str) -> None:
        """Name the call, its thread, and the thread inside the consumer."""
        super().__init__(
            f"{call}() was called by the thread {thread} while the thread {inside} is inside a call of the "
            "same consumer. Give each thread its own consumer, or poll on one only: others may commit, "
            "store_offsets, pause or close at any time, and seek, subscribe or assign unless a rebalance "
            "callback runs"
        )


class WakeupError(GroupwrightError):
    """`Consumer.wakeup` has ended a poll (Java's WakeupException). No message is lost; poll again."""

    def __init__(self) -> None:
        """Name the call that caused it."""
        super().__init__("wakeup() was called")


class ConfigurationError(ConsumerError):
    """A setting is missing, out of range, contradicts another, or cannot be honoured."""

    def __init__(self, message: str) -> None:
        """Say which setting is wrong, its value, and what to write instead."""
        super().__init__(KafkaError._INVALID_ARG, message)  # noqa: SLF001 - librdkafka's public code


class GroupError(ConsumerError):
    """The membership failed on the client's side. Errors of the broker are a message's `error()` instead.

    Raised by `Consumer.poll` and `Consumer.consume`. The next poll tries to join again.
    """


class AssignorFailedError(GroupError):
    """This member leads the group, and its assignor raised or returned an invalid assignment."""


class CommitError(ConsumerError):
    """A synchronous commit failed; nothing, or not everything, was stored."""
