"""The page's data, of bounded size: plain dataclasses, without Spark and HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

PHASES = ("revoke", "join", "sync", "join_and_sync", "assign")
"""The phases of a rebalance as events name them, in order."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the page's size. The page states what they leave out.

    Attributes:
        groups: Groups in a table or chart.
        rebalances: Rebalances of the timeline.
        generations: Generations of the ownership map.
        lanes: Members in a chart.
        points: Points or cells along a time axis.
    """

    groups: int = 12
    rebalances: int = 8
    generations: int = 60
    lanes: int = 18
    points: int = 96


@dataclass(frozen=True, slots=True)
class Offender:
    """A group and the cost of its rebalances.

    Attributes:
        group: The group.
        rebalances: Number of rebalances.
        moved: Partitions moved in these rebalances.
        fewest: The minimum of moves for optimally balanced assignments.
        seconds: Total duration of the rebalances, in seconds; None if unknown.
        longest: Duration of the longest one, in seconds; None if unknown.
        reprocessed: Messages by which committed offsets went back.
        trigger: The most frequent trigger.
    """

    group: str
    rebalances: int
    moved: int
    fewest: int
    seconds: float | None
    longest: float | None
    reprocessed: int
    trigger: str

    @property
    def avoidable(self) -> int:
        """Avoidable moves."""
        return max(0, self.moved - self.fewest)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over all rebalances of all groups.

    Attributes:
        rebalances: Number of rebalances.
        groups: Number of groups.
        moved: Partitions moved.
        fewest: The minimum of moves for optimally balanced assignments.
        seconds: Total duration in seconds, of rebalances with a known duration; None if there are none.
        timed: Number of rebalances with a known duration.
        since: Completion of the first rebalance.
        until: Completion of the last rebalance.
    """

    rebalances: int
    groups: int
    moved: int
    fewest: int
    seconds: float | None
    timed: int
    since: datetime
    until: datetime


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
class Rebalance:
    """A rebalance in the timeline."""

    generation: int
    completed: datetime
    trigger: str
    duration: float | None
    moved: int
    joined: Sequence[str]
    left: Sequence[str]
    events: Sequence[MemberEvent]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A group's last rebalances, in order."""

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
class LagSeries:
    """A group's lag over all partitions: the maximum of each interval, or None without samples."""

    group: str
    messages: Sequence[int | None]
    seconds: float | None

    @property
    def peak(self) -> int:
        """The maximum."""
        return max((value for value in self.messages if value is not None), default=0)

    @property
    def last(self) -> int:
        """The last value."""
        return next((value for value in reversed(self.messages) if value is not None), 0)


@dataclass(frozen=True, slots=True)
class Lag:
    """The groups with the largest lag."""

    since: datetime
    until: datetime
    series: Sequence[LagSeries]
    groups: int


@dataclass(frozen=True, slots=True)
class FlappingClient:
    """A client that joins and leaves repeatedly."""

    group: str
    client: str
    times: int


@dataclass(frozen=True, slots=True)
class Churn:
    """Rebalances by group and interval.

    Attributes:
        since: Start of the first interval.
        hours: Length of an interval, in hours.
        rows: Number of rebalances in each interval, by group.
        storms: Indices of the intervals with a storm, by group.
        groups: Number of all groups.
        flapping_clients: The clients that joined and left most often.
    """

    since: datetime
    hours: int
    rows: Mapping[str, Sequence[int]]
    storms: Mapping[str, frozenset[int]]
    groups: int
    flapping_clients: Sequence[FlappingClient]


@dataclass(frozen=True, slots=True)
class Alternative:
    """All groups' history as replayed with an assignor, or as recorded."""

    assignor: str
    actual: bool
    rebalances: int
    moved: int
    fewest: int
    moved_actual: int
    imbalance_mean: float | None
    imbalance_max: int | None
    topic_spread: float | None
    far: float | None
    rounds: int
    errors: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All data of the page; sections without data are None or empty."""

    totals: Totals | None = None
    offenders: Sequence[Offender] = ()
    timeline: Timeline | None = None
    ownership: Ownership | None = None
    lag: Lag | None = None
    churn: Churn | None = None
    alternatives: Sequence[Alternative] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
