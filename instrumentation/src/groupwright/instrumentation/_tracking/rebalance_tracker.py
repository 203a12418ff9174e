"""Logical rebalances of a plain consumer, told from its callbacks. Pure: no client, no clock, no threads.

librdkafka tells of operations, not of rebalances: what one member sees of one rebalance differs by protocol.

- eager: everything revoked, then assigned. One round.
- cooperative: a member that has to give something up sees a revocation and an empty assignment, joins again, and sees
  the assignment of the second round. The others see one assignment in each round, or in the only one: nothing tells
  them whether another follows. So a first round's end is held for `settle` seconds before it counts as the cycle's.
- consumer (KIP-848): a revocation and an empty assignment, or an assignment whenever the broker has one for it.
  Assignments in one epoch belong together, and so do those that follow within `settle` seconds.

A revocation always begins a cycle. A cycle that begins with an assignment has no known beginning: nothing tells a plain
consumer when it began to join. Its duration is then None.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from groupwright.instrumentation._metrics.labels import FAILED
from groupwright.instrumentation.interfaces import Partitions

EAGER, COOPERATIVE, CONSUMER = "eager", "cooperative", "consumer"

Keys = Iterable[tuple[str, int]]
"""Topics and partition numbers."""


@dataclass(frozen=True, slots=True)
class PlainRebalance:
    """A finished rebalance of a plain consumer; a `RebalanceRecord`."""

    generation: int
    """As known at its last callback; of KIP-848 the member's epoch."""
    member_id: str
    protocol: str | None
    kind: str
    outcome: str
    reason: str
    duration: float | None
    """Seconds; None where its beginning could not be seen."""
    phases: Mapping[str, float]
    partitions_before: Partitions
    partitions: Partitions
    ended_at: float
    """Seconds since the epoch."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A callback's time and the member's identity in it."""

    began: float
    """By the monotonic clock, in seconds."""
    ended: float
    wall: float
    """Its end, in seconds since the epoch."""
    generation: int = -1
    member_id: str = ""


@dataclass(slots=True)
class _Cycle:
    started: float | None
    reason: str
    before: frozenset[tuple[str, int]]
    mark: float
    """When its last known phase ended."""
    phases: dict[str, float] = field(default_factory=dict)
    lost: bool = False
    rounds_due: int = 1
    rounds: int = 0
    end: Moment | None = None
    """Of its last assignment, while another may follow."""

    def add(self, phase: str, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


class Cycles:
    """One consumer's rebalances. Each input returns those that it has ended, oldest first. Not thread-safe."""

    def __init__(self, kind: str, protocol: str, settle: float) -> None:
        """Start outside any group.

        Args:
            kind: EAGER, COOPERATIVE or CONSUMER.
            protocol: what to call it in records: the strategy's name.
            settle: seconds for which a round's end is held, where another may follow.
        """
        self.kind = kind
        self._protocol = protocol
        self._settle = settle
        self._owned: frozenset[tuple[str, int]] = frozenset()
        self._cycle: _Cycle | None = None
        self._topics: tuple[str, ...] | None = None
        self._last = Moment(0.0, 0.0, 0.0)
        self._leaving = False

    @property
    def settles_at(self) -> float | None:
        """When `settle` has something to end, by the monotonic clock; None if nothing is held."""
        held = None if self._cycle is None else self._cycle.end
        return None if held is None else held.ended + self._settle

    def subscribed(self, topics: Iterable[str], now: float) -> list[PlainRebalance]:
        """The application subscribed. The same topics again are told by the revocation, if there is one."""
        wanted, before = tuple(sorted(topics)), self._topics
        self._topics, self._leaving = wanted, False
        if wanted == before:
            return []
        ended = self._end_held()
        # KIP-848: the broker need not answer a change with an assignment.
        if self._cycle is None and (before is None or self.kind != CONSUMER):
            reason = "the consumer subscribed" if before is None else "the subscription changed"
            self._begin(now, reason, now)
        return ended

    def leaving(self) -> list[PlainRebalance]:
        """The application unsubscribes or closes: what is revoked from now on is no rebalance to this member."""
        ended = self._end_held()
        self._cycle, self._topics, self._leaving = None, None, True
        return ended

    def revoked(self, partitions: Keys, moment: Moment, *, lost: bool, reason: str) -> list[PlainRebalance]:
        """Partitions were given up, or lost."""
        gone = frozenset(partitions)
        ended = self._end_held()
        if not self._leaving:
            cycle = self._cycle or self._begin(moment.began, reason, moment.began)
            cycle.add("revoke", moment.ended - moment.began)
            cycle.mark = moment.ended
            cycle.lost |= lost
            cycle.rounds, cycle.rounds_due = 0, 2 if self.kind == COOPERATIVE and gone and not lost else 1
        self._owned -= gone
        return ended

    def assigned(self, partitions: Keys, moment: Moment) -> list[PlainRebalance]:
        """Partitions were gained, or none, at the end of a round."""
        gained = frozenset(partitions)
        before = self._owned
        self._owned = gained if self.kind == EAGER else before | gained
        if self._cycle is None and self.kind == CONSUMER and moment.generation == self._last.generation:
            return []  # the rest of a cycle that has been told of
        cycle = self._cycle or self._begin(None, "the group is rebalancing", moment.began, before)
        if self._may_have_waited(cycle, moment.began):
            cycle.started = None
        if cycle.started is not None:
            cycle.add("join_and_sync", moment.began - cycle.mark)
        cycle.add("assign", moment.ended - moment.began)
        cycle.mark = moment.ended
        cycle.rounds += 1
        cycle.rounds_due = max(0, cycle.rounds_due - 1)
        self._last = moment
        if cycle.rounds_due:
            return []
        cycle.end = moment
        last_round = self.kind == EAGER or (self.kind == COOPERATIVE and cycle.rounds >= 2)  # noqa: PLR2004 - both
        return self._end_held() if last_round else []

    def failed(self, error: str, now: float, wall: float) -> list[PlainRebalance]:
        """The coordinator refused the member; librdkafka goes on trying."""
        ended = self._end_held()
        cycle = self._cycle
        if cycle is None:
            return ended
        moment = Moment(now, now, wall, -1, self._last.member_id)
        self._cycle = None
        again = self._begin(now, "joining again after an error", now)
        again.lost = cycle.lost
        return [*ended, self._record(cycle, moment, FAILED, error)]

    def settle(self, now: float) -> list[PlainRebalance]:
        """End the cycle whose last round was long enough ago."""
        settles_at = self.settles_at
        return self._end_held() if settles_at is not None and now >= settles_at else []

    # --- Parts --------------------------------------------------------------------------------------

    def _may_have_waited(self, cycle: _Cycle, now: float) -> bool:
        """Whether the member may have been one without partitions: of that KIP-848's callbacks tell nothing."""
        subscribed_only = cycle.rounds == 0 and not cycle.phases
        return self.kind == CONSUMER and subscribed_only and now - cycle.mark > 2 * self._settle

    def _begin(
        self,
        started: float | None,
        reason: str,
        mark: float,
        before: frozenset[tuple[str, int]] | None = None,
    ) -> _Cycle:
        self._cycle = _Cycle(started, reason, self._owned if before is None else before, mark)
        return self._cycle

    def _end_held(self) -> list[PlainRebalance]:
        cycle = self._cycle
        if cycle is None or cycle.end is None:
            return []
        self._cycle = None
        return [self._record(cycle, cycle.end, "lost" if cycle.lost else "completed", None)]

    def _record(self, cycle: _Cycle, end: Moment, outcome: str, error: str | None) -> PlainRebalance:
        return PlainRebalance(
            generation=end.generation,
            member_id=end.member_id,
            protocol=None if outcome == FAILED else self._protocol,
            kind=self.kind,
            outcome=outcome,
            reason=cycle.reason,
            duration=None if cycle.started is None else end.ended - cycle.started,
            phases=dict(cycle.phases),
            partitions_before=by_topic(cycle.before),
            partitions=by_topic(self._owned),
            ended_at=end.wall,
            error=error,
        )


def by_topic(keys: Keys) -> dict[str, list[int]]:
    """Return partition numbers by topic, both ascending."""
    partitions: dict[str, list[int]] = {}
    for topic, number in sorted(keys):
        partitions.setdefault(topic, []).append(number)
    return partitions
