"""What is learnt of one plain consumer: its callbacks and calls go in, and listeners hear of rebalances and commits.

It knows no client: `observed` and `observed_aio` tell it what happens to theirs. What fails in here never reaches the
application: it goes to `Signals.failed`.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError

from groupwright.core import Kind, MembershipSnapshot, Rebalance, RebalanceListener, by_topic
from groupwright.core.configuration import Configuration, public_settings
from groupwright.core.group_metadata import GroupMetadata
from groupwright.core.membership_errors import ErrorKind, classify
from groupwright.core.rebalance_tracker import CONSUMER_SETTLE, CallbackTime, RebalanceTracker
from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics
from groupwright.instrumentation._librdkafka.stats import NativeMembership


class Observer:
    """One plain consumer, as seen from its side. Safe to use from any thread."""

    def __init__(self, config: Mapping[str, Any], signals: Signals[ConsumerStatistics]) -> None:
        """Start before the first call."""
        configuration = Configuration(config)
        self.settings = public_settings(config)
        self.group_id = configuration.text("group.id")
        self.client_id = configuration.text("client.id")
        self.max_poll_interval = configuration.seconds("max.poll.interval.ms")
        self.signals = signals
        self.listeners: list[RebalanceListener] = []
        kind = configuration.kind
        settle = (
            CONSUMER_SETTLE if kind is Kind.CONSUMER else 2 * configuration.seconds("heartbeat.interval.ms")
        )
        self._rebalances = RebalanceTracker(
            self.group_id, self.client_id, kind, configuration.protocol, settle
        )
        self._last_poll = time.monotonic()
        self._in_poll_since: float | None = None
        self._poll_seconds = 0.0
        self._max_poll_exceeded = 0
        self._fenced = 0
        self._native = NativeMembership()
        self._closed = False
        self._due = math.inf
        """When `RebalanceTracker.settle` has something to end."""
        # Reentrant: what a listener does may lead back here.
        self._lock = threading.RLock()
        signals.told = self.error_told

    # --- What the application calls -----------------------------------------------------------------

    def poll_begins(self) -> float:
        """The application entered poll or consume; returns the time, for `poll_ends`."""
        began = self._last_poll = self._in_poll_since = time.monotonic()
        return began

    def poll_ends(self, began: float) -> None:
        """It left again."""
        self._last_poll = now = time.monotonic()
        self._in_poll_since = None
        self._poll_seconds += now - began
        if now >= self._due:
            self.tick()

    def subscribed(self, topics: Iterable[str]) -> None:
        """It subscribed."""
        self._guarded("subscribe", lambda: self._tell(self._rebalances.subscribed(topics, time.monotonic())))

    def leaving(self) -> None:
        """It unsubscribes."""
        self._guarded("unsubscribe", lambda: self._tell(self._rebalances.leaving()))

    def closing(self) -> None:
        """It closes."""
        self._closed = True
        self.leaving()

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit ended."""
        self._guarded(
            "commit", lambda: self._tell_each(lambda listener: listener.commit_ended(seconds, error))
        )

    # --- What librdkafka tells ----------------------------------------------------------------------

    def rebalance_callback(
        self, name: str, partitions: list[Any], began: float, seconds: float, metadata: bytes | None
    ) -> None:
        """A rebalance callback has run.

        Args:
            name: one of `labels.CALLBACKS`.
            partitions: `confluent_kafka.TopicPartition`s.
            began: when it began, by the monotonic clock.
            seconds: what the application's own took.
            metadata: of the consumer's group, as `consumer_group_metadata` has it.
        """
        self._guarded(f"on_{name}", lambda: self._on_callback(name, partitions, began, seconds, metadata))

    def committed(self, error: Any, _partitions: object = None) -> None:
        """``on_commit`` was called."""
        self.commit_ended(None, None if error is None else _name(error))

    def error_told(self, error: Any) -> None:
        """Note an error that librdkafka told of, through poll or through ``error_cb``."""
        self._guarded("error", lambda: self._on_error(error))

    def tick(self) -> None:
        """End what has settled. Called at the end of each poll, and at each scrape."""
        if time.monotonic() >= self._due:
            self._guarded("tick", lambda: self._tell(self._rebalances.settle(time.monotonic())))

    # --- What is asked ------------------------------------------------------------------------------

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside poll or consume; None once it has closed the consumer."""
        return None if self._closed else self._age(time.monotonic())

    def _age(self, now: float) -> float:
        return 0.0 if self._in_poll_since is not None else now - self._last_poll

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership, as far as librdkafka tells."""
        self.tick()
        since = self._in_poll_since
        snapshot = MembershipSnapshot(
            state="unjoined" if self._closed else None,
            fenced=self._fenced,
            max_poll_exceeded=self._max_poll_exceeded,
            poll_seconds=self._poll_seconds + (0.0 if since is None else max(0.0, time.monotonic() - since)),
            max_poll_interval=self.max_poll_interval,
        )
        return self._native.complete(snapshot, self.signals.statistics)

    # --- Parts --------------------------------------------------------------------------------------

    def _on_callback(
        self, name: str, partitions: list[Any], began: float, seconds: float, metadata: bytes | None
    ) -> None:
        member = GroupMetadata.decode(metadata)
        callback = CallbackTime(began, time.monotonic(), time.time(), member.generation, member.member_id)
        keys = [(partition.topic, partition.partition) for partition in partitions]
        if name == "assign":
            self._tell_each(lambda listener: listener.partitions_assigned(by_topic(keys), seconds))
            self._tell(self._rebalances.assigned(keys, callback))
        else:
            lost = name == "lost"
            # First the rebalance that this one ends: it was before.
            self._tell(self._rebalances.revoked(keys, callback, lost=lost))
            if lost:
                self._tell_each(lambda listener: listener.partitions_lost(by_topic(keys), seconds))
            else:
                self._tell_each(lambda listener: listener.partitions_revoked(by_topic(keys), seconds))

    def _on_error(self, error: Any) -> None:
        found = classify(error.code(), error.str(), _describe)
        if found.kind is ErrorKind.MAX_POLL_EXCEEDED:
            self._max_poll_exceeded += 1
        elif found.kind is ErrorKind.FENCED:
            self._fenced = 1
        if found.kind in {ErrorKind.FENCED, ErrorKind.REJECTED}:
            text = f"{KafkaError(found.code).name()}: {error.str()}"
            self._tell(self._rebalances.failed(text, time.monotonic(), time.time()))

    def _tell(self, rebalances: list[Rebalance]) -> None:
        for rebalance in rebalances:
            for listener in self.listeners:
                listener.rebalanced(rebalance)

    def _tell_each(self, call: Callable[[RebalanceListener], None]) -> None:
        for listener in self.listeners:
            call(listener)

    def _guarded(self, what: str, do: Callable[[], None]) -> None:
        with self._lock:
            try:
                do()
            except Exception as error:  # noqa: BLE001 - measuring must not break what is measured
                self.signals.failed(what, error)
            self._due = self._rebalances.settles_at


class Observed:
    """The part of an `ObservableConsumer` that its observer answers."""

    _observer: Observer

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""
        return self._observer.group_id

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""
        return self._observer.client_id

    @property
    def settings(self) -> Mapping[str, object]:
        """The configuration, without functions and without anything that may be a secret."""
        return self._observer.settings

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside `poll` or `consume`; any thread may ask."""
        return self._observer.poll_age

    @property
    def membership_snapshot(self) -> MembershipSnapshot:
        """The membership, as far as librdkafka tells; any thread may ask."""
        return self._observer.snapshot

    def add_listener(self, listener: RebalanceListener) -> None:
        """Tell `listener` of every rebalance, on the thread that polls (the event loop's) or scrapes."""
        self._observer.listeners.append(listener)


def _describe(code: int) -> str:
    return KafkaError(code).str()


def _name(error: Any) -> str:
    return str(error.name())
