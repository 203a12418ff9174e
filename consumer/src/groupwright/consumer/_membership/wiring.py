"""Wiring of a `ClassicMembership`: creates its parts, and connects them."""

from __future__ import annotations

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._coordinator.inbox import Inbox
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import Failures
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.event_server import EventServer
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.manual_assignment import ManualAssignment
from groupwright.consumer._membership.native_config import NativeConfig
from groupwright.consumer._membership.offset_lookup import OffsetLookup
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.processing_meter import ProcessingMeter
from groupwright.consumer._membership.rebalance_reporter import RebalanceReporter
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.consumer_protocol import read_assignment, subscription_encoder
from groupwright.consumer._protocol.membership import Membership
from groupwright.core import Kind

_CONNECT_SECONDS = 5.0
"""Seconds that librdkafka needs to connect, without its backoff."""


def classic_membership(
    config: ConsumerConfig,
    guard: AccessGuard,
    prefetch: PrefetchBuffer,
    interceptors: InterceptorChain,
    log: GroupLog,
) -> ClassicMembership:
    """Return a membership that is not started.

    Args:
        config: The consumer's configuration.
        guard: Hands over librdkafka's handle, and wakes the polling thread.
        prefetch: Prefetched messages.
        interceptors: Called with committed offsets.
        log: Logger of the consumer.
    """
    failures = Failures(guard.wake, log)
    offsets = OffsetTracker(by_hand=config.store_by_hand)
    committed = CommittedOffsets()
    inbox = Inbox(guard.wake)
    timing = config.timing

    # The network thread.
    network = Network(config.network)
    meter = ProcessingMeter(lambda: bool(guard.ident))
    membership = Membership(
        timing,
        subscription_encoder(config.assignors, config.rack, log, meter.times, cooperative=config.cooperative),
        read_assignment,
        static=config.network.group_instance_id is not None,
        cooperative=config.cooperative,
        racks=config.rack is not None,
    )
    recovery = HandleRecovery(
        lambda: membership.coordinator.known,
        offsets,
        prefetch,
        guard,
        log,
        delay=2 * config.network.transport.reconnect_backoff_max + _CONNECT_SECONDS,
    )
    driver = Driver(
        membership,
        network,
        config.assignors,
        inbox,
        committed,
        guard,
        log,
        recovery.schedule_check,
        cooperative=config.cooperative,
        session_timeout=timing.session_timeout,
        load_check_interval=timing.load_check,
        load_check_max_moves=config.load_check_max_moves,
    )

    # The polling thread.
    kind = Kind.COOPERATIVE if config.cooperative else Kind.EAGER
    reporter = RebalanceReporter(config.network.group_id, config.network.client_id, kind, log)
    listeners = reporter.listeners
    read_committed = config.native.get("isolation.level") != "read_uncommitted"
    lookup = OffsetLookup(network, log, read_committed=read_committed)
    ownership = Ownership(membership)
    applier = AssignmentApplier(
        config.offset_reset, ownership, committed, offsets, prefetch, lookup, failures, reporter
    )
    committer = Committer(
        config, offsets, prefetch, driver, membership, guard, interceptors, listeners, failures
    )
    native_config = NativeConfig(config, membership, offsets, prefetch, failures)
    events = EventServer(
        membership,
        driver,
        inbox,
        ownership,
        committed,
        applier,
        committer,
        reporter,
        recovery,
        prefetch,
        failures,
        native_config,
        timing.session_timeout,
    )
    manual = ManualAssignment(
        membership,
        driver,
        ownership,
        applier,
        committer,
        offsets,
        prefetch,
        guard,
        lambda: events.closing,
        (config.network.request_timeout, timing.session_timeout),
    )
    return ClassicMembership(
        config=config,
        listeners=listeners,
        failures=failures,
        guard=guard,
        prefetch=prefetch,
        offsets=offsets,
        network=network,
        meter=meter,
        membership=membership,
        recovery=recovery,
        driver=driver,
        ownership=ownership,
        applier=applier,
        committer=committer,
        events=events,
        manual=manual,
        make_native_config=native_config,
    )
