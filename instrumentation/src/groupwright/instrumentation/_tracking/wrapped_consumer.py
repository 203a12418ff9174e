"""A plain consumer that reports its rebalances: confluent-kafka's own, with its calls and callbacks wrapped.

In the method resolution order, the wrapper comes directly before confluent-kafka's C class, and after every
class derived from it: `DeserializingConsumer` and an application's subclasses come first, and their
``super()`` calls reach the wrapper.
"""

from __future__ import annotations

import functools
import time
import types
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition, cimpl

from groupwright.instrumentation._librdkafka.callbacks import chain, token_errors
from groupwright.instrumentation._tracking.callback_tracker import CallbackTracker, TrackedConsumer

Native = cimpl.Consumer
"""confluent-kafka's C class; tracers replace `confluent_kafka.Consumer` by a subclass."""
C = TypeVar("C")

_native_poll = Native.poll
_now = time.monotonic
ASYNCHRONOUS_POSITION = 2
"""Position of `asynchronous` among the arguments of commit."""


class WrappedConsumer(TrackedConsumer, cimpl.Consumer):
    """A `confluent_kafka.Consumer` that is an `ObservableConsumer`. Made by `create_wrapped`."""

    def poll(self, timeout: float = -1) -> Message | None:
        """Poll."""
        # Runs for every message: on_poll_start and on_poll_end are written out, since two calls take as long
        # as all else here.
        tracker = self._groupwright_tracker
        tracker.in_poll_since = began = _now()
        try:
            message = _native_poll(self, timeout)
        finally:
            tracker.last_poll = now = _now()
            tracker.in_poll_since = None
            tracker.poll_seconds += now - began
            if now >= tracker.settles_at:
                tracker.settle()
        if message is not None and message.error() is not None:
            tracker.on_error(message.error())
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Consume."""
        tracker = self._groupwright_tracker
        began = tracker.on_poll_start()
        try:
            messages = super().consume(num_messages, timeout)
        finally:
            tracker.on_poll_end(began)
        tracker.on_messages(messages)
        return messages

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callable[..., Any] | None = None,
        on_revoke: Callable[..., Any] | None = None,
        on_lost: Callable[..., Any] | None = None,
    ) -> None:
        """Subscribe, with the application's callbacks wrapped in tracking ones."""
        tracker = self._groupwright_tracker
        super().subscribe(
            topics,
            on_assign=tracking_callback(tracker, "assign", on_assign),
            on_revoke=tracking_callback(tracker, "revoke", on_revoke),
            # As in confluent-kafka: without an on_lost, on_revoke is called for lost partitions too.
            on_lost=tracking_callback(tracker, "lost", on_lost if on_lost is not None else on_revoke),
        )
        tracker.on_subscribe(topics)

    def unsubscribe(self) -> None:
        """Unsubscribe."""
        self._groupwright_tracker.on_unsubscribe()
        super().unsubscribe()

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign."""
        super().assign(partitions)
        self._groupwright_tracker.on_assign(partitions, incremental=False)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Assign further partitions."""
        super().incremental_assign(partitions)
        self._groupwright_tracker.on_assign(partitions, incremental=True)

    def unassign(self) -> None:
        """Unassign all partitions."""
        super().unassign()
        self._groupwright_tracker.on_unassign(None)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Unassign these partitions."""
        super().incremental_unassign(partitions)
        self._groupwright_tracker.on_unassign(partitions)

    def seek(self, partition: TopicPartition) -> None:
        """Continue at another offset."""
        super().seek(partition)
        self._groupwright_tracker.on_seek(partition)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Pause partitions."""
        super().pause(partitions)
        self._groupwright_tracker.on_pause(partitions, paused=True)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Resume partitions."""
        super().resume(partitions)
        self._groupwright_tracker.on_pause(partitions, paused=False)

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commit; the end of an asynchronous commit is recorded by ``on_commit``."""
        asynchronous = (
            args[ASYNCHRONOUS_POSITION]
            if len(args) > ASYNCHRONOUS_POSITION
            else kwargs.get("asynchronous", True)
        )
        if asynchronous:
            return super().commit(*args, **kwargs)
        began = time.monotonic()
        try:
            result = super().commit(*args, **kwargs)
        except KafkaException as error:
            self._groupwright_tracker.on_commit_end(time.monotonic() - began, commit_error(error))
            raise
        self._groupwright_tracker.on_commit_end(time.monotonic() - began, None)
        return result

    def consumer_group_metadata(self) -> Any:
        """Return the metadata for a producer, whose commits this consumer does not learn of."""
        self._groupwright_tracker.commits_by_producer = True
        return super().consumer_group_metadata()

    def close(self) -> None:
        """Close."""
        self._groupwright_tracker.on_close()
        super().close()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close by this class's `close`; the C method would call the C class's."""
        self.close()


def tracking_callback(
    tracker: CallbackTracker, name: str, callback: Callable[..., Any] | None
) -> Callable[..., None]:
    """Return a rebalance callback that calls the application's, if there is one, and records it.

    Args:
        tracker: Tracks the consumer.
        name: One of `labels.CALLBACKS`.
        callback: The application's callback.
    """

    def call(consumer: Any, partitions: list[Any]) -> None:
        called_with = list(partitions)  # the application may change the list
        metadata = group_metadata(consumer)
        began = time.monotonic()
        try:
            if callback is not None:
                callback(consumer, partitions)
        finally:
            seconds = 0.0 if callback is None else time.monotonic() - began
            tracker.on_rebalance_callback(name, called_with, began, seconds, metadata)

    return call


def group_metadata(consumer: cimpl.Consumer) -> bytes | None:
    """Return librdkafka's metadata of a consumer's group, or None if librdkafka has none."""
    try:
        return cast("bytes", Native.consumer_group_metadata(consumer))
    except (KafkaException, RuntimeError):
        return None


def commit_error(error: KafkaException) -> str:
    """Return the name of the error that a commit raised."""
    cause = error.args[0] if error.args else None
    return str(cause.name()) if isinstance(cause, KafkaError) else type(error).__name__


def create_wrapped(
    client_class: Callable[..., C],
    wrapper: type,
    tracker: CallbackTracker,
    config: Mapping[str, Any],
    **arguments: Any,
) -> C:
    """Create a tracked client of a class.

    Args:
        client_class: The client's class.
        wrapper: `WrappedConsumer`, or its asyncio counterpart.
        tracker: Tracks the client.
        config: The client's configuration, with librdkafka's callbacks already wrapped.
        arguments: Further arguments of the client's constructor.
    """
    wrapped = wrapped_class(cast("type", client_class), wrapper)
    client: Any = wrapped.__new__(wrapped)
    client._groupwright_tracker = tracker  # noqa: SLF001 - set before the constructor, which may call methods
    on_commit = chain(tracker.on_commit, config.get("on_commit"), asynchronous=wrapper is not WrappedConsumer)
    with token_errors(config):
        client.__init__({**config, "on_commit": on_commit}, **arguments)
    return cast("C", client)


@functools.lru_cache(maxsize=128)
def wrapped_class(client_class: type, wrapper: type) -> Any:
    """Return the tracked subclass of a client class, with that class's name and docstring."""
    bases = (wrapper,) if issubclass(wrapper, client_class) else (client_class, wrapper)

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(
            __module__=client_class.__module__,
            __qualname__=client_class.__qualname__,
            __doc__=client_class.__doc__,
        )

    return types.new_class(client_class.__name__, bases, exec_body=fill)
