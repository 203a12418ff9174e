"""The page's data, of bounded size: plain dataclasses, without Spark and HTML. None is an unknown value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from groupwright.pipeline._report.group_facts import Detail, has_moves


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
        samples: Samples of the lag after a rebalance, in search of one that is as low as before.
    """

    index: int = 5_000
    groups: int = 12
    details: int = 5
    rebalances: int = 12
    panels: int = 6
    generations: int = 60
    lanes: int = 18
    points: int = 96
    samples: int = 240


def avoidable_moves(moved: int | None, fewest: int | None) -> int | None:
    """Return the moves beyond the minimum."""
    return None if moved is None or fewest is None else max(0, moved - fewest)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A group in the index.

    Attributes:
        group: The group.
        group_type: `classic`, `consumer`, `share` or `streams`; None if unknown.
        protocol: Its last assignor.
        members: Members after its last rebalance.
        end: Its end, if its last record is a tombstone.
        rebalances: Number of rebalances, without handovers; of a share or streams group, of its epochs.
        handovers: Number of handovers.
        moved: Partitions moved, in rebalances with known moves.
        fewest: The minimum of moves for optimally balanced assignments, in these rebalances.
        seconds: Total duration of the rebalances.
        longest: Duration of the longest one, with its handovers.
        reprocessed: Messages by which committed offsets went back.
        causes: Number of rebalances by cause, the most frequent first.
        last: Completion of the last rebalance; None without any.
        lag: Messages of lag at the last sample.
    """

    group: str
    group_type: str | None
    protocol: str | None
    members: int | None
    end: "GroupEnd | None"
    rebalances: int
    handovers: int
    moved: int | None
    fewest: int | None
    seconds: float | None
    longest: float | None
    reprocessed: int | None
    causes: Mapping[str, int]
    last: datetime | None
    lag: int | None

    @property
    def avoidable(self) -> int | None:
        """Avoidable moves."""
        return avoidable_moves(self.moved, self.fewest)

    @property
    def has_moves(self) -> bool:
        """True if its partitions have owners."""
        return has_moves(self.group_type)

    @property
    def state(self) -> str:
        """The state as text. Expiry and deletion leave the same tombstones; share groups do not expire."""
        if self.end is None:
            return "empty" if self.members == 0 else ""
        return "deleted" if self.group_type == "share" else "deleted or expired"


@dataclass(frozen=True, slots=True)
class GroupEnd:
    """End of a group: its tombstone.

    Attributes:
        time: When it was written.
        idle: Time since the group's record before it; None if that is not in the range.
    """

    time: datetime
    idle: timedelta | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over all rebalances of all groups in a range of time.

    Attributes:
        rebalances: Number of rebalances, without handovers.
        handovers: Number of handovers.
        groups: Number of groups.
        moved: Partitions moved, in rebalances with known moves; None if there are none.
        fewest: The minimum of moves for optimally balanced assignments, in these rebalances.
        counted: Number of rebalances with known moves.
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
    moved: int | None
    fewest: int | None
    counted: int
    seconds: float | None
    longest: float | None
    timed: int
    reprocessed: int | None
    since: datetime
    until: datetime

    @property
    def avoidable(self) -> int | None:
        """Avoidable moves."""
        return avoidable_moves(self.moved, self.fewest)

    @property
    def hours(self) -> float:
        """Length of the range in hours."""
        return (self.until - self.since).total_seconds() / 3600


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Rebalances, moves and seconds of a group: a value for each of two ranges."""

    group: str
    rebalances: tuple[int, int]
    moved: tuple[int | None, int | None]
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
    """All groups' history as replayed with an assignor, or as recorded.

    Attributes:
        assignor: The assignor's name; `actual` for the recorded history.
        actual: Whether it is the recorded history.
        numbers: Totals by column of the table `what_if`, and the number of `errors`.
        imbalance_mean: Mean imbalance over time.
        imbalance_max: The largest imbalance.
        peak_load: Mean over time of the largest load of a member over the mean load.
        topic_spread: Mean of the column `topic_spread`.
        rack_mismatches: Mean of the column `rack_mismatches`.
        error: An error, if the assignor failed.
    """

    assignor: str
    actual: bool
    numbers: Mapping[str, float | None]
    imbalance_mean: float | None
    imbalance_max: int | None
    peak_load: float | None
    topic_spread: float | None
    rack_mismatches: float | None
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
class Facts:
    """All data of the page; sections without data are None or empty.

    `groups` is the number of all groups, and `absent` are the groups asked for that have no rebalances.
    """

    totals: Totals | None = None
    index: Sequence[IndexRow] = ()
    groups: int = 0
    details: Sequence[Detail] = ()
    absent: Sequence[str] = ()
    lag: Lag | None = None
    churn: Churn | None = None
    alternatives: Sequence[Alternative] = ()
    comparison: Comparison | None = None
    deploys: DeployStudy | None = None
