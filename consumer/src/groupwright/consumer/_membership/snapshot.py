"""A consumer's membership at one moment, for whoever watches it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupwright.consumer._protocol.model import TopicPartitionKey

if TYPE_CHECKING:
    from groupwright.consumer._membership.access import AccessGuard
    from groupwright.consumer._membership.prefetch import PrefetchBuffer
    from groupwright.consumer._network.request_stats import RequestStats
    from groupwright.consumer._protocol.membership import Membership
    from groupwright.consumer._protocol.timers import Timing


@dataclass(frozen=True, slots=True)
class MembershipSnapshot:
    """What a consumer knows of its membership. What it cannot tell is None, 0 or empty.

    Numbers are totals since the consumer was made, and times are in seconds.
    """

    state: str | None = None
    """``unjoined``, ``preparing_rebalance``, ``completing_rebalance`` or ``stable``."""
    coordinator: int | None = None
    """The broker's id; None while none is known."""
    coordinator_changes: int = 0
    """Times that another broker became the coordinator."""
    coordinator_errors: int = 0
    """Requests to the coordinator that had no answer."""
    round_trip: float | None = None
    """To the coordinator, as last measured."""
    heartbeat_age: float | None = None
    """Since the coordinator last answered a heartbeat; None before the first, and without a subscription."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests sent: ``find_coordinator``, ``join_group``, ``sync_group``, ``heartbeat``, ``offset_commit``,
    ``offset_fetch``, ``leave_group``."""
    request_failures: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Those answered with an error, by request and the error's name. How a new member gets its id, and how one hears of
    a rebalance, are errors by form alone, and not among them."""
    fenced: int = 0
    """Times that another consumer took this one's ``group.instance.id``."""
    max_poll_exceeded: int = 0
    """Times that the application did not poll for ``max.poll.interval.ms``."""
    poll_seconds: float = 0.0
    """Time spent inside `poll` and `consume`."""
    max_poll_interval: float | None = None
    """``max.poll.interval.ms``."""
    ahead: Mapping[TopicPartitionKey, int] = field(default_factory=dict)
    """Where messages of a partition were taken from librdkafka and not yet handed out: the offset of the first."""
    begins: Mapping[TopicPartitionKey, int] = field(default_factory=dict)
    """Where partitions began, or were last sought, of which nothing was consumed since; where that is an offset."""


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
