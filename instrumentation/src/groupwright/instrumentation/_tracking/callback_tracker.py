"""What is learnt of one plain consumer: its callbacks and calls go in, and listeners hear of rebalances and commits.

It knows no client: `observed` and `observed_aio` tell it what happens to theirs. What fails in here never reaches the
application: listeners that want to hear of it have a method ``observation_failed``.
"""

import math
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError

from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics
from groupwright.instrumentation._librdkafka.stats import NativeMembership
from groupwright.instrumentation._tracking.rebalance_tracker import (
    CONSUMER,
    Cycles,
    Moment,
    PlainRebalance,
    by_topic,
)
from groupwright.instrumentation._tracking.settings import ConsumerSettings
from groupwright.instrumentation.interfaces import MembershipSnapshot, RebalanceListener

_SETTLE_CONSUMER = 6.0
"""Seconds; group.consumer.heartbeat.interval.ms, in whose rhythm the broker hands partitions over, is 5 s by default."""

_METADATA = b"CGMDv2:"
_GENERATION = struct.Struct("<i")

_REFUSALS = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNRELEASED_INSTANCE_ID,
        KafkaError.UNSUPPORTED_ASSIGNOR,
    }
)
"""What a coordinator answers to a member that it does not take."""


class Observer:
    """One plain consumer, as seen from its side. Safe to use from any thread."""

    def __init__(self, settings: ConsumerSettings, signals: Signals[ConsumerStatistics]) -> None:
        """Start before the first call."""
        self.settings = settings
        self.signals = signals
        self.listeners: list[RebalanceListener] = []
        settle = _SETTLE_CONSUMER if settings.kind == CONSUMER else 2 * settings.heartbeat_interval
        self._cycles = Cycles(settings.kind, settings.protocol, settle)
        self._last_poll = time.monotonic()
        self._in_poll_since: float | None = None
        self._poll_seconds = 0.0
        self._max_poll_exceeded = 0
        self._fenced = 0
        self._native = NativeMembership()
        self._closed = False
        self._due = math.inf
        """When `Cycles.settle` has something to end."""
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
        self._guarded("subscribe", lambda: self._tell(self._cycles.subscribed(topics, time.monotonic())))

    def leaving(self) -> None:
        """It unsubscribes."""
        self._guarded("unsubscribe", lambda: self._tell(self._cycles.leaving()))

    def closing(self) -> None:
        """It closes."""
        self._closed = True
        self.leaving()

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit ended."""
        self._guarded("commit", lambda: self._tell_each("commit_ended", seconds, error))

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
            self._guarded("tick", lambda: self._tell(self._cycles.settle(time.monotonic())))

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
            max_poll_interval=self.settings.max_poll_interval,
        )
        return self._native.complete(snapshot, self.signals.statistics)

    # --- Parts --------------------------------------------------------------------------------------

    def _on_callback(
        self, name: str, partitions: list[Any], began: float, seconds: float, metadata: bytes | None
    ) -> None:
        generation, member_id = read_group_metadata(metadata)
        moment = Moment(began, time.monotonic(), time.time(), generation, member_id)
        keys = [(partition.topic, partition.partition) for partition in partitions]
        if name == "assign":
            self._tell_each("partitions_assigned", by_topic(keys), seconds)
            self._tell(self._cycles.assigned(keys, moment))
        else:
            lost = name == "lost"
            reason = "partitions were lost" if lost else "the group is rebalancing"
            # First the rebalance that this one ends: it was before.
            self._tell(self._cycles.revoked(keys, moment, lost=lost, reason=reason))
            self._tell_each(f"partitions_{'lost' if lost else 'revoked'}", by_topic(keys), seconds)

    def _on_error(self, error: Any) -> None:
        code = cause_of(error)
        if code == KafkaError._MAX_POLL_EXCEEDED:  # noqa: SLF001 - librdkafka's public code
            self._max_poll_exceeded += 1
        elif code == KafkaError.FENCED_INSTANCE_ID:
            self._fenced = 1  # it is final, and told of again and again
        elif code not in _REFUSALS:
            return
        if code != KafkaError._MAX_POLL_EXCEEDED:  # noqa: SLF001 - as above
            self._tell(
                self._cycles.failed(
                    f"{KafkaError(code).name()}: {error.str()}", time.monotonic(), time.time()
                )
            )

    def _tell(self, rebalances: list[PlainRebalance]) -> None:
        for rebalance in rebalances:
            self._tell_each("rebalanced", rebalance)

    def _tell_each(self, method: str, *arguments: object) -> None:
        for listener in self.listeners:
            hear = getattr(listener, method, None)
            if hear is not None:
                hear(*arguments)

    def _guarded(self, what: str, do: Callable[[], None]) -> None:
        with self._lock:
            try:
                do()
            except Exception as error:  # noqa: BLE001 - measuring must not break what is measured
                self._tell_each("observation_failed", what, error)
            settles_at = self._cycles.settles_at
            self._due = math.inf if settles_at is None else settles_at


class Observed:
    """The part of an `ObservableConsumer` that its observer answers."""

    _observer: Observer

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""
        return self._observer.settings.group_id

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""
        return self._observer.settings.client_id

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


def read_group_metadata(metadata: bytes | None) -> tuple[int, str]:
    r"""Return generation and member id from the bytes of ``consumer_group_metadata``; (-1, "") where they say nothing.

    They are librdkafka's own: ``CGMDv2:``, generation (int32, little-endian), group ``\0``, member ``\0``, instance.
    """
    if metadata is None or not metadata.startswith(_METADATA):
        return -1, ""
    start = len(_METADATA) + _GENERATION.size
    generation: int = _GENERATION.unpack_from(metadata, len(_METADATA))[0]
    parts = metadata[start:].split(b"\0")
    return generation, parts[1].decode(errors="replace") if len(parts) > 1 else ""


def cause_of(error: Any) -> int:
    """Return an error's code; librdkafka hands out a fatal one as such, and says why in words alone."""
    code = int(error.code())
    if code != KafkaError._FATAL:  # noqa: SLF001 - librdkafka's public code
        return code
    known = (KafkaError.FENCED_INSTANCE_ID, *_REFUSALS)
    return next((each for each in known if KafkaError(each).str() in error.str()), code)


def _name(error: Any) -> str:
    return str(error.name())
