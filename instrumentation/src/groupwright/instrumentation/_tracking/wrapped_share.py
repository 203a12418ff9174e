"""A share consumer whose calls and acknowledgements are counted. Needs confluent-kafka 2.15 or later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from confluent_kafka import AcknowledgeType, Message, Messages, ShareConsumer

from groupwright.instrumentation._librdkafka.callbacks import chain, token_errors
from groupwright.instrumentation._tracking.share_metrics import ShareTracker, record_of
from groupwright.instrumentation._tracking.wrapped_consumer import wrapped_class

C = TypeVar("C")


class WrappedShareConsumer(ShareConsumer):
    """A `confluent_kafka.ShareConsumer` that counts. Made by `create_wrapped_share`."""

    _groupwright_tracker: ShareTracker
    _groupwright_callback: Callable[..., Any] | None = None

    def poll(self, timeout: float = -1) -> Messages:
        """Poll."""
        tracker = self._groupwright_tracker
        tracker.on_poll_start()
        messages: Messages | tuple[()] = ()
        try:
            messages = super().poll(timeout)
        finally:
            tracker.on_poll_end(messages)
        return messages

    def acknowledge(self, message: Message, ack_type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledge a message."""
        super().acknowledge(message, ack_type)
        self._groupwright_tracker.on_acknowledge(record_of(message), _name_of(ack_type))

    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge the message at an offset."""
        super().acknowledge_offset(topic, partition, offset, ack_type)
        self._groupwright_tracker.on_acknowledge((topic, partition, offset), _name_of(ack_type))

    def set_acknowledgement_commit_callback(self, callback: Callable[..., Any] | None) -> None:
        """Set the application's callback, which is called after the counting."""
        if callback is not None and not callable(callback):
            super().set_acknowledgement_commit_callback(callback)  # which says what is wrong
        super().set_acknowledgement_commit_callback(
            chain(self._groupwright_tracker.on_answer, callback, asynchronous=False)
        )

    def close(self) -> None:
        """Close."""
        super().close()
        self._groupwright_tracker.is_closed = True

    def __exit__(self, *_: object) -> None:
        """Close by this class's `close`; the C method would call the C class's."""
        self.close()


def create_wrapped_share(
    client_class: Callable[..., C], tracker: ShareTracker, config: Mapping[str, Any], **arguments: Any
) -> C:
    """Create a share consumer of a class, whose `tracker` counts what it does."""
    wrapped = wrapped_class(cast("type", client_class), WrappedShareConsumer)
    client: Any = wrapped.__new__(wrapped)
    client._groupwright_tracker = tracker  # noqa: SLF001 - set before the constructor, which may call methods
    error_cb = chain(tracker.on_error, config.get("error_cb"), asynchronous=False)
    with token_errors(config):
        client.__init__({**config, "error_cb": error_cb}, **arguments)
    client.set_acknowledgement_commit_callback(None)
    return cast("C", client)


def _name_of(ack_type: AcknowledgeType | int) -> str:
    return AcknowledgeType(ack_type).name.lower()
