"""One consumer's lag by partition: log end minus position. Pure: no clock, no threads.

The position is librdkafka's `app_offset`, which it resets at each assignment and seek. Until a message was
returned there is none. Then the position is, in this order:

1. the offset at which the consumer has started or sought the partition itself;
2. the committed offset, which librdkafka has fetched before it starts the partition;
3. the fetch position, while no message was fetched; or the log's start, if the partition starts there.

Otherwise the lag is unknown. It is unknown as well if the log's end is below the position: the end is then
that of an earlier assignment.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.core.configuration import Configuration
from groupwright.core.start_offsets import OFFSET_BEGINNING
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics

SETTLE = 1.5
"""Seconds for which a partition without a message must have been fetched, so that log end and fetch position
are those of this assignment: librdkafka updates them within a second, and a fetch takes 0.5 s at its end."""
_STORED = -1000
_EARLIEST = frozenset({"smallest", "earliest", "beginning"})


@dataclass(slots=True)
class _Start:
    """The start of an assigned partition."""

    seen_at: float
    """When librdkafka was first seen to fetch it, or last seen not to, as it was paused; in seconds by
    librdkafka's clock."""
    given: int
    """The offset at which the consumer has started it; `_STORED` for the committed one."""
    received: int
    """Messages fetched before."""
    offset: int | None = None
    """The position, once it is known."""
    paused_at: int | None = None
    """The position at which it was paused; None once it is fetched again."""
    last: int | None = None
    """The position in the last statistics."""


class LagTracker:
    """One consumer's lag. Not thread-safe."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Start without any lag.

        Args:
            settings: The consumer's configuration.
        """
        config = Configuration(settings)
        self.read_uncommitted = config.text("isolation.level") == "read_uncommitted"
        self.lag: dict[TopicPartitionKey, int] = {}
        """Lag in messages of partitions whose lag is known."""
        self._earliest = config.text("auto.offset.reset") in _EARLIEST
        self._starts: dict[TopicPartitionKey, _Start] = {}
        self._received: dict[TopicPartitionKey, int] = {}
        self._changed_at: dict[TopicPartitionKey, float] = {}
        self._paused: dict[TopicPartitionKey, int] = {}

    def update(
        self,
        statistics: ConsumerStatistics,
        taken_at: float,
        start_offsets: Mapping[TopicPartitionKey, int],
        paused: Iterable[TopicPartitionKey] = (),
    ) -> list[TopicPartitionKey]:
        """Replace the lag by that at newer statistics.

        Args:
            statistics: The statistics.
            taken_at: When librdkafka took them, by the clock of `forget`.
            start_offsets: `MembershipSnapshot.start_offsets`.
            paused: `MembershipSnapshot.paused`.

        Returns:
            The paused partitions of which the position is known. librdkafka does not fetch them, so their log
            ends must be looked up, and passed to `set_ends`.
        """
        lag: dict[TopicPartitionKey, int] = {}
        starts: dict[TopicPartitionKey, _Start] = {}
        positions: dict[TopicPartitionKey, int] = {}
        not_fetched = frozenset(paused)
        for key, partition in statistics.partitions.items():
            if taken_at < self._changed_at.get(key, -math.inf):
                continue
            end = partition.high_watermark if self.read_uncommitted else partition.last_stable
            given = start_offsets.get(key, _STORED)
            start = starts[key] = self._start(key, given, statistics.taken_at)
            is_paused = key in not_fetched
            position = self._position(key, start, partition, end, statistics.taken_at, is_paused=is_paused)
            if position is None:
                continue
            if is_paused:
                positions[key] = start.paused_at = position
                start.seen_at = statistics.taken_at
            if start.paused_at != position or statistics.taken_at - start.seen_at >= SETTLE:
                start.paused_at = None
                if position <= end:
                    lag[key] = end - position
            elif start.last == position and key in self.lag:
                lag[key] = self.lag[key]
            start.last = position
        self.lag, self._starts, self._paused = lag, starts, positions
        return list(positions)

    def set_ends(self, ends: Mapping[TopicPartitionKey, int]) -> None:
        """Set the lag of paused partitions by their log ends; a negative end is unknown."""
        for key, end in ends.items():
            position = self._paused.get(key)
            if position is not None and position <= end:
                self.lag[key] = end - position
            elif position is not None:
                self.lag.pop(key, None)

    def forget(self, keys: Iterable[TopicPartitionKey], now: float) -> None:
        """Forget the lag of partitions that were assigned, unassigned or sought.

        Args:
            keys: The partitions.
            now: The time until which statistics of them are ignored.
        """
        for key in keys:
            self._changed_at[key] = now
            self.lag.pop(key, None)
            self._starts.pop(key, None)
            self._paused.pop(key, None)

    def _start(self, key: TopicPartitionKey, given: int, now: float) -> _Start:
        start = self._starts.get(key)
        if start is None:
            return _Start(now, given, self._received.get(key, 0))
        if start.given != given:
            # After a seek the log's end is known already; the fetch position is not, if it is needed.
            return _Start(start.seen_at if given >= 0 else now, given, self._received.get(key, 0))
        return start

    def _position(
        self,
        key: TopicPartitionKey,
        start: _Start,
        partition: PartitionStatistics,
        end: int,
        now: float,
        *,
        is_paused: bool,
    ) -> int | None:
        """Return the position of a partition; None if unknown."""
        if partition.position < 0:
            if start.offset is None:
                is_settled = now - start.seen_at >= SETTLE
                start.offset = self._start_position(
                    start, partition, end, is_paused=is_paused, is_settled=is_settled
                )
            return start.offset
        self._received[key] = partition.received
        if start.paused_at is None:
            start.seen_at = -math.inf  # the message came with the log's end
        return partition.position

    def _start_position(
        self, start: _Start, partition: PartitionStatistics, end: int, *, is_paused: bool, is_settled: bool
    ) -> int | None:
        """Return the position of a partition from which no message was returned; None if unknown."""
        offset = partition.committed if start.given == _STORED else start.given
        if is_paused and offset >= 0:
            return offset  # it may never have been fetched, so that its log is unknown
        if not is_settled:
            return None
        if partition.log_start <= offset <= end and offset >= 0:
            return offset
        if partition.received == start.received and partition.fetch_position >= 0:
            return partition.fetch_position
        is_reset = start.given == _STORED or start.given >= 0
        from_beginning = start.given == OFFSET_BEGINNING or (is_reset and self._earliest)
        return partition.log_start if from_beginning and partition.log_start >= 0 else None
