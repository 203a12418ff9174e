"""Observations of a group over time: changes, rebalances, partitions without progress. Pure."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupwright.cli._cluster.lag import MARKER, GroupLag, PartitionLag
from groupwright.cli._cluster.model import DescribedGroup, GroupType

if TYPE_CHECKING:
    from groupwright.core import TopicPartitionKey


class UnchangedOffsets:
    """Offsets of logs, or what stands for them, and since when each is the same."""

    def __init__(self) -> None:
        """Start before the first snapshot."""
        self._since: dict[TopicPartitionKey, tuple[Hashable, float]] = {}

    def update(self, offsets: Mapping["TopicPartitionKey", Hashable], time: float) -> None:
        """Take the offsets of the next snapshot; other logs are forgotten."""
        before = self._since
        self._since = {
            log: before[log] if log in before and before[log][0] == offset else (offset, time)
            for log, offset in offsets.items()
        }

    def has(self, log: "TopicPartitionKey", offset: Hashable) -> bool:
        """Return whether this was the log's offset in the last snapshot."""
        return log in self._since and self._since[log][0] == offset

    def seconds(self, log: "TopicPartitionKey", time: float) -> float:
        """Return for how long a log's offset has been the same; 0 without one."""
        since = self._since.get(log)
        return 0.0 if since is None else time - since[1]

    def longest(self, time: float) -> float:
        """Return the longest time for which an offset has been the same; 0 without any."""
        return max((time - since for _, since in self._since.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class _Processed:
    """Progress of a share group in a partition, when it was last seen.

    Attributes:
        start: The start offset.
        most: The end of the log, less the lag. The lag was queried before, so that it may be less.
        end: The last known end of the log, which is no later than that of the next lag.
    """

    start: int
    most: int
    end: int


class UnmovedPartitions:
    """Partitions with messages to read, and since when their committed offset is the same or missing.

    A partition stays while the end of its log is not known, until its committed offset moves. In share groups
    one slow message holds the start offset while others are processed, whose number counts there.
    """

    def __init__(self) -> None:
        """Start before the first snapshot."""
        self._reached = UnchangedOffsets()
        self._processed: dict[TopicPartitionKey, _Processed] = {}
        self._first_ends: dict[TopicPartitionKey, int] = {}
        """Last stable offsets of partitions without a committed offset, when that was first seen."""

    def update(self, partitions: Iterable[PartitionLag], time: float) -> None:
        """Take the partitions of the next snapshot. Those without a committed offset must be assigned."""
        present = tuple(partitions)
        self._first_ends = {
            each.log: end
            for each in present
            if each.committed is None and (end := self._first_ends.get(each.log, each.stable_end)) is not None
        }
        self._processed = {
            each.log: processed for each in present if (processed := self._processed_by(each)) is not None
        }
        behind = [each for each in present if self._is_behind(each)]
        self._reached.update({each.log: self._reached_by(each) for each in behind}, time)

    def _processed_by(self, lag: PartitionLag) -> _Processed | None:
        before = self._processed.get(lag.log)
        if lag.committed is None or lag.share_lag is None or lag.end is None:
            return before
        most = lag.end - lag.share_lag
        if before is not None and before.start == lag.committed and before.end - lag.share_lag <= before.most:
            most = before.most  # the group may have processed nothing since
        return _Processed(lag.committed, most, lag.end)

    def _reached_by(self, lag: PartitionLag) -> Hashable:
        processed = self._processed.get(lag.log)
        return lag.committed if processed is None else (processed.start, processed.most)

    def _is_behind(self, lag: PartitionLag) -> bool:
        """Return whether there are messages that the group would have committed by now.

        Without a committed offset these are the messages since that was first seen: the group reads them
        wherever `auto.offset.reset` says to begin.
        """
        end = lag.stable_end
        if end is None or (lag.log in self._processed and lag.share_lag is None):
            return self._reached.has(lag.log, self._reached_by(lag))
        if lag.committed is None:
            return end - self._first_ends.get(lag.log, end) > MARKER
        return lag.is_behind

    def seconds(self, log: "TopicPartitionKey", time: float) -> float:
        """Return for how long a partition has made no progress; 0 if it does, or has nothing to read."""
        return self._reached.seconds(log, time)


class GroupHistory:
    """A group's history, from its first snapshot on.

    A rebalance of a group without epochs is seen if it is under way during a snapshot, or if members or
    assignments differ from those of the snapshot before. Several between two snapshots count as one.

    Attributes:
        generation: The last known generation or epoch; None if it is not known.
        generation_changes: Generations that the group began, or changes of its members and assignments.
        rebalances: Rebalances seen.
        rebalancing_since: When the present rebalance was first seen; None while there is none.
        unmoved: The partitions that a member is assigned, and that make no progress.
        held: Last stable offsets of assigned partitions in which all else is read, and messages wait for an
            open transaction.
    """

    def __init__(self) -> None:
        """Start before the first snapshot."""
        self.generation: int | None = None
        self.generation_changes = 0
        self.rebalances = 0
        self.rebalancing_since: float | None = None
        self._assignment: int | None = None
        self.unmoved = UnmovedPartitions()
        self.held = UnchangedOffsets()

    def update(self, lag: GroupLag, generation: int | None, time: float) -> None:
        """Take the group's next snapshot.

        Args:
            lag: The group.
            generation: The generation of a classic group, if it is known.
            time: The time of the snapshot.
        """
        group = lag.group
        changes = self._changes(group, generation)
        is_rebalancing = group.is_rebalancing
        if group.type is GroupType.CLASSIC and generation is not None:
            self.rebalances += changes  # each generation ends a rebalance, so that none is missed
            if changes:
                self.rebalancing_since = None
        elif (is_rebalancing or changes) and self.rebalancing_since is None:
            self.rebalances += 1
        self.generation_changes += changes
        if not is_rebalancing:
            self.rebalancing_since = None
        elif self.rebalancing_since is None:
            self.rebalancing_since = time
        if group.is_assignment_known:  # else what was seen before goes on: rebalances are no progress
            owned = [each for each in lag.partitions if each.owners]
            self.unmoved.update(owned, time)
            self.held.update({each.log: each.stable for each in owned if each.is_held_back}, time)

    def _changes(self, group: DescribedGroup, generation: int | None) -> int:
        """Return the number of generations since the last snapshot, or 1 for an unnumbered change."""
        number = generation if group.epoch is None else group.epoch
        if number is not None:
            before, self.generation = self.generation, number
            if before is None or before == number:
                return 0
            return number - before if number > before else 1  # lower: the group was deleted meanwhile
        if group.is_rebalancing:
            return 0  # brokers do not return the assignment of such a group
        before, self._assignment = self._assignment, _fingerprint(group)
        return int(before not in {None, self._assignment})

    def rebalancing_seconds(self, time: float) -> float:
        """Return for how long the present rebalance has been seen; 0 if there is none."""
        return 0.0 if self.rebalancing_since is None else time - self.rebalancing_since


def _fingerprint(group: DescribedGroup) -> int:
    members = ((each.identity, tuple(sorted(each.assigned.items()))) for each in group.members)
    return hash(tuple(sorted(members)))
