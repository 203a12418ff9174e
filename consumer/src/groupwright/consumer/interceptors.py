"""Interceptors: objects that receive every message before the application does, and every commit (KIP-42)."""

from __future__ import annotations

from confluent_kafka import Message, TopicPartition


class ConsumerInterceptor:
    """Base class of the objects in the property ``interceptors``, which are called in the order of that list.

    If a method raises, that call continues without this interceptor. The exception is logged at level ERROR
    once for each method, and at level DEBUG after that.
    """

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """Return the messages that `poll` or `consume` shall return, at most as many; called on its thread.

        `messages` contains no errors. A message that is left out counts as consumed.
        """
        return messages

    def on_commit(self, offsets: list[TopicPartition]) -> None:
        """Handle committed offsets.

        Called on the polling thread, or on the thread of a synchronous commit.
        """

    def close(self) -> None:
        """Release resources; called once, after the consumer was closed."""
