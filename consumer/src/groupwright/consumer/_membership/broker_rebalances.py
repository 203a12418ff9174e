"""The rebalances of a member whose partitions the broker assigns (KIP-848), told from librdkafka's callbacks. Pure.

librdkafka tells of operations: a revocation and an empty assignment, or an assignment whenever the broker has one for
this member. Assignments in one epoch belong together, and so do those that follow within `SETTLE` seconds. A revocation
begins a rebalance; one that begins with an assignment has no beginning that could be seen, so its duration is not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import MemberIdentity, Partitions, TopicPartitionKey
from groupwright.consumer._protocol.rebalance import OTHERS, Kind, Outcome, Phase, Rebalance

SETTLE = 6.0
"""Seconds; group.consumer.heartbeat.interval.ms, in whose rhythm the broker hands partitions over, is 5 s by default."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A callback's time, and who the member was in it."""

    began: float
    """Monotonic, in seconds."""
    ended: float
    wall: float
    """Its end, in seconds since the epoch."""
    identity: MemberIdentity


@dataclass(slots=True)
class _Cycle:
    reason: str
    started: float | None
    before: frozenset[TopicPartitionKey]
    mark: float
    """When its last known phase ended."""
    phases: dict[Phase, float] = field(default_factory=dict)
    lost: bool = False
    end: Moment | None = None
    """Of its last assignment, while another may follow."""

    def add(self, phase: Phase, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


class BrokerRebalances:
    """One member's rebalances. Each input returns those that it has ended."""

    def __init__(self, group_id: str, client_id: str, assignor: str) -> None:
        """Start outside any group; `assignor` is what records call the broker's."""
        self._group_id = group_id
        self._client_id = client_id
        self._assignor = assignor
        self._cycle: _Cycle | None = None
        self._owned: frozenset[TopicPartitionKey] = frozenset()
        self._subscribed = False
        self._last = MemberIdentity()

    @property
    def settles_at(self) -> float:
        """When `settle` has something to end; infinite if nothing waits for it."""
        held = None if self._cycle is None else self._cycle.end
        return float("inf") if held is None else held.ended + SETTLE

    def subscribed(self, now: float) -> list[Rebalance]:
        """The application subscribed; another subscription need not lead to another assignment."""
        ended: list[Rebalance] = []
        if not self._subscribed:
            self._subscribed = True
            ended = self._end_held()
            self._begin("the consumer subscribed", now, now)
        return ended

    def leaving(self) -> list[Rebalance]:
        """The application unsubscribes or closes: what is revoked from now on is no rebalance to this member."""
        ended = self._end_held()
        self._cycle, self._subscribed = None, False
        return ended

    def revoked(
        self, partitions: Iterable[TopicPartitionKey], moment: Moment, *, lost: bool
    ) -> list[Rebalance]:
        """Partitions were given up, or lost."""
        ended = self._end_held()
        if self._subscribed:
            reason = "partitions were lost" if lost else OTHERS
            cycle = self._cycle or self._begin(reason, moment.began, moment.began)
            cycle.add(Phase.REVOKE, moment.ended - moment.began)
            cycle.mark = moment.ended
            cycle.lost |= lost
        self._owned -= frozenset(partitions)
        return ended

    def assigned(self, partitions: Iterable[TopicPartitionKey], moment: Moment) -> None:
        """Partitions were gained, or none."""
        told = self._cycle is None and moment.identity.generation == self._last.generation
        cycle = self._cycle
        if cycle is None and not told:
            cycle = self._begin(OTHERS, None, moment.began)
        self._owned |= frozenset(partitions)
        if cycle is None:
            return  # the rest of what has been told
        if not cycle.phases and moment.began - cycle.mark > 2 * SETTLE:
            cycle.started = None  # it may have been a member without partitions: of that nothing tells
        if cycle.started is not None:
            cycle.add(Phase.JOIN_AND_SYNC, moment.began - cycle.mark)
        cycle.add(Phase.ASSIGN, moment.ended - moment.began)
        cycle.mark = moment.ended
        cycle.end, self._last = moment, moment.identity

    def failed(self, error: str, now: float, wall: float) -> list[Rebalance]:
        """The coordinator refused the member; librdkafka goes on trying."""
        ended = self._end_held()
        cycle = self._cycle
        if cycle is None:
            return ended
        self._begin("joining again after an error", now, now).lost = cycle.lost
        end = Moment(now, now, wall, MemberIdentity(member_id=self._last.member_id))
        return [*ended, self._record(cycle, end, Outcome.FAILED, error)]

    def settle(self, now: float) -> list[Rebalance]:
        """End the rebalance whose last assignment was long enough ago."""
        return self._end_held() if now >= self.settles_at else []

    def _begin(self, reason: str, started: float | None, mark: float) -> _Cycle:
        self._cycle = _Cycle(reason, started, self._owned, mark)
        return self._cycle

    def _end_held(self) -> list[Rebalance]:
        cycle = self._cycle
        if cycle is None or cycle.end is None:
            return []
        self._cycle = None
        return [self._record(cycle, cycle.end, Outcome.LOST if cycle.lost else Outcome.COMPLETED, None)]

    def _record(self, cycle: _Cycle, end: Moment, outcome: Outcome, error: str | None) -> Rebalance:
        return Rebalance(
            group=self._group_id,
            client_id=self._client_id,
            member_id=end.identity.member_id,
            generation=end.identity.generation,
            protocol=None if outcome is Outcome.FAILED else self._assignor,
            outcome=outcome,
            reason=cycle.reason,
            duration=None if cycle.started is None else end.ended - cycle.started,
            phases=cycle.phases,
            partitions=by_topic(self._owned),
            ended_at=end.wall,
            error=error,
            kind=Kind.CONSUMER,
            partitions_before=by_topic(cycle.before),
        )


def by_topic(keys: Iterable[TopicPartitionKey]) -> Partitions:
    """Return partition numbers by topic, both ascending."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(keys):
        topics.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}
