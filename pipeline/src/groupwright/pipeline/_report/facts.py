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
        rebalances: How many it had.
        moved: Partitions moved in them.
        fewest: The fewest that were needed.
        seconds: How long they took together; None if nothing shows it.
        longest: How long the longest took.
        reprocessed: Messages read again.
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
    def needless(self) -> int:
        """Avoidable moves."""
        return max(0, self.moved - self.fewest)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over all rebalances of all groups."""

    rebalances: int
    groups: int
    moved: int
    fewest: int
    seconds: float | None
    timed: int
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Phased:
    """One member's event of a rebalance.

    Attributes:
        member: The member's id.
        client: Its `client.id`.
        start: When it began.
        phases: Seconds by phase.
        outcome: `completed`, `lost` or `failed`.
        error: Why it failed.
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
    events: Sequence[Phased]


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
        generations: Numbers and times, in order.
        total: How many generations the group had in all.
        members: Ids and names, in the order in which they came.
        counts: By member and generation; None where the member was not in it.
        last: How many partitions each member of the last generation had, those too that are not shown.
        left_out: How many members are not shown.
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
class Flapper:
    """A client that joins and leaves repeatedly."""

    group: str
    client: str
    times: int


@dataclass(frozen=True, slots=True)
class Churn:
    """Rebalances by group and interval.

    Attributes:
        since: Where the first stretch begins.
        hours: How long a stretch is.
        rows: By group the rebalances of each stretch.
        storms: By group the stretches with a storm.
        groups: How many groups there were in all.
        flappers: The clients that flapped the most.
    """

    since: datetime
    hours: int
    rows: Mapping[str, Sequence[int]]
    storms: Mapping[str, frozenset[int]]
    groups: int
    flappers: Sequence[Flapper]


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
