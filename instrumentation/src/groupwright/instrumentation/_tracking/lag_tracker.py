"""One consumer's lag by partition: log end minus position. Pure: no clock, no threads.

The position is librdkafka's `app_offset`, which librdkafka resets at each assignment and seek. Before the
first message is returned, `app_offset` is unknown, and the position is the first of these that is known:

1. the offset at which the application started the partition, or to which it sought;
2. the committed offset, which librdkafka fetches before it starts the partition;
3. the fetch position, while no message was fetched; or the log's start, if the partition starts there.

Without any of them the lag is unknown. It is also unknown if the log's end is below the position, because
that end is from an earlier assignment.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.core.configuration import Configuration
from groupwright.core.start_offsets import OFFSET_BEGINNING
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics

FETCH_SETTLE = 1.5
"""Seconds of fetching after which a partition's log end and fetch position are those of this assignment.

librdkafka updates them within a second, and a fetch at the log's end takes 0.5 s (`fetch.wait.max.ms`)."""
_OFFSET_STORED = -1000  # RD_KAFKA_OFFSET_STORED: the committed offset
_EARLIEST = frozenset({"smallest", "earliest", "beginning"})


@dataclass(slots=True)
class _Start:
    """The start of an assigned partition."""

    fetched_since: float
    """Time of the first statistics that have the partition, or of the last in which it was paused, in seconds
    by librdkafka's clock; -inf once a message was returned."""
    start_offset: int
    """The offset at which the application started the partition; `_OFFSET_STORED` for the committed one."""
    received_before: int
    """`PartitionStatistics.received` as last seen with a position, before this start; any other value now
    means that messages were fetched since."""
    initial_position: int | None = None
    """The position before the first message, once it is known."""
    paused_at: int | None = None
    """The position at which it was paused; None once the log end is current again after the resume."""
    last_position: int | None = None
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
            taken_at: When librdkafka took them, by the clock of `forget`; `statistics.taken_at` is by
                librdkafka's own.
            start_offsets: `MembershipSnapshot.start_offsets`.
            paused: `MembershipSnapshot.paused`.

        Returns:
            The paused partitions of which the position is known. librdkafka does not fetch them, so their log
            ends must be looked up, and passed to `set_ends`.
        """
        lag: dict[TopicPartitionKey, int] = {}
        starts: dict[TopicPartitionKey, _Start] = {}
        positions: dict[TopicPartitionKey, int] = {}
        paused = frozenset(paused)
        for key, partition in statistics.partitions.items():
            if taken_at < self._changed_at.get(key, -math.inf):
                continue
            end = partition.high_watermark if self.read_uncommitted else partition.last_stable_offset
            start_offset = start_offsets.get(key, _OFFSET_STORED)
            start = starts[key] = self._start(key, start_offset, statistics.taken_at)
            is_paused = key in paused
            position = self._position(key, start, partition, end, statistics.taken_at, is_paused=is_paused)
            if position is None:
                continue
            if is_paused:
                positions[key] = start.paused_at = position
                start.fetched_since = statistics.taken_at
            # After a resume, the log end is still that of before the pause, until librdkafka has fetched
            # again. Until then, or until the position moves, the lag of the pause is kept.
            if start.paused_at != position or statistics.taken_at - start.fetched_since >= FETCH_SETTLE:
                start.paused_at = None
                if position <= end:
                    lag[key] = end - position
            elif start.last_position == position and key in self.lag:
                lag[key] = self.lag[key]
            start.last_position = position
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

    def _start(self, key: TopicPartitionKey, start_offset: int, now: float) -> _Start:
        start = self._starts.get(key)
        if start is None:
            return _Start(now, start_offset, self._received.get(key, 0))
        if start.start_offset != start_offset:
            # After a seek to an offset, position and log end are known. After one to a log's start or end,
            # the position is derived from statistics, which are up to a second late.
            return _Start(
                start.fetched_since if start_offset >= 0 else now, start_offset, self._received.get(key, 0)
            )
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
            if start.initial_position is None:
                is_settled = now - start.fetched_since >= FETCH_SETTLE
                start.initial_position = self._start_position(
                    start, partition, end, is_paused=is_paused, is_settled=is_settled
                )
            return start.initial_position
        self._received[key] = partition.received
        if start.paused_at is None:
            start.fetched_since = -math.inf  # the message came with the log's end
        return partition.position

    def _start_position(
        self, start: _Start, partition: PartitionStatistics, end: int, *, is_paused: bool, is_settled: bool
    ) -> int | None:
        """Return the position of a partition from which no message was returned; None if unknown."""
        offset = partition.committed if start.start_offset == _OFFSET_STORED else start.start_offset
        if is_paused and offset >= 0:
            return offset  # it may never have been fetched, so that its log is unknown
        if not is_settled:
            return None
        if partition.log_start <= offset <= end and offset >= 0:
            return offset
        if partition.received == start.received_before and partition.fetch_position >= 0:
            return partition.fetch_position
        is_reset = start.start_offset == _OFFSET_STORED or start.start_offset >= 0
        from_beginning = start.start_offset == OFFSET_BEGINNING or (is_reset and self._earliest)
        return partition.log_start if from_beginning and partition.log_start >= 0 else None
