"""confluent-kafka's `DeserializingConsumer`, over this consumer's membership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import confluent_kafka
from confluent_kafka.error import ConsumeError

from groupwright.consumer.consumer import Consumer

K = TypeVar("K")
V = TypeVar("V")

if TYPE_CHECKING:

    class _Deserializing(confluent_kafka.DeserializingConsumer[K, V]): ...

elif getattr(confluent_kafka.DeserializingConsumer, "__parameters__", ()):
    _Deserializing = confluent_kafka.DeserializingConsumer
else:  # before confluent-kafka 2.16, and where ddtrace has replaced it, the class takes no type arguments

    class _Deserializing(confluent_kafka.DeserializingConsumer, Generic[K, V]):
        """The base class, with type arguments."""


class DeserializingConsumer(Consumer, _Deserializing[K, V]):
    """A `confluent_kafka.DeserializingConsumer` with assignors of your choice.

    Its type arguments are those of keys and values: `DeserializingConsumer[str, Order]`.

    The deserializers (``key.deserializer``, ``value.deserializer``, and their builders) are
    confluent-kafka's, and so is the code that calls them. Interceptors receive deserialized messages, as in
    Java.

    Raises (from `poll`):
        ConsumeError: `Consumer.poll` returned a message that is an error.
        KeyDeserializationError, ValueDeserializationError: A deserializer raised; `kafka_message` is the
            message.
    """

    _keys_of_bases = (
        "key.deserializer",
        "key.deserializer.builder",
        "value.deserializer",
        "value.deserializer.builder",
    )

    def poll(self, timeout: float = -1) -> Any:
        """Return the next message, deserialized, or None after `timeout` seconds."""
        message = super().poll(timeout)
        # `super().poll` has raised librdkafka's errors; it returns those of the membership as messages.
        error = None if message is None else message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> NoReturn:
        """Refuse, as confluent-kafka does: one bad message would lose the whole batch.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("a DeserializingConsumer has no consume(); call poll()")
