"""A consumer's membership at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupwright.core.rebalance import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class MembershipSnapshot:
    """The state of a consumer's membership. A value that the consumer does not know is None, 0 or empty.

    Counts are totals since the consumer was created; times are in seconds.
    """

    state: str | None = None
    """``unjoined``, ``preparing_rebalance``, ``completing_rebalance`` or ``stable``."""
    coordinator: int | None = None
    """The coordinator's broker id; None while none is known."""
    coordinator_changes: int = 0
    """Times that this client found another broker to be the coordinator."""
    coordinator_errors: int = 0
    """Requests to the coordinator that got no response."""
    coordinator_missing: float | None = None
    """Time in which the consumer needed the coordinator and knew none, the first search included."""
    round_trip: float | None = None
    """Round-trip time to the coordinator, as last measured."""
    heartbeat_age: float | None = None
    """Time since the last heartbeat response; None before the first, and without a subscription."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests sent: ``find_coordinator``, ``join_group``, ``sync_group``, ``heartbeat``, ``offset_commit``,
    ``offset_fetch``, ``leave_group``."""
    request_failures: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Error responses, by request and the error's name, as in ``("join_group", "NOT_COORDINATOR")``. Errors
    in the normal course (MEMBER_ID_REQUIRED for a new member, REBALANCE_IN_PROGRESS for a heartbeat) are not
    counted."""
    fenced: int = 0
    """Times that another consumer took over this consumer's ``group.instance.id``."""
    max_poll_exceeded: int = 0
    """Times that the application did not poll for ``max.poll.interval.ms``."""
    poll_seconds: float | None = None
    """Time spent inside `poll` and `consume`."""
    max_poll_interval: float | None = None
    """``max.poll.interval.ms``."""
    start_offsets: Mapping[TopicPartitionKey, int] = field(default_factory=dict)
    """By partition: the offset at which it was started or last sought, where the consumer knows it; possibly
    a logical offset. It is the position until a message was consumed."""
    paused: frozenset[TopicPartitionKey] = frozenset()
    """Partitions that the application has paused."""
    commits_by_producer: bool = False
    """True if the application has called `consumer_group_metadata`. A producer then commits in its
    transactions, and this consumer does not learn of these commits."""
