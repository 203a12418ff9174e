"""The snapshot of Groupwright's own membership."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupwright.core import MembershipSnapshot, TopicPartitionKey

if TYPE_CHECKING:
    from groupwright.consumer._membership.access import AccessGuard
    from groupwright.consumer._membership.prefetch import PrefetchBuffer
    from groupwright.consumer._network.request_stats import RequestStats
    from groupwright.consumer._protocol.membership import Membership
    from groupwright.consumer._protocol.timers import Timing


def snapshot_of(
    membership: "Membership",
    traffic: "RequestStats",
    polling: "AccessGuard",
    ahead: "PrefetchBuffer",
    begins: Mapping[TopicPartitionKey, int],
    timing: "Timing",
) -> MembershipSnapshot:
    """Return the snapshot of Groupwright's own membership; any thread may ask, and no lock is taken."""
    heard = traffic.heartbeat_answered
    return MembershipSnapshot(
        state=membership.state.name.lower(),
        coordinator=traffic.coordinator if membership.coordinator.known and not membership.closed else None,
        coordinator_changes=traffic.coordinator_changes,
        coordinator_errors=traffic.unanswered,
        round_trip=traffic.round_trip,
        heartbeat_age=None if heard is None or membership.subscription is None else time.monotonic() - heard,
        requests=traffic.requests.copy(),
        request_failures=traffic.failures.copy(),
        fenced=membership.fenced,
        max_poll_exceeded=membership.poll_timeouts,
        poll_seconds=polling.inside_seconds,
        max_poll_interval=timing.max_poll_interval,
        ahead=ahead.first_offsets(),
        begins=begins,
    )
