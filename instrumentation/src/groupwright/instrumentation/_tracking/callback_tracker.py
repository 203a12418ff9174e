"""Rebalances and commits of a plain consumer, tracked through its calls and callbacks.

The tracker knows no client class: `wrapped_consumer` and `wrapped_aio` report their clients' calls to it.
Its own failures never reach the application; they go to `LibrdkafkaCallbacks.on_failure`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message

from groupwright.core import (
    Kind,
    MembershipSnapshot,
    Rebalance,
    RebalanceListener,
    TopicPartitionKey,
    by_topic,
)
from groupwright.core.configuration import Configuration, public_settings
from groupwright.core.group_metadata import GroupMetadata
from groupwright.core.locking import locked
from groupwright.core.membership_errors import ErrorKind, classify_error
from groupwright.core.rebalance_tracker import CONSUMER_SETTLE, CallbackTime, RebalanceTracker
from groupwright.core.start_offsets import StartOffsets
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.membership import MembershipStatistics
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics


class CallbackTracker:
    """Tracks one plain consumer; an `ObservableConsumer` itself. Safe to use from any thread."""

    def __init__(self, config: Mapping[str, Any], callbacks: LibrdkafkaCallbacks[ConsumerStatistics]) -> None:
        """Create the tracker, before the first call of the consumer.

        Args:
            config: The consumer's configuration.
            callbacks: librdkafka's callbacks of the consumer.
        """
        configuration = Configuration(config)
        self.settings = public_settings(config)
        self.group_id = configuration.text("group.id")
        self.client_id = configuration.text("client.id")
        self.callbacks = callbacks
        self.start_observers: list[Callable[[Iterable[TopicPartitionKey]], None]] = []
        """Called with the partitions that the application starts at their committed or a logical offset."""
        self._listeners: list[RebalanceListener] = []
        self._max_poll_interval = configuration.seconds("max.poll.interval.ms")
        kind = configuration.kind
        settle = (
            CONSUMER_SETTLE if kind is Kind.CONSUMER else 2 * configuration.seconds("heartbeat.interval.ms")
        )
        self._rebalances = RebalanceTracker(
            self.group_id, self.client_id, kind, configuration.protocol, settle
        )
        # Public, since `WrappedConsumer.poll` writes them: it runs for every message, and this saves the
        # calls of `on_poll_start` and `on_poll_end`.
        self.last_poll = time.monotonic()
        self.in_poll_since: float | None = None
        self.poll_seconds = 0.0
        self.settles_at = math.inf
        self.commits_by_producer = False
        """See `MembershipSnapshot.commits_by_producer`."""
        self._max_poll_exceeded = 0
        self._fenced = 0
        self._membership_statistics = MembershipStatistics()
        self._subscribed = False
        self._closed = False
        self._starts = StartOffsets()
        self._paused: frozenset[TopicPartitionKey] = frozenset()
        # Reentrant: a listener may call back into the tracker.
        self._lock = threading.RLock()
        callbacks.on_error = self.on_error

    # --- Calls of the application -------------------------------------------------------------------

    def on_poll_start(self) -> float:
        """Record that the application entered poll or consume; return the time for `on_poll_end`."""
        self.in_poll_since = began = time.monotonic()
        return began

    def on_poll_end(self, began: float) -> None:
        """Record that poll or consume returned."""
        self.last_poll = now = time.monotonic()
        self.in_poll_since = None
        self.poll_seconds += now - began
        if now >= self.settles_at:
            self.settle()

    def on_subscribe(self, topics: Iterable[str]) -> None:
        """Record a subscription."""
        self._subscribed = True
        self._guarded(
            "subscribe", lambda: self._report(self._rebalances.subscribed(topics, time.monotonic()))
        )

    def on_unsubscribe(self) -> None:
        """Record the end of the subscription."""
        self._subscribed = False
        self._guarded("unsubscribe", lambda: self._report(self._rebalances.leaving()))

    def on_close(self) -> None:
        """Record that the consumer closes."""
        self._closed = True
        self.on_unsubscribe()

    def on_assign(self, partitions: Iterable[Any], *, incremental: bool) -> None:
        """Record that the application assigned partitions, and at which offsets."""
        partitions = list(partitions)
        (self._starts.set if incremental else self._starts.replace)(partitions)
        self._notify_of_starts(partitions)

    def on_unassign(self, partitions: Iterable[Any] | None) -> None:
        """Record that the application unassigned these partitions, or all."""
        if partitions is None:
            self._starts.replace([])
        else:
            self._starts.remove((each.topic, each.partition) for each in partitions)

    def on_seek(self, partition: Any) -> None:
        """Record that the application continues at another offset."""
        self._starts.set([partition])
        self._notify_of_starts([partition])

    def on_pause(self, partitions: Iterable[Any], *, paused: bool) -> None:
        """Record that the application paused or resumed partitions."""
        keys = frozenset((each.topic, each.partition) for each in partitions)
        self._paused = self._paused | keys if paused else self._paused - keys

    def on_commit_end(self, seconds: float | None, error: str | None) -> None:
        """Record the end of a commit; `seconds` is its duration, None if unknown."""
        self._guarded("commit", lambda: self._notify(lambda listener: listener.commit_ended(seconds, error)))

    # --- Callbacks of librdkafka --------------------------------------------------------------------

    def on_rebalance_callback(
        self, name: str, partitions: list[Any], began: float, seconds: float, metadata: bytes | None
    ) -> None:
        """Record that a rebalance callback has run.

        Args:
            name: One of `labels.CALLBACKS`.
            partitions: The callback's `confluent_kafka.TopicPartition` objects.
            began: Monotonic time at which it began, in seconds.
            seconds: Duration of the application's callback; 0 without one.
            metadata: The group's metadata, as `consumer_group_metadata` returned it.
        """
        self._guarded(f"on_{name}", lambda: self._track_callback(name, partitions, began, seconds, metadata))

    def on_commit(self, error: Any, _partitions: object = None) -> None:
        """Record a call of ``on_commit``."""
        self.on_commit_end(None, None if error is None else str(error.name()))

    def on_error(self, error: Any) -> None:
        """Record an error that librdkafka reported through poll or ``error_cb``."""
        self._guarded("error", lambda: self._track_error(error))

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Record the errors among the messages that consume returned."""
        for error in filter(None, map(Message.error, messages)):  # no line of Python for each message
            self.on_error(error)

    def settle(self) -> None:
        """End a held rebalance that has settled. Called at the end of each poll, and at each scrape."""
        if time.monotonic() >= self.settles_at:
            self._guarded("settle", lambda: self._report(self._rebalances.settle(time.monotonic())))

    # --- State --------------------------------------------------------------------------------------

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside poll or consume; None once the consumer is closed."""
        if self._closed:
            return None
        return 0.0 if self.in_poll_since is not None else time.monotonic() - self.last_poll

    def add_listener(self, listener: RebalanceListener) -> None:
        """Call `listener` for every rebalance and commit, on the thread that polls or scrapes."""
        self._listeners.append(listener)

    @property
    def membership_snapshot(self) -> MembershipSnapshot:
        """The membership, as far as librdkafka reports it."""
        self.settle()
        since = self.in_poll_since
        snapshot = MembershipSnapshot(
            state="unjoined" if self._closed else None,
            fenced=self._fenced,
            max_poll_exceeded=self._max_poll_exceeded,
            poll_seconds=self.poll_seconds + (0.0 if since is None else max(0.0, time.monotonic() - since)),
            # librdkafka checks it only for members of a group.
            max_poll_interval=self._max_poll_interval if self._subscribed else None,
            start_offsets=self._starts.all(),
            paused=self._paused,
            commits_by_producer=self.commits_by_producer,
        )
        return self._membership_statistics.complete(snapshot, self.callbacks.statistics)

    # --- Details ------------------------------------------------------------------------------------

    def _track_callback(
        self, name: str, partitions: list[Any], began: float, seconds: float, metadata: bytes | None
    ) -> None:
        member = GroupMetadata.decode(metadata)
        callback = CallbackTime(began, time.monotonic(), time.time(), member.generation, member.member_id)
        keys = [(partition.topic, partition.partition) for partition in partitions]
        partitions_by_topic = by_topic(keys)
        if name == "assign":
            self._notify(lambda listener: listener.partitions_assigned(partitions_by_topic, seconds))
            self._report(self._rebalances.assigned(keys, callback))
            return
        self._starts.remove(keys)  # and not `_paused`: librdkafka keeps a pause until `resume`
        # Reported first: a held rebalance ended with its last round, before this callback began.
        self._report(self._rebalances.revoked(keys, callback, lost=name == "lost"))
        if name == "lost":
            self._notify(lambda listener: listener.partitions_lost(partitions_by_topic, seconds))
        else:
            self._notify(lambda listener: listener.partitions_revoked(partitions_by_topic, seconds))

    def _notify_of_starts(self, partitions: Iterable[Any]) -> None:
        # An explicit offset is the position at once, whatever it was before.
        keys = [(each.topic, each.partition) for each in partitions if each.offset < 0]
        for observer in self.start_observers:
            observer(keys)

    def _track_error(self, error: Any) -> None:
        found = classify_error(error.code(), error.str(), _describe)
        if found.kind is ErrorKind.MAX_POLL_EXCEEDED:
            self._max_poll_exceeded += 1
        elif found.kind is ErrorKind.FENCED:
            self._fenced = 1
        if found.kind in {ErrorKind.FENCED, ErrorKind.REJECTED}:
            text = f"{KafkaError(found.code).name()}: {error.str()}"
            self._report(self._rebalances.failed(text, time.monotonic(), time.time()))

    def _report(self, rebalances: list[Rebalance]) -> None:
        for rebalance in rebalances:
            for listener in self._listeners:
                listener.rebalanced(rebalance)

    def _notify(self, call: Callable[[RebalanceListener], None]) -> None:
        for listener in self._listeners:
            call(listener)

    @locked
    def _guarded(self, operation: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - measuring must not break the application
            self.callbacks.on_failure(operation, error)
        self.settles_at = self._rebalances.settles_at


class _Overridable:
    """A property that gives way to an attribute of the same name, of the instance or of a derived class."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._read(instance)


class TrackedConsumer:
    """The properties and methods of `ObservableConsumer`, implemented by a tracker.

    An application's subclass may use their names for its own attributes. So the instrumentation observes the
    tracker.
    """

    _groupwright_tracker: CallbackTracker

    @_Overridable
    def group_id(self) -> str:
        """The group, ``group.id``."""
        return self._groupwright_tracker.group_id

    @_Overridable
    def client_id(self) -> str:
        """The client, ``client.id``."""
        return self._groupwright_tracker.client_id

    @_Overridable
    def settings(self) -> Mapping[str, object]:
        """The configuration, without functions and without secrets."""
        return self._groupwright_tracker.settings

    @_Overridable
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside `poll` or `consume`. Safe from any thread."""
        return self._groupwright_tracker.poll_age

    @_Overridable
    def membership_snapshot(self) -> MembershipSnapshot:
        """The membership, as far as librdkafka reports it. Safe from any thread."""
        return self._groupwright_tracker.membership_snapshot

    def add_listener(self, listener: RebalanceListener) -> None:
        """Call `listener` for every rebalance and commit, on the thread that polls or scrapes."""
        self._groupwright_tracker.add_listener(listener)


def tracker_of(consumer: object) -> CallbackTracker | None:
    """Return the tracker of a wrapped consumer; None for any other object."""
    return consumer._groupwright_tracker if isinstance(consumer, TrackedConsumer) else None  # noqa: SLF001 - set by `create_wrapped`


def _describe(code: int) -> str:
    return KafkaError(code).str()
