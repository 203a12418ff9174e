"""One consumer's lag by partition: log end minus position. Pure: no clock, no threads.

The position is librdkafka's `app_offset`, which librdkafka resets at each assignment and seek. Before the
first message is returned, `app_offset` is unknown, and the position is the first of these that is known:

1. the offset at which the application started the partition, or to which it sought;
2. the committed offset, which librdkafka fetches before it starts the partition;
3. the fetch position, while no message was fetched; or the log's start, if the partition starts there.

Without any of them the lag is unknown. It is also unknown if the log's end is below the position, because
that end is from an earlier assignment.

The log's end is that of librdkafka's last fetch. librdkafka does not fetch a partition that is paused, or
while its queue of prefetched messages is full: then the end must be looked up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.core.configuration import Configuration, parse_integer
from groupwright.core.start_offsets import OFFSET_BEGINNING
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics

FETCH_SETTLE = 1.5
"""Seconds of fetching after which a partition's log end and fetch position are those of this assignment.

librdkafka updates them within a second, and a fetch at the log's end takes 0.5 s (`fetch.wait.max.ms`)."""
_OFFSET_STORED = -1000  # RD_KAFKA_OFFSET_STORED: the committed offset
_EARLIEST = frozenset({"smallest", "earliest", "beginning"})
_QUEUED_MESSAGES = 100_000  # librdkafka's default of `queued.min.messages`
_QUEUED_KILOBYTES = 65_536  # of `queued.max.messages.kbytes`


def reads_uncommitted(settings: Mapping[str, object]) -> bool:
    """Return whether a consumer reads to the high watermark, not to the last stable offset."""
    return Configuration(settings).text("isolation.level").lower() == "read_uncommitted"


@dataclass(slots=True)
class _Start:
    """The start of an assigned partition."""

    fetched_since: float
    """Time of the first statistics that have the partition, or of the last in which it was not fetched, in
    seconds by librdkafka's clock; -inf once a message was returned."""
    start_offset: int
    """The offset at which the application started the partition; `_OFFSET_STORED` for the committed one."""
    received_before: int
    """`PartitionStatistics.received` as last seen with a position, before this start; any other value now
    means that messages were fetched since."""
    initial_position: int | None = None
    """The position before the first message, once it is known."""
    unfetched_at: int | None = None
    """The position at which it was last not fetched; None once the log end is that of a later fetch."""
    last_position: int | None = None
    """The position in the last statistics."""
    has_failed: bool = False
    """True if the last look-up of its log end failed; False once it is fetched again."""


class LagTracker:
    """One consumer's lag. Not thread-safe."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Start without any lag.

        Args:
            settings: The consumer's configuration.
        """
        config = Configuration(settings)
        self._read_uncommitted = reads_uncommitted(settings)
        self.lag: dict[TopicPartitionKey, int] = {}
        """Lag in messages of partitions whose lag is known."""
        self.uncommitted: dict[TopicPartitionKey, int] = {}
        """Offsets from the committed one to the position, of partitions of which both are known."""
        self._earliest = config.text("auto.offset.reset").lower() in _EARLIEST
        self._queue_limit = parse_integer(config.text("queued.min.messages")) or _QUEUED_MESSAGES
        kilobytes = parse_integer(config.text("queued.max.messages.kbytes")) or _QUEUED_KILOBYTES
        self._queue_limit_bytes = kilobytes * 1024
        self._starts: dict[TopicPartitionKey, _Start] = {}
        self._received: dict[TopicPartitionKey, int] = {}
        self._changed_at: dict[TopicPartitionKey, float] = {}
        self._unfetched: dict[TopicPartitionKey, int] = {}

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
            The partitions that librdkafka does not fetch, and of which the position is known. Their log ends
            must be looked up, and passed to `set_ends`.
        """
        lag: dict[TopicPartitionKey, int] = {}
        starts: dict[TopicPartitionKey, _Start] = {}
        positions: dict[TopicPartitionKey, int] = {}
        uncommitted: dict[TopicPartitionKey, int] = {}
        paused = frozenset(paused)
        for key, partition in statistics.partitions.items():
            if taken_at < self._changed_at.get(key, -math.inf):
                continue
            end = partition.high_watermark if self._read_uncommitted else partition.last_stable_offset
            start_offset = start_offsets.get(key, _OFFSET_STORED)
            start = starts[key] = self._start(key, start_offset, statistics.taken_at)
            is_fetched = key not in paused and not self._is_queue_full(partition)
            position = self._position(key, start, partition, end, statistics.taken_at, is_fetched=is_fetched)
            if position is None:
                continue
            if partition.committed >= 0:
                uncommitted[key] = max(0, position - partition.committed)
            if not is_fetched:
                positions[key] = start.unfetched_at = position
                start.fetched_since = statistics.taken_at
            else:
                start.has_failed = False
            # When librdkafka fetches again, the log end is that of before, until the first response. Until
            # then, or until the position moves, the lag is that to the end which was looked up.
            if start.unfetched_at != position or statistics.taken_at - start.fetched_since >= FETCH_SETTLE:
                start.unfetched_at = None
                if position <= end:
                    lag[key] = end - position
            elif key in self.lag and start.last_position is not None:
                lag[key] = max(0, self.lag[key] + start.last_position - position)
            start.last_position = position
        self.lag, self._starts, self._unfetched = lag, starts, positions
        self.uncommitted = uncommitted
        return list(positions)

    def set_ends(self, ends: Mapping[TopicPartitionKey, int]) -> None:
        """Set the lag of partitions that are not fetched by their log ends; a negative end is unknown.

        An end that is unknown once leaves the lag as it is: a new topic may have no leader for a moment. The
        second time in a row, the lag becomes unknown.
        """
        for key, end in ends.items():
            position = self._unfetched.get(key)
            if position is None:
                continue
            start = self._starts[key]
            failed_before, start.has_failed = start.has_failed, end < 0
            if position <= end:
                self.lag[key] = end - position
            elif end >= 0 or failed_before:
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
            self.uncommitted.pop(key, None)
            self._starts.pop(key, None)
            self._unfetched.pop(key, None)

    def _is_queue_full(self, partition: PartitionStatistics) -> bool:
        """Return whether librdkafka fetches nothing more, or did not until a moment ago.

        At the limit, it fetches again as soon as the application has received a message. So the last fetch
        before these statistics may be old unless the queue is far below the limit.
        """
        return (
            2 * partition.queued >= self._queue_limit or 2 * partition.queued_bytes >= self._queue_limit_bytes
        )

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
        is_fetched: bool,
    ) -> int | None:
        """Return the position of a partition; None if unknown."""
        if partition.position < 0:
            if start.initial_position is None:
                is_settled = now - start.fetched_since >= FETCH_SETTLE
                start.initial_position = self._start_position(
                    start, partition, end, is_fetched=is_fetched, is_settled=is_settled
                )
            return start.initial_position
        self._received[key] = partition.received
        if start.unfetched_at is None:
            start.fetched_since = -math.inf  # the message came with the log's end
        return partition.position

    def _start_position(
        self, start: _Start, partition: PartitionStatistics, end: int, *, is_fetched: bool, is_settled: bool
    ) -> int | None:
        """Return the position of a partition from which no message was returned; None if unknown."""
        offset = partition.committed if start.start_offset == _OFFSET_STORED else start.start_offset
        if not is_fetched and offset >= 0:
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
