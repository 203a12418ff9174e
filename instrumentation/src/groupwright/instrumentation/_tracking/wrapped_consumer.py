"""A plain consumer that tells of its rebalances: confluent-kafka's own, with its calls and callbacks watched.

It goes right above confluent-kafka's C class, below whatever is derived from that: in the order in which Python looks
methods up, `DeserializingConsumer` and an application's own subclasses come first, and their ``super()`` leads here.
"""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from groupwright.instrumentation._librdkafka.callbacks import after
from groupwright.instrumentation._tracking.callback_tracker import Observed, Observer

Native = confluent_kafka.Consumer
C = TypeVar("C")

_native_poll = Native.poll
_ASYNCHRONOUS = 2
"""The place of `asynchronous` among the arguments of commit."""


class ObservedConsumer(Observed, confluent_kafka.Consumer):
    """A `confluent_kafka.Consumer` and an `ObservableConsumer`. Made by `observe`."""

    def poll(self, timeout: float = -1) -> Message | None:
        """Poll."""
        observer = self._observer
        began = observer.poll_begins()
        try:
            message = _native_poll(self, timeout)
        finally:
            observer.poll_ends(began)
        if message is not None:
            error = message.error()
            if error is not None:
                observer.error_told(error)
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Consume."""
        observer = self._observer
        began = observer.poll_begins()
        try:
            messages = super().consume(num_messages, timeout)
        finally:
            observer.poll_ends(began)
        for message in messages:
            error = message.error()
            if error is not None:
                observer.error_told(error)
        return messages

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callable[..., Any] | None = None,
        on_revoke: Callable[..., Any] | None = None,
        on_lost: Callable[..., Any] | None = None,
    ) -> None:
        """Subscribe, with the application's callbacks inside ours."""
        super().subscribe(
            topics,
            on_assign=self._watched("assign", on_assign),
            on_revoke=self._watched("revoke", on_revoke),
            # As without us: where there is no on_lost, on_revoke hears of lost partitions too.
            on_lost=self._watched("lost", on_lost if on_lost is not None else on_revoke),
        )
        self._observer.subscribed(topics)

    def unsubscribe(self) -> None:
        """Unsubscribe."""
        self._observer.leaving()
        super().unsubscribe()

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commit; of an asynchronous one ``on_commit`` tells."""
        asynchronous = args[_ASYNCHRONOUS] if len(args) > _ASYNCHRONOUS else kwargs.get("asynchronous", True)
        if asynchronous:
            return super().commit(*args, **kwargs)
        began = time.monotonic()
        try:
            result = super().commit(*args, **kwargs)
        except KafkaException as error:
            self._observer.commit_ended(time.monotonic() - began, commit_error(error))
            raise
        self._observer.commit_ended(time.monotonic() - began, None)
        return result

    def close(self) -> None:
        """Close."""
        self._observer.closing()
        super().close()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; the C method of this name would call the C close."""
        self.close()

    def _watched(self, name: str, callback: Callable[..., Any] | None) -> Callable[..., None]:
        observer = self._observer

        def call(consumer: Any, partitions: list[Any]) -> None:
            given = list(partitions)  # the application may change the list
            metadata = group_metadata(consumer)
            began = time.monotonic()
            try:
                if callback is not None:
                    callback(consumer, partitions)
            finally:
                seconds = 0.0 if callback is None else time.monotonic() - began
                observer.rebalance_callback(name, given, began, seconds, metadata)

        return call


def group_metadata(consumer: confluent_kafka.Consumer) -> bytes | None:
    """Return the native metadata of a consumer's group, or None if it cannot be had."""
    try:
        return cast("bytes", Native.consumer_group_metadata(consumer))
    except (KafkaException, RuntimeError):
        return None


def commit_error(error: KafkaException) -> str:
    """Return the name of the error that a commit raised."""
    cause = error.args[0] if error.args else None
    return str(cause.name()) if isinstance(cause, KafkaError) else type(error).__name__


def observe(
    kind: Callable[..., C], watching: type, observer: Observer, config: Mapping[str, Any], **arguments: Any
) -> C:
    """Make a client of a kind that is watched.

    Args:
        kind: the client's class.
        watching: what watches it: `ObservedConsumer`, or its counterpart.
        observer: what it tells.
        config: its configuration, whose callbacks are wrapped already.
        arguments: what else its constructor takes.
    """
    base = cast("type", kind)
    bases = (watching,) if issubclass(watching, base) else (base, watching)
    # It is what it was to everyone who asks for its name, as in a log.
    watched = type(base.__name__, bases, {"__module__": base.__module__, "__doc__": base.__doc__})
    client: Any = watched.__new__(watched)  # type: ignore[call-overload] # mypy takes it for a metaclass
    client._observer = observer  # noqa: SLF001 - it must be there before the constructor, which may call methods
    on_commit = after(
        observer.committed, config.get("on_commit"), asynchronous=watching is not ObservedConsumer
    )
    client.__init__({**config, "on_commit": on_commit}, **arguments)
    return cast("C", client)
