"""Messages that the consumer makes itself, such as errors that `poll` returns.

confluent-kafka's `Message` can be instantiated since 2.13. Before that, a class with the same methods takes
its place.
"""

from typing import Any, cast

from confluent_kafka import KafkaError, Message


class PlainMessage:
    """A message with the methods of `confluent_kafka.Message`, in Python."""

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
        """Keep the fields; the arguments are those of confluent-kafka 2.13."""
        self._topic, self._partition, self._offset = topic, partition, offset
        self._key, self._value, self._headers, self._error = key, value, headers, error
        self._timestamp, self._latency, self._leader_epoch = timestamp, latency, leader_epoch

    def __len__(self) -> int:
        """Return the value's size in bytes; a message without a value is falsy, as in confluent-kafka."""
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
        """Return the error, None of a message that is none."""
        return self._error

    def timestamp(self) -> tuple[int, int]:
        """Return the timestamp's type and its milliseconds."""
        return self._timestamp

    def latency(self) -> float | None:
        """Return a produced message's latency in seconds."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """Return the leader's epoch."""
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
"""Return a message with these fields, named as in confluent-kafka's `Message`."""
