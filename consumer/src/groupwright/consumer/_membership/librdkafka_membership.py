"""librdkafka's own membership (``group.protocol=consumer``, KIP-848): the broker assigns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.callbacks import (
    Failures,
    RebalanceCallback,
    guard_native_callbacks,
)
from groupwright.consumer._membership.handle import Handle, Native
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.listeners import Listeners
from groupwright.consumer._protocol.model import GroupMembershipOperation
from groupwright.consumer.errors import ConsumerError
from groupwright.core import Kind, MembershipSnapshot, Rebalance, TopicPartitionKey, by_topic
from groupwright.core.configuration import Configuration
from groupwright.core.group_metadata import GroupMetadata
from groupwright.core.membership_errors import ErrorKind, classify_error
from groupwright.core.rebalance_tracker import CONSUMER_SETTLE, CallbackTime, RebalanceTracker
from groupwright.core.start_offsets import StartOffsets


class LibrdkafkaMembership:
    """A `GroupMembership` that is librdkafka's; rebalances for listeners are derived from its callbacks."""

    def __init__(
        self,
        config: ConsumerConfig,
        guard: AccessGuard,
        interceptors: InterceptorChain,
        log: GroupLog,
    ) -> None:
        """Prepare the configuration of the handle."""
        self.listeners = Listeners(log)
        self.in_callback = False
        self.failures = Failures(guard.wake, log)
        self._guard = guard
        self._interceptors = interceptors
        self._config = config
        network = config.network
        self._rebalances = RebalanceTracker(
            network.group_id,
            network.client_id,
            Kind.CONSUMER,
            Configuration(config.native).protocol,
            CONSUMER_SETTLE,
        )
        self._fenced = self._max_poll_exceeded = 0
        self._paused: frozenset[TopicPartitionKey] = frozenset()
        self._starts = StartOffsets()

    # --- Running ------------------------------------------------------------------------------------

    def start(self, _handle: Handle) -> Callable[[], None]:
        """Start nothing: librdkafka's threads run, and end with its handle."""
        return _nothing

    def stop(self) -> None:
        """End nothing: closing the handle does."""

    @property
    def native_config(self) -> dict[str, Any]:
        """Configuration of librdkafka's handle."""
        native = guard_native_callbacks(self._config.native, self.failures)
        native["on_commit"] = self._committed
        if callable(native.get("error_cb")):
            native["error_cb"] = self._recording_errors(native["error_cb"])
        return native

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership as far as it is known here; the rest is in librdkafka's statistics."""
        return MembershipSnapshot(
            state="unjoined" if self._guard.closed else None,
            fenced=self._fenced,
            max_poll_exceeded=self._max_poll_exceeded,
            poll_seconds=self._guard.inside_seconds,
            max_poll_interval=self._config.timing.max_poll_interval,
            start_offsets=self._starts.all(),
            paused=self._paused,
        )

    @property
    def calm_until(self) -> float:
        """No end: librdkafka's poll does everything at once, callbacks included."""
        return math.inf

    @property
    def due(self) -> bool:
        """True if the exception of a callback waits to be raised."""
        return bool(self.failures)

    @property
    def ends_batch(self) -> bool:
        """True if the exception of a callback waits to be raised."""
        return self.due

    @property
    def fast_path_until(self) -> float:
        """Monotonic time in seconds at which a rebalance settles; librdkafka's poll does everything else."""
        return self._rebalances.settles_at

    def serve_within_batch(self, _handle: Handle) -> None:
        """Notify listeners of settled rebalances."""
        self._notify(self._rebalances.settle(time.monotonic()))

    def serve(self, handle: Handle) -> Message | None:
        """Notify listeners of settled rebalances; raise the exception of a callback."""
        self.serve_within_batch(handle)
        error = self.failures.take()
        if error is not None:
            raise error
        return None

    @property
    def session_expired(self) -> bool:
        """False: librdkafka itself drops messages of lost partitions."""
        return False

    def measure_work(self, working: Callable[[], Sequence[Message]]) -> None:
        """Do nothing: the broker assigns, without weights."""

    def hold(self, _seconds: float) -> bool:
        """Return False: librdkafka itself holds messages back."""
        return False

    def on_native_error(self, error: KafkaError) -> None:
        """Record an error about the membership, from librdkafka's poll or ``error_cb``."""
        found = classify_error(error.code(), error.str(), _describe)
        if found.kind is ErrorKind.MAX_POLL_EXCEEDED:
            self._max_poll_exceeded += 1
        elif found.kind is ErrorKind.FENCED:
            self._fenced = 1
        if found.kind in {ErrorKind.FENCED, ErrorKind.REJECTED}:
            text = f"{KafkaError(found.code).name()}: {error.str()}"
            self._notify(self._rebalances.failed(text, time.monotonic(), time.time()))

    def _recording_errors(self, callback: Callable[..., object]) -> Callable[..., object]:
        """Return an ``error_cb`` that first records errors about the membership."""

        def call(error: KafkaError) -> object:
            self.on_native_error(error)
            return callback(error)

        return call

    def _notify(self, rebalances: list[Rebalance]) -> None:
        for rebalance in rebalances:
            self.listeners.notify("rebalanced", rebalance)

    # --- Called by the application ------------------------------------------------------------------

    def subscribe(
        self,
        handle: Handle,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Subscribe natively; listeners are notified beside the callbacks."""
        Native.subscribe(
            handle,
            topics,
            on_assign=self._notified("assigned", on_assign),
            on_revoke=self._notified("revoked", on_revoke),
            # As in librdkafka: without on_lost, on_revoke is called with lost partitions too.
            on_lost=self._notified("lost", on_lost or on_revoke),
        )
        self._notify(
            self._rebalances.subscribed(topics, time.monotonic()) if topics else self._rebalances.leaving()
        )

    def enforce_rebalance(self, reason: str) -> None:  # noqa: ARG002 - the protocol's
        """Refuse: the broker decides when the group rebalances."""
        raise ConsumerError(
            KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001 - librdkafka's public code
            "enforce_rebalance() does not go with group.protocol=consumer, where the broker decides when to "
            "rebalance: leave group.protocol out",
        )

    def unsubscribe(self, handle: Handle) -> None:
        """Unsubscribe natively."""
        self._notify(self._rebalances.leaving())
        Native.unsubscribe(handle)

    def assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Assign natively."""
        Native.assign(handle, partitions)
        self._starts.replace(partitions)

    def unassign(self, handle: Handle) -> None:
        """Unassign natively."""
        Native.unassign(handle)
        self._starts.replace([])

    def incremental_assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Add natively."""
        Native.incremental_assign(handle, partitions)
        self._starts.set(partitions)

    def incremental_unassign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Remove natively."""
        Native.incremental_unassign(handle, partitions)
        self._starts.remove((p.topic, p.partition) for p in partitions)

    def assignment(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions."""
        with self._guard.shared():
            return Native.assignment(handle)

    def pause(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Pause natively."""
        with self._guard.shared():
            Native.pause(handle, partitions)
            self._paused |= {(p.topic, p.partition) for p in partitions}

    def resume(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Resume natively."""
        with self._guard.shared():
            Native.resume(handle, partitions)
            self._paused -= {(p.topic, p.partition) for p in partitions}

    def paused(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        with self._guard.shared():
            assigned = {(p.topic, p.partition) for p in Native.assignment(handle)}
        return [TopicPartition(*key) for key in sorted(self._paused & assigned)]

    def on_position_read(self, partitions: list[TopicPartition]) -> None:
        """Do nothing: librdkafka itself decides what it knows."""

    def sought(self, _key: TopicPartitionKey) -> None:
        """Return None: librdkafka has no position between a seek and the next message."""

    def seek(self, handle: Handle, partition: TopicPartition) -> None:
        """Continue at another offset."""
        Native.seek(handle, partition)
        self._starts.set([partition])

    def await_commits(self, seconds: float) -> None:
        """Wait for nothing: librdkafka sends requests to the coordinator in order."""

    def commit(
        self,
        handle: Handle,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit by librdkafka, with the member epoch."""
        given = {"message": message, "offsets": offsets}
        wanted: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        began = time.monotonic()
        try:
            with self._guard.shared():
                committed: list[TopicPartition] | None = Native.commit(
                    handle, asynchronous=asynchronous, **wanted
                )
        except KafkaException as error:
            if not asynchronous:
                self.listeners.notify("commit_ended", time.monotonic() - began, error.args[0].name())
            raise
        if not asynchronous:
            self.listeners.notify("commit_ended", time.monotonic() - began, None)
        if committed and self._interceptors:
            self._interceptors.on_commit(_succeeded(committed))
        return committed

    def store_offsets(
        self, handle: Handle, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store natively."""
        given = {"message": message, "offsets": offsets}
        wanted: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        with self._guard.shared():
            Native.store_offsets(handle, **wanted)

    def member_id(self, handle: Handle) -> str | None:
        """Return the id that librdkafka chose."""
        with self._guard.shared():
            return Native.memberid(handle)

    def group_metadata(self, handle: Handle) -> bytes:
        """Return librdkafka's metadata."""
        with self._guard.shared():
            return Native.consumer_group_metadata(handle)

    def set_sasl_credentials(self, handle: Handle, username: str, password: str) -> None:
        """Pass them to librdkafka."""
        with self._guard.shared():
            Native.set_sasl_credentials(handle, username, password)

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Check the operation: with librdkafka, a dynamic member leaves, and a static one stays (KIP-848)."""
        static = self._config.network.group_instance_id is not None
        usual = GroupMembershipOperation.REMAIN_IN_GROUP if static else GroupMembershipOperation.LEAVE_GROUP
        if operation not in {usual, GroupMembershipOperation.DEFAULT}:
            raise ConsumerError(
                KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001 - librdkafka's public code
                f"close(leave={operation}) does not go with group.protocol=consumer, where librdkafka "
                "closes: a member with a group.instance.id stays, another one leaves. Leave group.protocol "
                "out, or leave=... out",
            )

    def leave(self, _handle: Handle, _timeout: float, _operation: GroupMembershipOperation) -> None:
        """Record that the member leaves, which the handle's `close` does."""
        self._notify(self._rebalances.leaving())

    def close_handle(self, close: Callable[[], None], _seconds: float) -> bool:
        """Close it, which commits, calls on_revoke and leaves the group, on this thread."""
        close()
        return True

    # --- Called by librdkafka -----------------------------------------------------------------------

    def _notified(
        self, what: str, callback: RebalanceCallback | None
    ) -> Callable[[Any, list[TopicPartition]], None]:
        def call(consumer: Any, partitions: list[TopicPartition]) -> None:
            given = [(partition.topic, partition.partition) for partition in partitions]
            member = GroupMetadata.decode(Native.consumer_group_metadata(consumer))
            began = time.monotonic()
            if callback is not None:
                self.in_callback = True
                try:
                    callback(consumer, partitions)
                except BaseException as error:  # noqa: BLE001 - inside a native call it would lose a message
                    self.failures.record(error)
                finally:
                    self.in_callback = False
            ended = began if callback is None else time.monotonic()
            times = CallbackTime(began, ended, time.time(), member.generation, member.member_id)
            self._on_callback(what, given, times)

        return call

    def _on_callback(self, what: str, partitions: list[TopicPartitionKey], callback: CallbackTime) -> None:
        """Report a callback that has run, and the rebalances that ended with it."""
        seconds = callback.ended - callback.began
        if what == "assigned":
            self.listeners.notify("partitions_assigned", by_topic(partitions), seconds)
            self._notify(self._rebalances.assigned(partitions, callback))
            self._guard.wake()  # so that `fast_path_until` is read again, and the settled rebalance reported
        else:
            # This callback begins a new rebalance, so the previous one is reported first.
            self._notify(self._rebalances.revoked(partitions, callback, lost=what == "lost"))
            self._starts.remove(partitions)
            self._paused -= frozenset(partitions)
            self.listeners.notify(f"partitions_{what}", by_topic(partitions), seconds)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self.listeners.notify("commit_ended", None, None if error is None else error.name())
        if error is None and self._interceptors:
            self._interceptors.on_commit(_succeeded(partitions))
        if self._config.on_commit is not None:
            try:
                self._config.on_commit(error, partitions)
            except BaseException as raised:  # noqa: BLE001 - inside a native call it would lose a message
                self.failures.record(raised)


def _describe(code: int) -> str:
    return KafkaError(code).str()


def _succeeded(partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    return [p for p in partitions if p.error is None and p.offset >= 0]


def _nothing() -> None:
    """End nothing."""
