"""Groupwright's own membership (the classic protocol): it joins, sends heartbeats, commits and leaves.

`ClassicMembership` passes each call to the part that does it: `EventServer` applies the network thread's
events, `ManualAssignment` the application's changes of the assignment, and `Committer` commits. `wiring`
creates and connects the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import Failures, RebalanceCallback
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.event_server import EventServer
from groupwright.consumer._membership.handle import (
    Handle,
    Native,
    assigned_keys,
    close_within,
    request_metadata,
)
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.listeners import Listeners
from groupwright.consumer._membership.manual_assignment import ManualAssignment
from groupwright.consumer._membership.native_config import NativeConfig
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.processing_meter import ProcessingMeter
from groupwright.consumer._membership.snapshot import snapshot_of
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol import group_metadata
from groupwright.consumer._protocol.actions import Action
from groupwright.consumer._protocol.consumer_protocol import needs_processing_times
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import GroupMembershipOperation
from groupwright.consumer._protocol.subscription import TopicSubscription, parse_subscription
from groupwright.consumer.errors import ConsumerError
from groupwright.core import MembershipSnapshot, TopicPartitionKey

_STOP_TIMEOUT = 2.0
"""Seconds to wait for the end of the network thread."""
_FATAL = "Local: Fatal error: another consumer has taken this consumer's group.instance.id; close it"


@dataclass(eq=False, repr=False)
class ClassicMembership:
    """A `GroupMembership` of the classic protocol. The class of each part says what that does."""

    config: ConsumerConfig
    listeners: Listeners
    failures: Failures
    guard: AccessGuard
    prefetch: PrefetchBuffer
    offsets: OffsetTracker
    network: Network
    meter: ProcessingMeter
    membership: Membership
    recovery: HandleRecovery
    driver: Driver
    ownership: Ownership
    applier: AssignmentApplier
    committer: Committer
    events: EventServer
    manual: ManualAssignment
    make_native_config: NativeConfig

    # --- Running ------------------------------------------------------------------------------------

    def start(self, handle: Handle) -> Callable[[], None]:
        """Start the network thread; return the finalizer of a consumer that is not closed."""
        self.committer.busy.set_handle(handle)
        self.driver.start()
        if self.config.auto_commit:
            self.driver.repeat(self.committer.busy.check)
        if any(needs_processing_times(each) for each in self.config.assignors.values()):
            self.prefetch.meter = self.meter
            self.driver.repeat(self.meter.sample)
        driver = self.driver  # the finalizer must not refer to the consumer or its callbacks
        return lambda: driver.abandon(_STOP_TIMEOUT)

    def stop(self) -> None:
        """End the network thread; commits that have not ended fail.

        If `leave` has not waited for as long as that may take, the member still leaves.
        """
        self.driver.stop(_STOP_TIMEOUT, leave=_STOP_TIMEOUT - self.events.waited)
        self.committer.report_results(closing=True)

    def close_handle(self, close: Callable[[], None], seconds: float) -> bool:
        """Close it on a thread that may be left behind: the group does not depend on it any more."""
        return close_within(close, seconds)

    @property
    def native_config(self) -> dict[str, Any]:
        """Configuration of librdkafka's handle."""
        return self.make_native_config()

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership at this moment."""
        return snapshot_of(
            self.membership,
            self.network.request_stats,
            self.guard,
            self.offsets.start_offsets | self.prefetch.seeded_offsets(),
            self.prefetch.paused,
            self.config.timing,
        )

    @property
    def in_callback(self) -> bool:
        """True if a rebalance callback is running."""
        return self.applier.in_callback

    @property
    def calm_until(self) -> float:
        """Time of the next heartbeat, infinite in no group; 0 while a rebalance or a commit is under way."""
        return 0.0 if self.committer.is_committing else self.membership.calm_until

    @property
    def due(self) -> bool:
        """True if an event or an exception waits to be served."""
        return self.events.due

    @property
    def ends_batch(self) -> bool:
        """True if `serve` would revoke or assign partitions, return an error, or raise."""
        return self.events.ends_batch

    @property
    def fast_path_until(self) -> float:
        """Time until which nothing is due, in monotonic seconds, unless an event or an exception comes."""
        return self.events.fast_path_until

    @property
    def session_expired(self) -> bool:
        """True if other members may own the partitions by now, after the process was stopped."""
        return self.ownership.expired

    def serve(self, handle: Handle) -> Message | None:
        """Apply events and due commits before messages are returned; return an error for poll to return."""
        return self.events.serve(handle)

    def serve_within_batch(self, handle: Handle) -> None:
        """Do what is due while `consume` has messages to return, except for what `ends_batch`."""
        self.events.serve_within_batch(handle)

    def measure_work(self, working: Callable[[], Sequence[Message]]) -> None:
        """See `GroupMembership.measure_work`."""
        self.meter.measure(working)

    def hold(self, seconds: float) -> bool:
        """Wait up to `seconds` if no message may be returned now; return whether it did."""
        return self.events.hold(seconds)

    # --- Subscribing --------------------------------------------------------------------------------

    def subscribe(
        self,
        handle: Handle,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Join the group with these topics; an eager member that has partitions rebalances."""
        self._check_not_fenced("Failed to set subscription")
        subscription = _read_topics(topics, self.config)
        applier = self.applier
        applier.on_assign, applier.on_revoke, applier.on_lost = on_assign, on_revoke, on_lost
        if not self.manual.subscribed:
            # librdkafka connects now, as by its own `subscribe`, instead of a second later.
            request_metadata(handle)
        self.manual.subscribed = True
        self._change(self.membership.subscribe, subscription, revokes=not self.config.cooperative)

    def unsubscribe(self, _handle: Handle) -> None:
        """Leave the group; the next poll revokes the partitions."""
        self._check_not_fenced("Failed to remove subscription")
        if self.manual.subscribed:
            self.manual.subscribed = False
            self._change(self.membership.unsubscribe, revokes=True)

    def enforce_rebalance(self, reason: str) -> None:
        """Have the next poll join the group again."""
        self._check_not_fenced("Failed to enforce a rebalance")
        if not self.manual.subscribed:
            detail = "enforce_rebalance() needs a group to join again: call subscribe() first"
            raise ConsumerError(KafkaError._STATE, detail)  # noqa: SLF001 - librdkafka's public code
        self.guard.calm_until = 0.0
        self.driver.call(self.membership.enforce_rebalance, reason)

    def _change(self, method: Callable[..., list[Action]], *args: object, revokes: bool) -> None:
        """Pass a change of the subscription to the membership.

        If it revokes the partitions, no message is returned before on_revoke was called, as in librdkafka.
        This method waits until the revocation is in the inbox, so that the next poll applies it, even with a
        timeout of 0.
        """
        if revokes:
            self.events.hold_until_revoked()
        self.driver.call_and_wait(method, *args)
        self.guard.wake()

    def _check_not_fenced(self, words: str) -> None:
        if self.membership.fenced:
            raise ConsumerError(KafkaError._FATAL, f"{words}: {_FATAL}")  # noqa: SLF001 - public

    # --- The assignment -----------------------------------------------------------------------------

    def assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Replace the assignment; in a callback, choose offsets."""
        self.manual.assign(handle, partitions)

    def unassign(self, handle: Handle) -> None:
        """Remove all partitions from the assignment."""
        self.manual.unassign(handle)

    def incremental_assign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Add partitions to the assignment."""
        self.manual.incremental_assign(handle, partitions)

    def incremental_unassign(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Remove partitions from the assignment."""
        self.manual.incremental_unassign(handle, partitions)

    def seek(self, handle: Handle, partition: TopicPartition) -> None:
        """Continue at another offset."""
        self.manual.seek(handle, partition)

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return the offset of the last seek since the assignment; None without a seek."""
        return self.offsets.sought(key)

    def assignment(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions with the offsets they were assigned with, or OFFSET_STORED."""
        with self.guard.shared():
            return self.applier.assignment(handle)

    def pause(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Stop returning messages until `resume`, also if the partition is revoked and assigned again."""
        with self.guard.shared():
            self.applier.pause(handle, partitions)

    def resume(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Return messages again."""
        with self.guard.shared():
            self.applier.resume(handle, partitions)

    def paused(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        with self.guard.shared():
            assigned = assigned_keys(handle)
        return [TopicPartition(*key) for key in sorted(self.prefetch.paused & assigned)]

    def on_position_read(self, partitions: list[TopicPartition]) -> None:
        """Record that librdkafka knows these topics from now on, even if they were never assigned."""
        self.offsets.on_position_read(p.topic for p in partitions)

    # --- Committing, and the member's identity ------------------------------------------------------

    def commit(
        self,
        handle: Handle,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit a message's offset, these offsets, or what was consumed."""
        return self.committer.commit(handle, message, offsets, asynchronous=asynchronous)

    def await_commits(self, seconds: float) -> None:
        """Wait until commits in flight have ended, for `seconds` at most."""
        self.committer.wait(seconds)

    def store_offsets(
        self, _handle: Handle, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store offsets for a later commit."""
        self.committer.store(message, offsets)

    def member_id(self, _handle: Handle) -> str | None:
        """Return the id that the coordinator gave."""
        return self.membership.identity.member_id or None

    def group_metadata(self, _handle: Handle) -> bytes:
        """Return the member's identity as of the last assignment that the application has.

        That of a later generation would be accepted for partitions that this member has lost meanwhile. While
        a cooperative member keeps partitions during a rebalance, they are committed in the group's
        generation, as `commit` does: the last assignment's may have ended long ago.
        """
        identity = self.membership.identity
        if not (identity.valid and self.membership.keeps_partitions):
            identity = self.ownership.identity
        network = self.config.network
        return group_metadata.encode(identity, network.group_id, network.group_instance_id)

    def set_sasl_credentials(self, handle: Handle, username: str, password: str) -> None:
        """Pass the credentials to librdkafka and to the membership's connections."""
        with self.guard.shared():
            Native.set_sasl_credentials(handle, username, password)
            self.recovery.set_sasl_credentials(username, password)
        self.network.set_sasl_credentials(username, password)

    # --- Leaving ------------------------------------------------------------------------------------

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Accept any operation."""

    def leave(self, handle: Handle, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, have the partitions revoked, and leave the group or stay; wait for `timeout` seconds."""
        self.events.leave(handle, timeout, operation)


def _read_topics(topics: list[str], config: ConsumerConfig) -> TopicSubscription:
    """Read a subscription's topics: names, and regular expressions, which begin with ``^``."""
    try:
        return parse_subscription(topics, config.ignored_topics)
    except ValueError as error:
        words = f"Failed to set subscription: Local: Invalid argument or configuration: {error}"
        raise ConsumerError(KafkaError._INVALID_ARG, words) from error  # noqa: SLF001 - public
