"""Data of the sections of single groups: plain dataclasses. None is an unknown value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

PHASES = ("revoke", "join", "sync", "join_and_sync", "assign")
"""The phases of a rebalance as events name them, in order."""


def has_moves(group_type: str | None) -> bool:
    """Return whether partitions have owners; those of a share group have none, a streams group has tasks."""
    return group_type not in {"share", "streams"}


@dataclass(frozen=True, slots=True)
class MemberEvent:
    """A member's event of a rebalance.

    Attributes:
        member: The member id.
        client: The member's `client.id`.
        start: Start of the rebalance.
        phases: Seconds by phase.
        outcome: `completed`, `lost` or `failed`.
        error: The error, if the rebalance failed.
    """

    member: str
    client: str
    start: datetime
    phases: Mapping[str, float]
    outcome: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A member's report that its partitions were lost: it had been removed from the group.

    Attributes:
        client: Its `client.id`.
        reported: When it noticed.
        reason: The reason as the member knows it.
    """

    client: str
    reported: datetime
    reason: str | None


LagSample = tuple[datetime, int]
"""A time and the messages of a group's lag."""


@dataclass(frozen=True, slots=True)
class LagAfter:
    """A group's lag after a rebalance, in messages, as far as it was sampled before the next one.

    Attributes:
        before: At the last sample before it.
        peak: The largest at any sample until `seconds`.
        seconds: From its start to the first sample after its end at which the lag is not above `before`; if
            there is none, to the last sample.
        is_back: Whether there is one.
    """

    before: int
    peak: int
    seconds: float
    is_back: bool

    @classmethod
    def of(cls, samples: Sequence[LagSample], started: datetime, ended: datetime) -> "LagAfter | None":
        """Return what samples tell, in order of time; None without one before it and one after its end."""
        before = next((messages for at, messages in reversed(samples) if at <= started), None)
        if before is None:
            return None
        peak = before
        for at, messages in samples:
            if at >= ended and messages <= before:
                return cls(before, peak, (at - started).total_seconds(), is_back=True)
            if at > started:
                peak = max(peak, messages)
        last, _ = samples[-1]
        return cls(before, peak, (last - started).total_seconds(), is_back=False) if last >= ended else None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance of a group, with its handovers.

    Attributes:
        generation: The generation.
        completed: When the generation was written.
        started: When it began.
        cause: The cause, as in the table `rebalances`.
        duration: Seconds, with handovers.
        moved: Partitions moved.
        fewest: The minimum of moves needed.
        handovers: Number of handovers.
        reprocessed: Messages processed again.
        joined: Members that joined.
        left: Members that left.
        clients: `client.id` of these members, by member id.
        timeouts: `session.timeout.ms` and `max.poll.interval.ms` of the members that left, in seconds, by id.
        losses: Reports of members that had been removed.
        has_events: Whether members of the group report events at all.
        events: The members' events.
        error: The first error among them.
        has_moves: Whether partitions have owners; if not, this is an epoch of a share or streams group.
        lag: The lag after it; None if unknown.
    """

    generation: int
    completed: datetime
    started: datetime | None
    cause: str
    duration: float | None
    moved: int | None
    fewest: int | None
    handovers: int
    reprocessed: int
    joined: Sequence[str]
    left: Sequence[str]
    clients: Mapping[str, str]
    timeouts: Mapping[str, tuple[float | None, float | None]]
    losses: Sequence[Loss]
    has_events: bool
    events: Sequence[MemberEvent]
    error: str | None = None
    has_moves: bool = True
    lag: LagAfter | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A group's last rebalances.

    Attributes:
        group: The group.
        total: Number of all its rebalances.
        rebalances: The last ones, in order.
    """

    group: str
    total: int
    rebalances: Sequence[Rebalance]


@dataclass(frozen=True, slots=True)
class Ownership:
    """Partitions of each member in a group's last generations.

    Attributes:
        group: The group.
        generations: Numbers and times of the generations shown, in order.
        total: Number of all generations.
        members: Member ids and names, in the order in which they joined.
        counts: Number of partitions by member and generation; None if the member was not in the generation.
        last: Number of partitions of all members of the last generation, ascending.
        left_out: Number of members that are not shown.
    """

    group: str
    generations: Sequence[tuple[int, datetime]]
    total: int
    members: Sequence[tuple[str, str]]
    counts: Sequence[Sequence[int | None]]
    last: Sequence[int]
    left_out: int


@dataclass(frozen=True, slots=True)
class Detail:
    """The section of one group.

    Attributes:
        timeline: Its last rebalances.
        ownership: Partitions by member; None if its members are unknown.
        members: Members after its last rebalance; None if unknown.
        group_type: `classic`, `consumer`, `share` or `streams`; None if unknown.
    """

    timeline: Timeline
    ownership: Ownership | None
    members: int | None
    group_type: str | None = None

    @property
    def unit(self) -> str:
        """The word for one of what a member owns."""
        return "active task" if self.group_type == "streams" else "partition"
