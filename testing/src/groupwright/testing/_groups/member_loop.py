"""Poll loop of one member, which records events; used in threads and in processes."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from queue import SimpleQueue
from types import FrameType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.core import RebalanceListener, TopicPartitionKey
from groupwright.testing._groups import events
from groupwright.testing._groups.events import now
from groupwright.testing._groups.offsets import spans, spans_with_values

POLL_SECONDS = 0.1
_PAUSED_SECONDS = 0.02

Callback = Callable[[list[TopicPartition]], None]
"""An application's callback; it may raise."""


def _ignore(*_: object) -> None:
    """Do nothing."""


def _refuse(*_: object) -> bool:
    """Return False."""
    return False


@dataclass(slots=True)
class Hooks:
    """Callbacks of a member's application.

    They are called on the polling thread, which is the main thread of a process. If another thread closes the
    consumer, on_revoke and on_lost are called on that one.

    Attributes:
        on_start: Called once with the member's loop, before the consumer subscribes, by the thread that
            starts the member. In a process, it may install signal handlers.
        on_assign: Called by on_assign.
        on_revoke: Called by on_revoke.
        on_lost: Called by on_lost.
        process: Called with the consumer and the messages, without errors, that a call of poll or consume
            has returned, before they are recorded as consumed. Commits belong into `on_messages`.
        on_messages: Called after each call of poll or consume with the consumer and the returned messages,
            without errors.
        on_exception: Called with an exception of poll, consume, `process` or `on_messages`, and the time at
            which poll or consume was called. It returns whether the member continues. Otherwise, a
            `KafkaException` is recorded as `Failed`, and any other exception ends the member.
        value: Returns a message's text for `Consumed.values`; None if none is to be recorded.
    """

    on_start: Callable[["MemberLoop"], None] = _ignore
    on_assign: Callback = _ignore
    on_revoke: Callback = _ignore
    on_lost: Callback = _ignore
    process: Callable[[Any, list[Message]], None] = _ignore
    on_messages: Callable[[Any, list[Message]], None] = _ignore
    on_exception: Callable[[Exception, float], bool] = _refuse
    value: Callable[[Message], str] | None = None


@dataclass(frozen=True, slots=True)
class WithDetails:
    """A consumer, with details and hooks from its factory.

    Attributes:
        consumer: The consumer.
        details: Details for `Member.details`, such as the URL of the consumer's metrics.
        hooks: Callbacks of its application, also in a process; None for those of `start_member`.
    """

    consumer: Any
    details: Mapping[str, str]
    hooks: Hooks | None = None


ConsumerFactory = Callable[[dict[str, Any]], Any]
"""A consumer class, or a function that returns a consumer or a `WithDetails`, given a configuration."""


class MemberLoop(RebalanceListener):
    """A consumer, its callbacks, and the loop that polls it. It records each event before the next poll.

    Attributes:
        name: The member's name, which is its ``client.id``.
        consumer: The consumer.
        record: Records events, also an application's own; callable from any thread.
        details: Details that the factory reported (`WithDetails`).
        errors: Exceptions of polls, and errors of the group that they returned.
        rebalances: The rebalances that the consumer reported; empty if the consumer takes no listener.
        callbacks: Its rebalance callbacks: ``assign``, ``revoke`` or ``lost``, and the partitions, sorted.
        owned: The partitions that it owns. With a listener, new ones count once the rebalance has ended.
        hooks: Callbacks of the application.
    """

    def __init__(
        self,
        make: ConsumerFactory,
        config: Mapping[str, Any],
        topics: Sequence[str],
        record: Callable[..., None],
        *,
        batch: int = 1,
        hooks: Hooks | None = None,
    ) -> None:
        """Create the consumer; `start` subscribes, and `run` polls.

        Args:
            make: Creates the consumer from its configuration.
            config: The configuration; its `on_commit` is called as well.
            topics: The topics to subscribe to.
            record: Called with events.
            batch: Maximum number of messages per call: 1 for `poll`, more for `consume`.
            hooks: Callbacks of the application.
        """
        self.name = str(config["client.id"])
        self.record = record
        self.errors: list[KafkaException] = []
        self.rebalances: list[Any] = []
        self.callbacks: list[tuple[str, list[TopicPartitionKey]]] = []
        self.owned: set[TopicPartitionKey] = set()
        self._on_commit: Callable[..., None] | None = config.get("on_commit")
        self._topics = topics
        self._batch = batch
        # Plain flags, since signal handlers set them: the interrupted code may hold an Event's lock.
        self._leaving = False
        self._paused = False
        self._subscriptions: SimpleQueue[Sequence[str]] = SimpleQueue()
        made = make({**config, "on_commit": self._committed})
        self.consumer = made.consumer if isinstance(made, WithDetails) else made
        self.details = dict(made.details) if isinstance(made, WithDetails) else {}
        self.hooks = (made.hooks if isinstance(made, WithDetails) else None) or hooks or Hooks()
        with contextlib.suppress(AttributeError):  # a `confluent_kafka.Consumer` that is not of a subclass
            self.consumer.commit = self._recorded_commit(self.consumer.commit)
        self._listens = hasattr(self.consumer, "add_listener")
        if self._listens:
            self.consumer.add_listener(self)

    @property
    def is_leaving(self) -> bool:
        """True once `leave` was called."""
        return self._leaving

    def start(self) -> None:
        """Call `Hooks.on_start`, record the start, and subscribe."""
        self.hooks.on_start(self)
        self.record(events.Started(now(), self.details))
        self._subscribe(self._topics)

    def leave(self) -> None:
        """Make `run` close the consumer and return; callable from any thread or signal handler."""
        self._leaving = True

    def pause_polling(self) -> None:
        """Stop polling until `resume_polling`; heartbeats continue for `max.poll.interval.ms`."""
        self._paused = True

    def resume_polling(self) -> None:
        """Resume polling."""
        self._paused = False

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to other topics, before the next poll."""
        self._subscriptions.put(topics)

    def run(self) -> None:
        """Poll until `leave` is called, then close the consumer."""
        pause = threading.Event()
        while not self._leaving:
            if self._paused:
                pause.wait(_PAUSED_SECONDS)
                continue
            if not self._subscriptions.empty():
                self._subscribe(self._subscriptions.get())
            self._poll()
        self.consumer.close()
        self.record(events.Left(now()))

    @staticmethod
    def is_polling(frame: FrameType | None) -> bool:
        """Return whether a frame is inside poll or consume, and not inside a callback of the consumer.

        If so, a signal handler that is called with it may raise: `Hooks.on_exception` gets the exception.
        """
        poll = MemberLoop._messages.__code__
        if frame is None or frame.f_code is poll:
            return False  # the messages may have been returned
        while frame is not None and frame.f_code.co_filename != poll.co_filename:
            frame = frame.f_back
        return frame is not None and frame.f_code is poll

    def _subscribe(self, topics: Sequence[str]) -> None:
        callbacks = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
        self.consumer.subscribe(list(topics), **callbacks)

    def _poll(self) -> None:
        polled = now()
        try:
            returned = self._messages()
            messages = [message for message in returned if message.error() is None]
            if messages:
                self.hooks.process(self.consumer, messages)
            if returned:
                # Before the next poll, which may commit these messages.
                self.record(*self._events_of(returned, polled))
            self.hooks.on_messages(self.consumer, messages)
        except Exception as error:
            if self.hooks.on_exception(error, polled):
                return
            if not isinstance(error, KafkaException):
                raise
            self.record(self._failed(error))

    def _messages(self) -> list[Message]:
        if self._batch > 1:
            messages: list[Message] = self.consumer.consume(self._batch, POLL_SECONDS)
            return messages
        message = self.consumer.poll(POLL_SECONDS)
        return [] if message is None else [message]

    def _events_of(self, returned: Iterable[Message], polled: float) -> Iterator[events.Event]:
        """Yield an event for each run of messages, and for each error, in the order of their return."""
        for is_error, run in groupby(returned, lambda message: message.error() is not None):
            if is_error:
                for message in run:
                    if (error := message.error()) is not None:
                        yield self._event_of_error(error, message, polled)
            else:
                yield self._consumed(run, polled)

    def _consumed(self, messages: Iterable[Message], polled: float) -> events.Consumed:
        if (value := self.hooks.value) is None:
            return events.Consumed(now(), polled, spans(map(_position, messages)))
        joined, values = spans_with_values((_position(each), value(each)) for each in messages)
        return events.Consumed(now(), polled, joined, values)

    def _event_of_error(self, error: KafkaError, message: Message, polled: float) -> events.Event:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public code
            topic, partition, offset = _position(message)
            return events.EndReached(now(), polled, (topic, partition), offset)
        max_poll_exceeded = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 - librdkafka's public code
        if message.topic() is None and error.code() != max_poll_exceeded:
            return self._failed(KafkaException(error))
        return events.ErrorReturned(now(), error.name(), message.topic(), error.str())

    def _failed(self, error: KafkaException) -> events.Failed:
        self.errors.append(error)
        cause = error.args[0]
        return events.Failed(now(), cause.str() if isinstance(cause, KafkaError) else str(error))

    # --- The consumer's callbacks

    def _assigned(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        keys = _keys(partitions)
        self.record(events.Assigned(now(), keys))
        self.callbacks.append(("assign", sorted(keys)))
        if not self._listens:
            self.owned = self.owned.union(keys)
        self.hooks.on_assign(partitions)

    def _revoked(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._end_ownership(partitions, self.hooks.on_revoke, lost=False)

    def _lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._end_ownership(partitions, self.hooks.on_lost, lost=True)

    def _end_ownership(self, partitions: list[TopicPartition], hook: Callback, *, lost: bool) -> None:
        began, keys = now(), _keys(partitions)
        self.callbacks.append(("lost" if lost else "revoke", sorted(keys)))
        self.owned = self.owned.difference(keys)
        try:
            hook(partitions)
        finally:
            self.record(events.Revoked(now(), keys, lost, began))

    def _recorded_commit(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `commit` that records synchronous commits, for which `on_commit` is not called."""

        def recorded(*args: Any, **kwargs: Any) -> Any:
            began = now()
            try:
                partitions = commit(*args, **kwargs)
            except KafkaException as error:
                if offsets := _offsets_to_commit(*args, **kwargs):
                    self.record(events.Committed(now(), offsets, began, str(error)))
                raise
            if partitions is not None:  # it is None for asynchronous commits
                self._record_commit(partitions, began)
            return partitions

        return recorded

    def _record_commit(
        self, partitions: list[TopicPartition], began: float | None = None, error: KafkaError | None = None
    ) -> None:
        """Record a commit's result; each partition may have an error of its own."""
        results: dict[str | None, dict[TopicPartitionKey, int]] = {}
        for each in partitions:
            failure = each.error or error
            if each.offset >= 0:
                offsets = results.setdefault(None if failure is None else str(failure), {})
                offsets[each.topic, each.partition] = each.offset
        time = now()
        self.record(*(events.Committed(time, offsets, began, text) for text, offsets in results.items()))

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._record_commit(partitions, error=error)
        if self._on_commit is not None:
            self._on_commit(error, partitions)

    def rebalanced(self, rebalance: Any) -> None:
        """Record the end of a rebalance (`RebalanceListener`); only Groupwright's consumer calls this."""
        self.rebalances.append(rebalance)
        owned = tuple(
            (topic, int(number)) for topic, numbers in rebalance.partitions.items() for number in numbers
        )
        outcome = str(rebalance.outcome)
        self.record(events.Rebalanced(now(), rebalance.generation, rebalance.duration, outcome, owned))
        self.owned = set(owned)  # last: a thread that waits for new partitions then finds the rest recorded


def _keys(partitions: list[TopicPartition]) -> tuple[TopicPartitionKey, ...]:
    return tuple((each.topic, each.partition) for each in partitions)


def _offsets_to_commit(
    message: Message | None = None, offsets: Iterable[TopicPartition] | None = None, *_: object, **__: object
) -> dict[TopicPartitionKey, int]:
    """Return the offsets that the arguments of `commit` name."""
    if message is not None:
        topic, partition, offset = _position(message)
        return {(topic, partition): offset + 1}
    return {(each.topic, each.partition): each.offset for each in offsets or ()}


def _position(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise TypeError("a message that was consumed, or a partition's end, has no topic or no offset")
    return topic, partition, offset
