"""The snapshot of Groupwright's own membership."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupwright.core import MembershipSnapshot, TopicPartitionKey

if TYPE_CHECKING:
    from groupwright.consumer._membership.access import AccessGuard
    from groupwright.consumer._network.request_stats import RequestStats
    from groupwright.consumer._protocol.membership import Membership
    from groupwright.consumer._protocol.timers import Timing


def snapshot_of(
    membership: Membership,
    requests: RequestStats,
    guard: AccessGuard,
    start_offsets: Mapping[TopicPartitionKey, int],
    paused: frozenset[TopicPartitionKey],
    timing: Timing,
) -> MembershipSnapshot:
    """Return the snapshot of Groupwright's own membership. Safe from any thread; it takes no lock."""
    answered, now = requests.heartbeat_answered, time.monotonic()
    return MembershipSnapshot(
        state=membership.state.name.lower(),
        coordinator=requests.coordinator if membership.coordinator.known and not membership.closed else None,
        coordinator_changes=requests.coordinator_changes,
        coordinator_errors=requests.unanswered,
        coordinator_missing=membership.coordinator.missing_seconds(now),
        round_trip=requests.round_trip,
        heartbeat_age=None if answered is None or membership.subscription is None else now - answered,
        requests=requests.requests.copy(),
        request_failures=requests.failures.copy(),
        fenced=membership.fenced,
        max_poll_exceeded=membership.max_poll_exceeded,
        poll_seconds=guard.inside_seconds,
        max_poll_interval=timing.max_poll_interval,
        start_offsets=start_offsets,
        paused=paused,
    )
