"""The page's data, of bounded size: plain dataclasses, without Spark and HTML. None is an unknown value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

PHASES = ("revoke", "join", "sync", "join_and_sync", "assign")
"""The phases of a rebalance as events name them, in order."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the page's size. The page states what they leave out.

    Attributes:
        index: Groups in the index, which can be searched and sorted.
        groups: Groups in a chart.
        details: Groups with a section of their own.
        rebalances: Rebalances in such a section.
        panels: Rebalances of its timeline.
        generations: Generations of its ownership map.
        lanes: Members in a chart.
        points: Points or cells along a time axis.
    """

    index: int = 5_000
    groups: int = 12
    details: int = 5
    rebalances: int = 12
    panels: int = 6
    generations: int = 60
    lanes: int = 18
    points: int = 96


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A group in the index.

    Attributes:
        group: The group.
        kind: `classic` or `consumer`.
        protocol: Its last assignor.
        members: Members after its last rebalance.
        is_deleted: Whether its last record deletes it.
        rebalances: Number of rebalances, without handovers.
        handovers: Number of handovers.
        moved: Partitions moved.
        fewest: The minimum of moves for optimally balanced assignments.
        seconds: Total duration of the rebalances.
        longest: Duration of the longest one, with its handovers.
        reprocessed: Messages by which committed offsets went back.
        triggers: Number of rebalances by trigger, the most frequent first.
        last: Completion of the last rebalance.
        lag: Messages of lag at the last sample.
    """

    group: str
    kind: str | None
    protocol: str | None
    members: int | None
    is_deleted: bool
    rebalances: int
    handovers: int
    moved: int
    fewest: int
    seconds: float | None
    longest: float | None
    reprocessed: int
    triggers: Mapping[str, int]
    last: datetime
    lag: int | None

    @property
    def avoidable(self) -> int:
        """Avoidable moves."""
        return max(0, self.moved - self.fewest)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over all rebalances of all groups in a range of time.

    Attributes:
        rebalances: Number of rebalances, without handovers.
        handovers: Number of handovers.
        groups: Number of groups.
        moved: Partitions moved.
        fewest: The minimum of moves for optimally balanced assignments.
        seconds: Total duration, of rebalances with a known duration; None if there are none.
        longest: The longest of these durations.
        timed: Number of rebalances with a known duration.
        reprocessed: Messages by which committed offsets went back.
        since: Completion of the first rebalance; for a range that was asked for, its start.
        until: Completion of the last rebalance, or the end of the range.
    """

    rebalances: int
    handovers: int
    groups: int
    moved: int
    fewest: int
    seconds: float | None
    longest: float | None
    timed: int
    reprocessed: int
    since: datetime
    until: datetime

    @property
    def hours(self) -> float:
        """Length of the range in hours."""
        return (self.until - self.since).total_seconds() / 3600


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Rebalances and moves of a group in two ranges."""

    group: str
    rebalances: tuple[int, int]
    moved: tuple[int, int]
    seconds: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ranges of time side by side.

    Attributes:
        before: Totals of the first range.
        after: Totals of the second.
        peak_lag: The largest lag of a group in each; None without samples.
        groups: The groups whose rebalances per hour changed most.
        deploy: The time of the deploy between them, if there was one.
    """

    before: Totals
    after: Totals
    peak_lag: tuple[int | None, int | None]
    groups: Sequence[GroupChange]
    deploy: datetime | None = None


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


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance of a group, with its handovers.

    Attributes:
        generation: The generation.
        completed: When the generation was written.
        started: When it began.
        trigger: The reason, as in the table `rebalances`.
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
    """

    generation: int
    completed: datetime
    started: datetime | None
    trigger: str
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
    """A group's lag over all partitions.

    Attributes:
        group: The group.
        messages: The maximum of each interval; None without samples.
        seconds: Age of the oldest uncommitted message, at most; None if unknown for all samples with lag.
        is_age_partial: Whether the age is unknown for some of the samples with lag.
    """

    group: str
    messages: Sequence[int | None]
    seconds: float | None
    is_age_partial: bool = False

    @property
    def peak(self) -> int:
        """The maximum."""
        return max((value for value in self.messages if value is not None), default=0)

    @property
    def last(self) -> int | None:
        """The last value; None without samples."""
        return next((value for value in reversed(self.messages) if value is not None), None)


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag of some groups.

    Attributes:
        since: Time of the first sample.
        until: Time of the last sample.
        series: The lag of the groups with the most, and of those with a section of their own.
        groups: Number of groups with samples.
        largest: Number of series that are among the largest.
    """

    since: datetime
    until: datetime
    series: Sequence[LagSeries]
    groups: int
    largest: int = 6


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
        seconds: Length of an interval.
        rows: Number of rebalances in each interval, by group.
        storms: Indices of the intervals with a storm, by group.
        groups: Number of all groups.
        flapping_clients: The clients that joined and left most often.
    """

    since: datetime
    seconds: int
    rows: Mapping[str, Sequence[int]]
    storms: Mapping[str, frozenset[int]]
    groups: int
    flapping_clients: Sequence[FlappingClient]


@dataclass(frozen=True, slots=True)
class Alternative:
    """All groups' history as replayed with an assignor, or as recorded; `numbers` are totals by column."""

    assignor: str
    actual: bool
    numbers: Mapping[str, float | None]
    imbalance_mean: float | None
    imbalance_max: int | None
    peak_load: float | None
    topic_spread: float | None
    far: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DeployCost:
    """Simulated cost of a change to a group, with some settings; a range over seeds.

    Attributes:
        scenario: The change, as text: a rolling restart, a crash.
        settings: The settings, as text.
        is_present: Whether these are the group's present settings, as far as they are known.
        rebalances: Rebalances.
        partition_seconds: Sum of the pauses of all partitions.
        longest_pause: The longest pause of a partition, in seconds.
        delivered_twice: Messages delivered twice.
    """

    scenario: str
    settings: str
    is_present: bool
    rebalances: tuple[float, float]
    partition_seconds: tuple[float, float]
    longest_pause: tuple[float, float]
    delivered_twice: tuple[float, float]


@dataclass(frozen=True, slots=True)
class DeployStudy:
    """Simulated deploys of a group.

    Attributes:
        group: The group.
        assumptions: The assumptions, as sentences.
        costs: One cost for each scenario and settings.
    """

    group: str
    assumptions: Sequence[str]
    costs: Sequence[DeployCost]


@dataclass(frozen=True, slots=True)
class Detail:
    """The section of one group.

    Attributes:
        timeline: Its last rebalances.
        ownership: Partitions by member; None if its members are unknown.
        members: Members after its last rebalance; None if unknown.
    """

    timeline: Timeline
    ownership: Ownership | None
    members: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All data of the page; sections without data are None or empty."""

    totals: Totals | None = None
    index: Sequence[IndexRow] = ()
    details: Sequence[Detail] = ()
    lag: Lag | None = None
    churn: Churn | None = None
    alternatives: Sequence[Alternative] = ()
    comparison: Comparison | None = None
    deploys: DeployStudy | None = None
