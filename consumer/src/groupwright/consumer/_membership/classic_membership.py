"""Groupwright's own membership (the classic protocol): it joins, sends heartbeats, commits and leaves.

`ClassicMembership` creates the parts and forwards calls to them: `EventServer` applies the network thread's
events, `ManualAssignment` applies the application's changes of the assignment, and `Committer` commits.
"""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._coordinator.inbox import Inbox
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import Failures, RebalanceCallback, guard_native_callbacks
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.event_server import EventServer
from groupwright.consumer._membership.handle import Handle, Native, assigned_keys, request_metadata
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.librdkafka_stats import with_group_state
from groupwright.consumer._membership.manual_assignment import ManualAssignment
from groupwright.consumer._membership.offset_lookup import OffsetLookup
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.processing_meter import ProcessingMeter
from groupwright.consumer._membership.rebalance_reporter import RebalanceReporter
from groupwright.consumer._membership.snapshot import snapshot_of
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol import group_metadata
from groupwright.consumer._protocol.actions import Action
from groupwright.consumer._protocol.consumer_protocol import (
    needs_processing_times,
    read_assignment,
    subscription_encoder,
)
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import GroupMembershipOperation, MemberIdentity
from groupwright.consumer._protocol.subscription import TopicSubscription, parse_subscription
from groupwright.consumer.errors import ConsumerError
from groupwright.core import Kind, MembershipSnapshot

_STOP_TIMEOUT = 2.0
"""Seconds to wait for the end of the network thread."""
_FATAL = "Local: Fatal error: another consumer has taken this consumer's group.instance.id; close it"
_CONNECT_SECONDS = 5.0
"""Seconds that librdkafka needs to connect, without its backoff."""


class ClassicMembership:
    """A `GroupMembership` of the classic protocol."""

    def __init__(
        self,
        config: ConsumerConfig,
        guard: AccessGuard,
        prefetch: PrefetchBuffer,
        interceptors: InterceptorChain,
        log: GroupLog,
    ) -> None:
        """Wire the parts; `start` starts the network thread.

        Args:
            config: The consumer's configuration.
            guard: Hands over librdkafka's handle, and wakes the polling thread.
            prefetch: Prefetched messages.
            interceptors: Called with committed offsets.
            log: Logger of the consumer.
        """
        network = config.network
        self._config = config
        self._guard = guard
        self._prefetch = prefetch
        self._subscribed = False
        self._failures = Failures(guard.wake, log)
        self._offsets = OffsetTracker(by_hand=config.store_by_hand)
        self._network = Network(network)
        self._meter = ProcessingMeter(lambda: bool(guard.ident))
        self._membership = membership = Membership(
            config.timing,
            subscription_encoder(
                config.assignors, config.rack, log, self._meter.times, cooperative=config.cooperative
            ),
            read_assignment,
            static=network.group_instance_id is not None,
            cooperative=config.cooperative,
            racks=config.rack is not None,
        )
        self._recovery = HandleRecovery(
            lambda: membership.coordinator.known,
            self._offsets,
            prefetch,
            guard,
            log,
            delay=2 * network.transport.reconnect_backoff_max + _CONNECT_SECONDS,
        )
        self._inbox = Inbox(guard.wake)
        self._committed = CommittedOffsets()
        self._ownership = Ownership(membership)
        self._driver = Driver(
            membership,
            self._network,
            config.assignors,
            self._inbox,
            self._committed,
            guard,
            log,
            self._recovery.schedule_check,
            cooperative=config.cooperative,
            session_timeout=config.timing.session_timeout,
            load_check_interval=config.timing.load_check,
            load_check_max_moves=config.load_check_max_moves,
        )
        read_committed = config.native.get("isolation.level") != "read_uncommitted"
        kind = Kind.COOPERATIVE if config.cooperative else Kind.EAGER
        self._reporter = RebalanceReporter(network.group_id, network.client_id, kind, log)
        self.listeners = self._reporter.listeners
        self._applier = AssignmentApplier(
            config.offset_reset,
            self._ownership,
            self._committed,
            self._offsets,
            prefetch,
            OffsetLookup(self._network, log, read_committed=read_committed),
            self._failures,
            self._reporter,
        )
        self._committer = Committer(
            config,
            self._offsets,
            prefetch,
            self._driver,
            membership,
            guard,
            interceptors,
            self.listeners,
            self._failures,
        )
        self._events = EventServer(
            membership,
            self._driver,
            self._inbox,
            self._ownership,
            self._committed,
            self._applier,
            self._committer,
            self._reporter,
            self._recovery,
            prefetch,
            self._failures,
            lambda: self.native_config,
            config.timing.session_timeout,
        )
        self._manual = ManualAssignment(
            membership,
            self._applier,
            self._committer,
            self._offsets,
            prefetch,
            guard,
            self._on_assigned_by_hand,
            lambda: self._events.closing,
            (network.request_timeout, config.timing.session_timeout),
        )
        # Methods that one part implements alone.
        self.assign, self.unassign = self._manual.assign, self._manual.unassign
        self.incremental_assign = self._manual.incremental_assign
        self.incremental_unassign = self._manual.incremental_unassign
        self.seek, self.sought = self._manual.seek, self._offsets.sought
        self.commit, self.await_commits = self._committer.commit, self._committer.wait
        self.serve, self.hold = self._events.serve, self._events.hold
        self.serve_within_batch = self._events.serve_within_batch
        self.take_error, self.record_error = self._failures.take, self._failures.record
        self.log_errors = self._failures.log_all

    # --- Running ------------------------------------------------------------------------------------

    def start(self, handle: Handle) -> Callable[[], None]:
        """Start the network thread; return the finalizer of a consumer that is not closed."""
        self._committer.busy.set_handle(handle)
        self._driver.start()
        if self._config.auto_commit:
            self._driver.repeat(self._committer.busy.check)
        if any(needs_processing_times(each) for each in self._config.assignors.values()):
            self._prefetch.meter = self._meter
            self._driver.repeat(self._meter.sample)
        driver = self._driver  # the finalizer must not refer to the consumer or its callbacks
        return lambda: driver.abandon(_STOP_TIMEOUT)

    def stop(self) -> None:
        """End the network thread; commits that have not ended fail.

        If `leave` has not waited for as long as that may take, the member still leaves.
        """
        self._driver.stop(_STOP_TIMEOUT, leave=_STOP_TIMEOUT - self._events.waited)
        self._committer.report_results(closing=True)

    @property
    def native_config(self) -> dict[str, Any]:
        """Configuration of librdkafka's handle."""
        native = dict(self._config.native)
        if callable(native.get("stats_cb")):
            native["stats_cb"] = self._with_group_state(native["stats_cb"])
        return guard_native_callbacks(native, self._failures)

    def _with_group_state(self, stats_cb: Callable[[str], object]) -> Callable[[str], object]:
        """Return a ``stats_cb`` that first adds the group's state, which librdkafka does not have."""
        read_uncommitted = self._config.native.get("isolation.level") == "read_uncommitted"

        def call(text: str) -> object:
            membership = self._membership
            committed = self._offsets.all_committed()
            return stats_cb(
                with_group_state(
                    text,
                    membership.state,
                    sum(map(len, membership.owned.values())),
                    {key: offset.offset for key, offset in committed.items()},
                    self._prefetch.first_offsets(),
                    read_uncommitted=read_uncommitted,
                )
            )

        return call

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership at this moment."""
        return snapshot_of(
            self._membership,
            self._network.request_stats,
            self._guard,
            self._offsets.start_offsets | self._prefetch.seeded_offsets(),
            self._prefetch.paused,
            self._config.timing,
        )

    @property
    def in_callback(self) -> bool:
        """True if a rebalance callback is running."""
        return self._applier.in_callback

    @property
    def due(self) -> bool:
        """True if an event or an exception waits to be served."""
        return self._events.due

    @property
    def ends_batch(self) -> bool:
        """True if `serve` would revoke or assign partitions, return an error, or raise."""
        return self._events.ends_batch

    @property
    def fast_path_until(self) -> float:
        """Time until which nothing is due, in monotonic seconds, unless an event or an exception comes."""
        return self._events.fast_path_until

    @property
    def session_expired(self) -> bool:
        """True if other members may own the partitions by now, after the process was stopped."""
        return self._ownership.expired

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
        subscription = _read_topics(topics, self._config)
        applier = self._applier
        applier.on_assign, applier.on_revoke, applier.on_lost = on_assign, on_revoke, on_lost
        if not self._subscribed:
            # librdkafka connects now, as by its own `subscribe`, instead of a second later.
            request_metadata(handle)
        self._subscribed = True
        self._change(self._membership.subscribe, subscription, revokes=not self._config.cooperative)

    def unsubscribe(self, _handle: Handle) -> None:
        """Leave the group; the next poll revokes the partitions."""
        self._check_not_fenced("Failed to remove subscription")
        if self._subscribed:
            self._subscribed = False
            self._change(self._membership.unsubscribe, revokes=True)

    def enforce_rebalance(self, reason: str) -> None:
        """Have the next poll join the group again."""
        self._check_not_fenced("Failed to enforce a rebalance")
        if not self._subscribed:
            detail = "enforce_rebalance() needs a group to join again: call subscribe() first"
            raise ConsumerError(KafkaError._STATE, detail)  # noqa: SLF001 - librdkafka's public code
        self._driver.call(self._membership.enforce_rebalance, reason)

    def _change(self, method: Callable[..., list[Action]], *args: object, revokes: bool) -> None:
        """Pass a change of the subscription to the membership.

        If it revokes the partitions, no message is returned before on_revoke was called, as in librdkafka.
        This method waits until the revocation is in the inbox, so that the next poll applies it, even with a
        timeout of 0.
        """
        if revokes:
            self._events.hold_until_revoked()
        self._driver.call_and_wait(method, *args)
        self._guard.wake()

    def _check_not_fenced(self, words: str) -> None:
        if self._membership.fenced:
            raise ConsumerError(KafkaError._FATAL, f"{words}: {_FATAL}")  # noqa: SLF001 - public

    # --- The assignment -----------------------------------------------------------------------------

    def assignment(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions with the offsets they were assigned with, or OFFSET_STORED."""
        with self._guard.shared():
            return self._applier.assignment(handle)

    def pause(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Stop returning messages until `resume`, also if the partition is revoked and assigned again."""
        with self._guard.shared():
            self._applier.pause(handle, partitions)

    def resume(self, handle: Handle, partitions: list[TopicPartition]) -> None:
        """Return messages again."""
        with self._guard.shared():
            self._applier.resume(handle, partitions)

    def paused(self, handle: Handle) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        with self._guard.shared():
            assigned = assigned_keys(handle)
        return [TopicPartition(*key) for key in sorted(self._prefetch.paused & assigned)]

    def on_position_read(self, partitions: list[TopicPartition]) -> None:
        """Record that librdkafka knows these topics from now on, even if they were never assigned."""
        self._offsets.on_position_read(p.topic for p in partitions)

    def _on_assigned_by_hand(self) -> None:
        if not self._subscribed:
            self._ownership.identity = MemberIdentity()
            self._driver.call(self._membership.assigned_by_hand)

    # --- Committing, and the member's identity ------------------------------------------------------

    def store_offsets(
        self, _handle: Handle, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store offsets for a later commit."""
        self._committer.store(message, offsets)

    def member_id(self, _handle: Handle) -> str | None:
        """Return the id that the coordinator gave."""
        return self._membership.identity.member_id or None

    def group_metadata(self, _handle: Handle) -> bytes:
        """Return the member's identity as of the last assignment that the application has.

        That of a later generation would be accepted for partitions that this member has lost meanwhile. While
        a cooperative member keeps partitions during a rebalance, they are committed in the group's
        generation, as `commit` does: the last assignment's may have ended long ago.
        """
        identity = self._membership.identity
        if not (identity.valid and self._membership.keeps_partitions):
            identity = self._ownership.identity
        network = self._config.network
        return group_metadata.encode(identity, network.group_id, network.group_instance_id)

    def set_sasl_credentials(self, handle: Handle, username: str, password: str) -> None:
        """Pass the credentials to librdkafka and to the membership's connections."""
        with self._guard.shared():
            Native.set_sasl_credentials(handle, username, password)
            self._recovery.set_sasl_credentials(username, password)
        self._network.set_sasl_credentials(username, password)

    # --- Leaving ------------------------------------------------------------------------------------

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Accept any operation."""

    def leave(self, handle: Handle, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, have the partitions revoked, and leave the group or stay; wait for `timeout` seconds."""
        self._events.leave(handle, timeout, operation)


def _read_topics(topics: list[str], config: ConsumerConfig) -> TopicSubscription:
    """Read a subscription's topics: names, and regular expressions, which begin with ``^``."""
    try:
        return parse_subscription(topics, config.ignored_topics)
    except ValueError as error:
        words = f"Failed to set subscription: Local: Invalid argument or configuration: {error}"
        raise ConsumerError(KafkaError._INVALID_ARG, words) from error  # noqa: SLF001 - public
