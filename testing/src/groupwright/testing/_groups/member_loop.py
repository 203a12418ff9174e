"""Poll loop of one member, which records events; used in threads and in processes."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.core import RebalanceListener
from groupwright.testing._groups import events
from groupwright.testing._groups.events import Partition, now
from groupwright.testing._groups.offsets import spans

POLL_SECONDS = 0.1
_PAUSED_SECONDS = 0.02

Callback = Callable[[list[TopicPartition]], None]
"""An application's callback; it may raise."""


@dataclass(frozen=True, slots=True)
class WithDetails:
    """A consumer, with details from its factory.

    Attributes:
        consumer: The consumer.
        details: Details for `Member.details`, such as the URL of the consumer's metrics.
    """

    consumer: Any
    details: Mapping[str, str]


ConsumerFactory = Callable[[dict[str, Any]], Any]
"""A consumer class, or a function that returns a consumer or a `WithDetails`, given a configuration."""


def _ignore(_: list[TopicPartition]) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Hooks:
    """Callbacks of a member's application, all called on the polling thread.

    Attributes:
        on_assign: Called by on_assign.
        on_revoke: Called by on_revoke.
        on_lost: Called by on_lost.
        on_messages: Called after each call of poll or consume with the consumer and the returned messages,
            without errors.
    """

    on_assign: Callback = _ignore
    on_revoke: Callback = _ignore
    on_lost: Callback = _ignore
    on_messages: Callable[[Any, list[Message]], None] = field(default=lambda _consumer, _messages: None)


class MemberLoop(RebalanceListener):
    """A consumer, its callbacks, and the loop that polls it. It records each event before the next poll.

    Attributes:
        name: The member's name, which is its ``client.id``.
        consumer: The consumer.
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
        """Create the consumer and subscribe; `run` polls.

        Args:
            make: Creates the consumer from its configuration.
            config: The configuration; its `on_commit` is called as well.
            topics: The topics to subscribe to.
            record: Called with events.
            batch: Maximum number of messages per call: 1 for `poll`, more for `consume`.
            hooks: Callbacks of the application.
        """
        self.name = str(config["client.id"])
        self.hooks = hooks or Hooks()
        self.errors: list[KafkaException] = []
        self.rebalances: list[Any] = []
        self.callbacks: list[tuple[str, list[Partition]]] = []
        self.owned: set[Partition] = set()
        self._on_commit: Callable[..., None] | None = config.get("on_commit")
        self._record = record
        self._batch = batch
        # Plain flags, since signal handlers set them: the interrupted code may hold an Event's lock.
        self._leaving = False
        self._paused = False
        self._subscriptions: SimpleQueue[Sequence[str]] = SimpleQueue()
        made = make({**config, "on_commit": self._committed})
        self.consumer = made.consumer if isinstance(made, WithDetails) else made
        self.details = dict(made.details) if isinstance(made, WithDetails) else {}
        with contextlib.suppress(AttributeError):  # a `confluent_kafka.Consumer` that is not of a subclass
            self.consumer.commit = self._recorded_commit(self.consumer.commit)
        self._listens = hasattr(self.consumer, "add_listener")
        if self._listens:
            self.consumer.add_listener(self)
        record(events.Started(now(), self.details))
        self._subscribe(topics)

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
        self._record(events.Left(now()))

    def _subscribe(self, topics: Sequence[str]) -> None:
        callbacks = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
        self.consumer.subscribe(list(topics), **callbacks)

    def _poll(self) -> None:
        polled = now()
        try:
            returned = self._messages()
            messages = [message for message in returned if message.error() is None]
            if messages:
                # First, because the next poll may commit these messages.
                self._record(events.Consumed(now(), polled, spans(map(_position, messages))))
            for message in returned:
                self._check(message)
            self.hooks.on_messages(self.consumer, messages)
        except KafkaException as error:
            self._failed(error)

    def _messages(self) -> list[Message]:
        if self._batch > 1:
            messages: list[Message] = self.consumer.consume(self._batch, POLL_SECONDS)
            return messages
        message = self.consumer.poll(POLL_SECONDS)
        return [] if message is None else [message]

    def _check(self, message: Message) -> None:
        """Record an error of the group. Errors of a topic, and of a long pause between polls, are ignored."""
        error = message.error()
        max_poll_exceeded = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 - librdkafka's public code
        if error is not None and message.topic() is None and error.code() != max_poll_exceeded:
            self._failed(KafkaException(error))

    def _failed(self, error: KafkaException) -> None:
        self.errors.append(error)
        cause = error.args[0]
        self._record(events.Failed(now(), cause.str() if isinstance(cause, KafkaError) else str(error)))

    # --- The consumer's callbacks

    def _assigned(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        keys = _keys(partitions)
        self._record(events.Assigned(now(), keys))
        self.callbacks.append(("assign", sorted(keys)))
        if not self._listens:
            self.owned = self.owned.union(keys)
        self.hooks.on_assign(partitions)

    def _revoked(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._end_ownership(partitions, lost=False)
        self.hooks.on_revoke(partitions)

    def _lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._end_ownership(partitions, lost=True)
        self.hooks.on_lost(partitions)

    def _end_ownership(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        keys = _keys(partitions)
        self._record(events.Revoked(now(), keys, lost))
        self.callbacks.append(("lost" if lost else "revoke", sorted(keys)))
        self.owned = self.owned.difference(keys)

    def _recorded_commit(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `commit` that records synchronous commits, for which `on_commit` is not called."""

        def recorded(*args: Any, **kwargs: Any) -> Any:
            partitions = commit(*args, **kwargs)
            if partitions is not None:  # it is None for asynchronous commits
                self._record_commit(partitions)
            return partitions

        return recorded

    def _record_commit(self, partitions: list[TopicPartition]) -> None:
        offsets = {(p.topic, p.partition): p.offset for p in partitions if not p.error and p.offset >= 0}
        self._record(events.Committed(now(), offsets))

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None:
            self._record_commit(partitions)
        if self._on_commit is not None:
            self._on_commit(error, partitions)

    def rebalanced(self, rebalance: Any) -> None:
        """Record the end of a rebalance (`RebalanceListener`); only Groupwright's consumer calls this."""
        self.rebalances.append(rebalance)
        owned = tuple(
            (topic, int(number)) for topic, numbers in rebalance.partitions.items() for number in numbers
        )
        outcome = str(rebalance.outcome)
        self._record(events.Rebalanced(now(), rebalance.generation, rebalance.duration, outcome, owned))
        self.owned = set(owned)  # last: a thread that waits for new partitions then finds the rest recorded


def _keys(partitions: list[TopicPartition]) -> tuple[Partition, ...]:
    return tuple((each.topic, each.partition) for each in partitions)


def _position(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise TypeError("a message without an error has a topic, a partition and an offset")
    return topic, partition, offset
