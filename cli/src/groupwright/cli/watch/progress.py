"""Progress of a group: rates of production and consumption, and partitions without progress. Pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from groupwright.cli._cluster.group_history import UnmovedPartitions
from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.core import TopicPartitionKey

_WINDOW_SECONDS = 30.0
_WINDOW_INTERVALS = 4
_TREND_SECONDS = 15.0
"""Shortest time for a trend: three of librdkafka's and Java's default intervals of automatic commits."""
_STEADY = 0.05
"""Difference between production and consumption, relative to the larger one, that is no trend."""


class Trend(StrEnum):
    """Direction of the lag."""

    UNKNOWN = "unknown"
    """Not watched for long enough."""
    NONE = "none"
    """There is no lag."""
    GROWING = "growing"
    STEADY = "steady"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class LagRate:
    """Lag of a group, and how it changes.

    Attributes:
        lag: Messages; None if the lag of no partition is known.
        unknown: Partitions that the lag and the rates leave out, since the end of their log is not known.
        produced: Messages a second by which the last stable offsets of the group's partitions advance; None
            before the second snapshot.
        consumed: Messages a second that the group committed, likewise.
        trend: Direction of the lag; not known while partitions are left out.
    """

    lag: int | None = None
    produced: float | None = None
    consumed: float | None = None
    trend: Trend = Trend.UNKNOWN
    unknown: int = 0

    @property
    def growth(self) -> float:
        """Messages a second by which the lag grows; negative if it drains."""
        return (self.produced or 0.0) - (self.consumed or 0.0)

    @property
    def drain_seconds(self) -> float | None:
        """Time until the lag is drained at these rates; None unless it drains."""
        return None if self.trend is not Trend.DRAINING or self.lag is None else self.lag / -self.growth


@dataclass(frozen=True, slots=True)
class Stalled:
    """A partition that lags, and whose committed offset does not move, or that has none.

    Attributes:
        committed: The committed offset; None if there is none.
        member: The name of its owner; None if it has none.
        seconds: For how long this has been seen.
    """

    topic: str
    partition: int
    committed: int | None
    member: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class _Sample:
    time: float
    produced: int
    consumed: int


class Progress:
    """Progress of a group, from its first snapshot on."""

    def __init__(self, interval: float, stalled_seconds: float) -> None:
        """Start before the first snapshot.

        Args:
            interval: Seconds between snapshots.
            stalled_seconds: Seconds without progress after which a partition is stalled.
        """
        self._stalled_seconds = stalled_seconds
        self._window = max(_WINDOW_SECONDS, _WINDOW_INTERVALS * interval)
        self._samples: deque[_Sample] = deque()
        self._partitions: dict[TopicPartitionKey, PartitionLag] = {}
        self._unmoved = UnmovedPartitions()

    def update(self, lag: GroupLag, time: float) -> None:
        """Take the group's next snapshot."""
        self._partitions, former = (
            {(each.topic, each.partition): each for each in lag.partitions},
            self._partitions,
        )
        before = {  # without those of a topic that was created again, and those that nobody reads or knows
            key: former[key]
            for key, each in self._partitions.items()
            if key in former
            and former[key].log == each.log
            and each.is_read
            and not (former[key].is_log_unknown or each.is_log_unknown)
        }
        produced = consumed = 0
        for key, each in self._partitions.items():
            if key in before:
                produced += _advance(before[key].stable_end, each.stable_end)
                consumed += _consumption(before[key], each)
        last = self._samples[-1] if self._samples else _Sample(time, 0, 0)
        self._samples.append(_Sample(time, last.produced + produced, last.consumed + consumed))
        while len(self._samples) > 2 and self._samples[1].time <= time - self._window:  # noqa: PLR2004 - two give a rate
            self._samples.popleft()
        counted = (each for each in lag.partitions if each.is_read)
        self._unmoved.update(counted, time)

    def rate(self) -> LagRate:
        """Return the lag and its rates."""
        lags = [each.lag for each in self._partitions.values() if each.lag is not None]
        lag = sum(lags) if lags else None
        unknown = len(self.unknown())
        is_settled = lag == 0 and not unknown
        seconds = self._samples[-1].time - self._samples[0].time if self._samples else 0.0
        if seconds <= 0:
            return LagRate(lag, trend=Trend.NONE if is_settled else Trend.UNKNOWN, unknown=unknown)
        produced = (self._samples[-1].produced - self._samples[0].produced) / seconds
        consumed = self._consumed()
        if is_settled:
            trend = Trend.NONE
        elif lag is None or unknown or seconds < _TREND_SECONDS:
            trend = Trend.UNKNOWN
        elif abs(produced - consumed) <= _STEADY * max(produced, consumed):
            trend = Trend.STEADY
        else:
            trend = Trend.GROWING if produced > consumed else Trend.DRAINING
        return LagRate(lag, produced, consumed, trend, unknown)

    def _consumed(self) -> float:
        """Return the rate of consumption from one commit to another.

        Commits come in steps, so that the rate over the window itself would depend on where it begins. If the
        last step is long ago for steps of this group, the group has stopped, and the time since then counts.
        """
        samples = list(self._samples)
        steps = [after for before, after in pairwise(samples) if after.consumed > before.consumed]
        first, now = samples[0], samples[-1]
        if len(steps) > 1:
            between = (steps[-1].time - steps[0].time) / (len(steps) - 1)
            if now.time - steps[-1].time <= 2 * between:
                return (steps[-1].consumed - steps[0].consumed) / (steps[-1].time - steps[0].time)
        return max(0.0, (now.consumed - first.consumed) / (now.time - first.time))

    def stalled(self, time: float, owners: Mapping[TopicPartitionKey, str | None]) -> tuple[Stalled, ...]:
        """Return the partitions without progress, the longest first.

        Args:
            time: The time.
            owners: Names of the members that own partitions.
        """
        found = [
            Stalled(*key, each.committed, owners.get(key), seconds)
            for key, each in self._partitions.items()
            if (seconds := self._unmoved.seconds(each.log, time)) >= self._stalled_seconds
        ]
        return tuple(sorted(found, key=lambda each: (-each.seconds, each.topic, each.partition)))

    def lags(self) -> dict[TopicPartitionKey, int]:
        """Return the lag of each partition, as far as it is known, and without those that members share."""
        known = {key: each.lag for key, each in self._partitions.items() if len(each.owners) <= 1}
        return {key: lag for key, lag in known.items() if lag is not None}

    def unknown(self) -> frozenset[TopicPartitionKey]:
        """Return the partitions whose log end is not known."""
        return frozenset(key for key, each in self._partitions.items() if each.is_log_unknown)


def _consumption(before: PartitionLag, after: PartitionLag) -> int:
    """Return the messages that a group has consumed in between.

    Those of a share group are estimated from an end that comes after its lag, too high or too low by what is
    produced in that time: the sum over several snapshots is nearer.
    """
    start, end = before.processed_until, after.processed_until
    if start is None or end is None:
        return 0
    was_reset = (before.committed or 0) > (after.committed or 0)
    is_estimated = before.share_lag is not None and after.share_lag is not None
    return end - start if is_estimated and not was_reset else max(0, end - start)


def _advance(before: int | None, after: int | None) -> int:
    """Return by how much an offset advanced; 0 if it was reset backwards, or is not known."""
    return 0 if before is None or after is None else max(0, after - before)
