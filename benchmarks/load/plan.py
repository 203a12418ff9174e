"""Plan of the benchmark: contestants, timetable, settings and targets."""

from dataclasses import dataclass

from benchmarks.load.shapes import Shape

COUNTS, LAG_BASED, LOAD_AWARE, BY_TIME = CONTESTANTS = (
    "Groupwright cooperative-sticky",
    "Java lag-based",
    "Groupwright load-aware",
    "Groupwright load-aware by processing time",
)
"""Contestants, in the order of their turns. Those of Groupwright differ in the assignor and its weights."""

PARTITIONS = 48
MEMBERS = 8
SERVICE_SECONDS = 0.004
"""Time that a member spends on each message."""

CAPACITY = 1 / SERVICE_SECONDS
"""Messages per second that a member can process."""

TRAFFIC_SHARE = 0.95
"""Rate of the traffic, as a share of the capacity of the group."""

INITIAL_REBALANCE_DELAY_MS = 3_000
"""The broker's default: the first members come in one rebalance."""

MEMBER_TIMINGS = {
    "session.timeout.ms": 45_000,
    "heartbeat.interval.ms": 500,
    "auto.commit.interval.ms": 1_000,
}
"""Settings of all members. Their commits are what both `Lag` and the lag-based assignor read."""

MAX_POLL_RECORDS = 50
"""Setting of Java's members: a rebalance waits until a member has processed what `poll` returned."""

WEIGHT_WINDOW = 6.0
"""Seconds over which `Throughput` is averaged. The default, 300 s, is longer than the run."""

LAG_HORIZON = 12.0
"""Seconds of `Lag`, in the same ratio to the window as in the documentation's example."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Size of a run.

    Attributes:
        shapes: Shapes of the traffic.
        backlog_seconds: Seconds that an even group needs for the backlog.
        settle_seconds: Seconds from the beginning of the traffic, or from a rebalance, to the window.
        window_seconds: Seconds over which the throughput is measured.
        drifts: Number of times that the traffic drifts and the group rebalances.
        drift_seconds: Seconds from a drift to the rebalance; at least `WEIGHT_WINDOW` in a full run.
    """

    shapes: tuple[Shape, ...]
    backlog_seconds: float
    settle_seconds: float
    window_seconds: float
    drifts: int
    drift_seconds: float


FULL = Effort(
    shapes=tuple(Shape),
    backlog_seconds=12.0,
    settle_seconds=3.0,
    window_seconds=8.0,
    drifts=3,
    drift_seconds=7.0,
)
QUICK = Effort(
    shapes=(Shape.NEIGHBOURS,),
    backlog_seconds=2.0,
    settle_seconds=1.5,
    window_seconds=2.0,
    drifts=1,
    drift_seconds=2.0,
)

# --- What is to be reached

UNEVEN = 1.75
"""Peak over bound from which counts are said to leave 1.8 of the bound."""

LEAST_TIMES = 1.5
"""Throughput of `load-aware`, by either source of weights, over that of `cooperative-sticky`, where counts
leave 1.8 of the bound."""

MOST_OF_IDEAL = 1.1
"""Time of `load-aware` over the ideal time; the ideal throughput over its throughput."""

MOST_MOVES = 0.2
"""Moves of `load-aware` over those of the lag-based assignor."""
