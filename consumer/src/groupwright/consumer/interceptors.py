"""Interceptors: objects that see every message on its way to the application, and every commit (KIP-42)."""

from confluent_kafka import Message, TopicPartition


class ConsumerInterceptor:
    """Base class of the objects in the configuration key ``interceptors``, which are called in that order.

    What a method raises is logged, and that call goes on as if this interceptor were not there (the log says
    so once for each method, then only at level DEBUG).
    """

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """Return the messages that `poll` or `consume` returns, at most as many; called on its thread.

        Messages that are errors are not shown. One that is left out counts as consumed.
        """
        return messages

    def on_commit(self, offsets: list[TopicPartition]) -> None:
        """Handle committed offsets; called by the polling thread, or by the one that committed and waited."""

    def close(self) -> None:
        """Free what the interceptor holds; called once, when the consumer was closed."""
