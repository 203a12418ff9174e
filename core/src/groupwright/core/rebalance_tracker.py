"""Derives the rebalances of a librdkafka membership from its callbacks. Pure: no clock, no threads.

librdkafka reports assignments and revocations, not rebalances. Which of them a member sees depends on the
kind of rebalance:

- eager: the revocation of all partitions, then an assignment. One round.
- cooperative: a member that must revoke partitions sees a revocation and an empty assignment, rejoins, and
  sees the assignment of the second round. Other members see one assignment in each round, or in the only one,
  and cannot know whether another round follows. So the end of a first round is held for `settle` seconds
  before it ends the rebalance.
- consumer (KIP-848): a revocation and an empty assignment, or an assignment whenever the broker has one for
  the member. The broker advances a member to the epoch of the target assignment once the member has
  revoked the partitions that it must. So a rebalance with a revocation ends in a later member epoch than that
  of the revocation, and one with an assignment of partitions in the epoch of the assignment. Assignments of
  one epoch belong to one rebalance; an assignment of a later epoch begins the next. An epoch in which the
  member's partitions do not change is not a rebalance of this member.

A revocation always begins a rebalance. The beginning of a rebalance that starts with an assignment cannot be
observed, so its duration is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from groupwright.core.rebalance import (
    Kind,
    Outcome,
    Phase,
    Rebalance,
    TopicPartitionKey,
    Trigger,
    by_topic,
)

CONSUMER_SETTLE = 6.0
"""Seconds to hold a KIP-848 rebalance. The broker moves partitions at the heartbeats of members, and
group.consumer.heartbeat.interval.ms is 5 s by default."""

_SECOND_ROUND = 2  # of KIP-429, the last one

Keys = Iterable[TopicPartitionKey]


@dataclass(frozen=True, slots=True)
class CallbackTime:
    """The time of a callback, and the member's identity in it."""

    began: float
    """Monotonic, in seconds."""
    ended: float
    """Monotonic, in seconds."""
    wall: float
    """Its end, in seconds since the epoch."""
    generation: int = -1
    """The generation, or the member epoch (KIP-848); -1 if unknown."""
    member_id: str = ""


@dataclass(slots=True)
class _CurrentRebalance:
    """The rebalance under way."""

    trigger: Trigger
    reason: str
    started: float | None
    """Monotonic time, in seconds; None if the beginning could not be observed."""
    before: frozenset[TopicPartitionKey]
    """The partitions owned when it began."""
    phase_started: float
    """Monotonic time at which the last known phase ended."""
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    rounds_due: int = 1
    """Assignments that must still follow."""
    rounds: int = 0
    """Assignments since it began, or since its last revocation."""
    expected_epoch: int | None = None
    """Under KIP-848: the lowest member epoch in which it can end; None while unknown."""
    held: CallbackTime | None = None
    """Its last assignment, while a further round may follow; None otherwise."""

    def add(self, phase: Phase, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


class RebalanceTracker:
    """One consumer's rebalances. Not thread-safe.

    Each input returns the rebalances that it ended, oldest first.
    """

    def __init__(self, group: str, client_id: str, kind: Kind, protocol: str, settle: float) -> None:
        """Start outside any group.

        Args:
            group: The group's id, for the records.
            client_id: The client's id, for the records.
            kind: The kind of the consumer's rebalances.
            protocol: The assignor's name, for the records.
            settle: Seconds to hold a round's end where another round may follow.
        """
        self._group = group
        self._client_id = client_id
        self._kind = kind
        self._protocol = protocol
        self._settle = settle
        self._owned: frozenset[TopicPartitionKey] = frozenset()
        self._current: _CurrentRebalance | None = None
        self._topics: tuple[str, ...] | None = None
        self._last = CallbackTime(0.0, 0.0, 0.0)
        self._leaving = False
        self._last_epoch: int | None = None

    @property
    def settles_at(self) -> float:
        """Monotonic time, in seconds, at which `settle` ends the held rebalance; infinite if none is held."""
        held = None if self._current is None else self._current.held
        return math.inf if held is None else held.ended + self._settle

    def subscribed(self, topics: Iterable[str], now: float) -> list[Rebalance]:
        """Record a subscription. Subscribing to the same topics again begins no rebalance."""
        wanted, before = tuple(sorted(topics)), self._topics
        self._topics, self._leaving = wanted, False
        if wanted == before:
            return []
        ended = self._end_held()
        # Under KIP-848 the broker need not answer a changed subscription with an assignment.
        if self._current is None and (before is None or self._kind is not Kind.CONSUMER):
            reason = "the consumer subscribed" if before is None else "the subscription changed"
            self._begin(Trigger.MEMBER, reason, now, now)
        return ended

    def leaving(self) -> list[Rebalance]:
        """Record that the application unsubscribes or closes. Later revocations begin no rebalance."""
        ended = self._end_held()
        self._current, self._topics, self._leaving, self._last_epoch = None, None, True, None
        self._owned = frozenset()  # their revocation may come after the next subscription
        return ended

    def revoked(self, partitions: Keys, callback: CallbackTime, *, lost: bool) -> list[Rebalance]:
        """Record that partitions were revoked or lost."""
        revoked = frozenset(partitions)
        ended = self._end_held()
        if not self._leaving:
            current = self._current
            if current is None and lost:
                current = self._begin(Trigger.MEMBER, "partitions were lost", callback.began, callback.began)
            elif current is None:
                current = self._begin_for_group(callback.began, callback.began)
            current.add(Phase.REVOKE, callback.ended - callback.began)
            current.phase_started = callback.ended
            current.lost |= lost
            rejoins = self._kind is Kind.COOPERATIVE and bool(revoked & self._owned) and not lost
            current.rounds, current.rounds_due = 0, _SECOND_ROUND if rejoins else 1
            current.expected_epoch = None if lost or callback.generation < 0 else callback.generation + 1
        self._owned -= revoked
        return ended

    def assigned(self, partitions: Keys, callback: CallbackTime) -> list[Rebalance]:
        """Record that partitions were assigned, or none, at the end of a round."""
        assigned = frozenset(partitions)
        ended = self._end_held() if self._is_later_epoch(callback.generation) else []
        current = self._current
        if current is None and not self._is_finished_epoch(callback.generation):
            current = self._begin_for_group(None, callback.began)
        self._owned = assigned if self._kind is Kind.EAGER else self._owned | assigned
        if current is None:
            return ended  # another assignment of an epoch whose rebalance has ended
        if current.expected_epoch is None or assigned:
            current.expected_epoch = callback.generation
        if self._may_have_waited(current, callback.began):
            current.started = None
        if current.started is not None:
            current.add(Phase.JOIN_AND_SYNC, callback.began - current.phase_started)
        current.add(Phase.ASSIGN, callback.ended - callback.began)
        current.phase_started = callback.ended
        current.rounds += 1
        current.rounds_due = max(0, current.rounds_due - 1)
        self._last = callback
        if current.rounds_due:
            return ended
        current.held = callback
        last_round = self._kind is Kind.EAGER or (
            self._kind is Kind.COOPERATIVE and current.rounds >= _SECOND_ROUND
        )
        return self._end_held() if last_round else ended

    def failed(self, error: str, now: float, wall: float) -> list[Rebalance]:
        """Record that the coordinator rejected the member; librdkafka retries."""
        ended = self._end_held()
        current = self._current
        if current is None:
            return ended
        self._begin(Trigger.MEMBER, "joining again after an error", now, now).lost = current.lost
        end = CallbackTime(now, now, wall, member_id=self._last.member_id)
        return [*ended, self._record(current, end, Outcome.FAILED, error)]

    def settle(self, now: float) -> list[Rebalance]:
        """End the held rebalance if its last round was `settle` seconds ago."""
        return self._end_held() if now >= self.settles_at else []

    def _is_later_epoch(self, epoch: int) -> bool:
        """Return whether a KIP-848 assignment of this epoch begins the rebalance after the held one."""
        current = self._current
        return (
            self._kind is Kind.CONSUMER
            and current is not None
            and current.held is not None
            and current.expected_epoch is not None
            and epoch > current.expected_epoch
        )

    def _is_finished_epoch(self, epoch: int) -> bool:
        """Return whether the KIP-848 rebalance that led to this epoch has ended."""
        return self._kind is Kind.CONSUMER and self._last_epoch is not None and 0 <= epoch <= self._last_epoch

    def _may_have_waited(self, current: _CurrentRebalance, now: float) -> bool:
        """Return whether this first assignment came so late that an empty one may have preceded it.

        Under KIP-848 a member without partitions gets no callback, so the wait cannot be observed.
        """
        subscribed_only = current.rounds == 0 and not current.phases
        return (
            self._kind is Kind.CONSUMER and subscribed_only and now - current.phase_started > 2 * self._settle
        )

    def _begin_for_group(self, started: float | None, now: float) -> _CurrentRebalance:
        return self._begin(Trigger.GROUP, "members or partitions changed", started, now)

    def _begin(self, trigger: Trigger, reason: str, started: float | None, now: float) -> _CurrentRebalance:
        self._current = _CurrentRebalance(trigger, reason, started, self._owned, now)
        return self._current

    def _end_held(self) -> list[Rebalance]:
        current = self._current
        if current is None or current.held is None:
            return []
        self._current, self._last_epoch = None, current.expected_epoch
        return [
            self._record(current, current.held, Outcome.LOST if current.lost else Outcome.COMPLETED, None)
        ]

    def _record(
        self, current: _CurrentRebalance, end: CallbackTime, outcome: Outcome, error: str | None
    ) -> Rebalance:
        return Rebalance(
            group=self._group,
            client_id=self._client_id,
            member_id=end.member_id,
            generation=end.generation,
            protocol=None if outcome is Outcome.FAILED else self._protocol,
            outcome=outcome,
            reason=current.reason,
            duration=None if current.started is None else end.ended - current.started,
            phases=dict(current.phases),
            partitions=by_topic(self._owned),
            ended_at=end.wall,
            error=error,
            kind=self._kind,
            partitions_before=by_topic(current.before),
            trigger=current.trigger,
            assigned_by_broker=self._kind is Kind.CONSUMER,
        )
