"""Messages that the consumer creates itself: errors that `poll` returns.

Since 2.13, confluent-kafka's `Message` can be instantiated. With an older release, `PlainMessage` is used,
which has the same methods.
"""

from __future__ import annotations

from typing import Any, cast

from confluent_kafka import KafkaError, Message


class PlainMessage:
    """A message with the methods of `confluent_kafka.Message`, for confluent-kafka before 2.13."""

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: list[tuple[str, bytes]] | None = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] = (0, 0),
        latency: float | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        """Create a message; the arguments are those of `Message` in confluent-kafka 2.13."""
        self._topic, self._partition, self._offset = topic, partition, offset
        self._key, self._value, self._headers, self._error = key, value, headers, error
        self._timestamp, self._latency, self._leader_epoch = timestamp, latency, leader_epoch

    def __len__(self) -> int:
        """Return the size of the value in bytes.

        As in confluent-kafka, a message without a value is falsy.
        """
        return len(self._value or b"")

    def topic(self) -> str | None:
        """Return the topic."""
        return self._topic

    def partition(self) -> int | None:
        """Return the partition's number."""
        return self._partition

    def offset(self) -> int | None:
        """Return the offset."""
        return self._offset

    def key(self) -> Any:
        """Return the key."""
        return self._key

    def value(self) -> Any:
        """Return the value."""
        return self._value

    def headers(self) -> list[tuple[str, bytes]] | None:
        """Return the headers."""
        return self._headers

    def error(self) -> KafkaError | None:
        """Return the error, or None if the message is no error."""
        return self._error

    def timestamp(self) -> tuple[int, int]:
        """Return the timestamp's type (`confluent_kafka.TIMESTAMP_…`) and milliseconds since the epoch."""
        return self._timestamp

    def latency(self) -> float | None:
        """Return the latency in seconds; None, as for all consumed messages."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """Return the leader epoch of the partition."""
        return self._leader_epoch

    def set_key(self, key: Any) -> None:
        """Replace the key."""
        self._key = key

    def set_value(self, value: Any) -> None:
        """Replace the value."""
        self._value = value

    def set_headers(self, headers: list[tuple[str, bytes]] | None) -> None:
        """Replace the headers."""
        self._headers = headers


new_message = Message if "__init__" in vars(Message) else cast("type[Message]", PlainMessage)
"""The class of the consumer's own messages: `Message`, or `PlainMessage` before confluent-kafka 2.13."""
