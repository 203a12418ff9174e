"""The exporter's state: snapshots of a cluster in, samples out. Pure: no clock, no I/O."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from groupwright.cli._cluster.group_history import GroupHistory
from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import DescribedGroup, GroupType
from groupwright.cli.exporter import catalogue
from groupwright.cli.exporter.catalogue import ExporterSpec, Level
from groupwright.cli.exporter.end_offsets import EndOffsets
from groupwright.cli.exporter.lag_velocity import LagVelocity
from groupwright.cli.exporter.limits import Patterns
from groupwright.cli.exporter.snapshot import HeldPartition, OffsetsTopicState, Snapshot
from groupwright.core.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from groupwright.core import TopicPartitionKey

Labels = tuple[str, ...]
"""Values of a metric's labels, in their order."""

Samples = dict[ExporterSpec, dict[Labels, float]]

_TRANSACTIONS = 100
"""Transactions with a series, the oldest first."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the series.

    Attributes:
        topics: The topics with series.
        by_partition: Whether partitions have series of their own.
        max_series: The most series of groups, topics and partitions.
        stuck_seconds: Time without an end of a rebalance, or without a commit, after which a group is stuck.
    """

    topics: Patterns = field(default_factory=Patterns)
    by_partition: bool = False
    max_series: int = 100_000
    stuck_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of one snapshot.

    Attributes:
        samples: Samples by metric.
        series: Their number.
        left_out: Number of series that are left out for `Options.max_series`, by level.
        unknown_partitions: Pairs of groups and partitions without lag, since the end of the log is not known.
        snapshot: The snapshot.
    """

    samples: Samples
    series: int
    left_out: Mapping[Level, int]
    unknown_partitions: int
    snapshot: Snapshot


class ExporterState:
    """State of the exporter between snapshots."""

    def __init__(self, options: Options) -> None:
        """Start before the first snapshot."""
        self._options = options
        self._ends = EndOffsets()
        self._groups: dict[str, GroupHistory] = {}
        self._velocities: dict[Labels, tuple[LagVelocity, LagVelocity]] = {}
        """By group and topic: of the lag, and of what is processed."""
        self._partitions: dict[str, dict[TopicPartitionKey, PartitionLag]] = {}
        """By group and log, the partitions of the last snapshot."""
        self._held: dict[int, tuple[HeldPartition, float]] = {}
        """The partitions of `__consumer_offsets` that transactions hold back, and when the last stable
        offset was first seen."""

    def update(self, snapshot: Snapshot) -> Page:
        """Take a snapshot and return its samples."""
        logs = {each.log: each.end for group in snapshot.groups for each in group.partitions}
        for log, end in logs.items():
            if end is not None:
                self._ends.add(log, end, snapshot.time)
        if not snapshot.silent_brokers:  # groups of a silent broker come back, and their counters go on
            self._ends.keep(logs.keys())
            shown = {group.group.id for group in snapshot.groups}
            self._groups = {id_: history for id_, history in self._groups.items() if id_ in shown}
            self._velocities = {key: each for key, each in self._velocities.items() if key[0] in shown}
            self._partitions = {id_: each for id_, each in self._partitions.items() if id_ in shown}
        snapshot = replace(snapshot, groups=tuple(map(self._with_last_offsets, snapshot.groups)))
        for group in snapshot.groups:
            history = self._groups.setdefault(group.group.id, GroupHistory())
            history.update(group, snapshot.generations.get(group.group.id), snapshot.time)
        self._update_held(snapshot.offsets_topic, snapshot.time)
        return self._page(snapshot)

    def _with_last_offsets(self, group: GroupLag) -> GroupLag:
        """Return a group in which the last known offsets of a log stand for those that are not known now."""
        last = self._partitions.get(group.group.id, {})
        partitions = tuple(
            each if each.end is not None or each.log not in last else _as_known_last(each, last[each.log])
            for each in group.partitions
        )
        self._partitions[group.group.id] = {each.log: each for each in partitions}
        return replace(group, partitions=partitions)

    def _update_held(self, topic: OffsetsTopicState | None, time: float) -> None:
        """Take the partitions that are held. One whose offsets are not known now is as it was last."""
        if topic is None:
            self._held = {}
            return
        before = self._held
        unknown = {number: each for number, each in before.items() if number not in topic.stable}
        self._held = unknown | {
            number: (held, before[number][1])
            if number in before and before[number][0].stable == held.stable
            else (held, time)
            for number, held in topic.held.items()
        }

    # --- Samples ------------------------------------------------------------------------------------

    def _page(self, snapshot: Snapshot) -> Page:
        page = _Builder(self._options.max_series)
        groups = {group.group.id: group.group for group in snapshot.groups}
        page.add(self._cluster_samples(snapshot), Level.CLUSTER)
        for sample in (*self._topic_ends(snapshot), *self._topic_transactions(snapshot)):
            page.add(iter([sample]), Level.CLUSTER)
        rows = {group.group.id: [*self._rows(group, snapshot.time)] for group in snapshot.groups}
        for group in snapshot.groups:
            page.add(self._group_samples(group, rows[group.group.id], snapshot), Level.GROUP)
        by_topic = {id_: _by_topic(of_group) for id_, of_group in rows.items()}
        for id_, topics in by_topic.items():
            for topic, of_topic in topics.items():
                page.add(self._topic_samples(groups[id_], topic, of_topic, snapshot.time), Level.TOPIC)
        if self._options.by_partition:
            for id_, topics in by_topic.items():
                for rows_of_topic in topics.values():
                    samples = (each for row in rows_of_topic for each in _partition_samples(id_, row))
                    page.add(samples, Level.PARTITION)
        unknown = sum(
            row.lag.end is None or row.lag.error != "" for of_group in rows.values() for row in of_group
        )
        return Page(page.samples, page.series, page.left_out, unknown, snapshot)

    def _rows(self, group: GroupLag, time: float) -> Iterator["_Row"]:
        history = self._groups[group.group.id]
        for lag in group.partitions:
            if self._options.topics.select(lag.topic):
                stuck = history.unmoved.seconds(lag.log, time) >= self._options.stuck_seconds
                messages = lag.lag
                if messages:
                    seconds, at_least = self._lag_seconds(lag, time)
                else:
                    seconds, at_least = None if messages is None else 0.0, 0.0
                yield _Row(lag, messages, seconds, at_least, is_stuck=stuck)

    def _lag_seconds(self, lag: PartitionLag, time: float) -> tuple[float | None, float]:
        """Return the age of the first message that is not committed, if it is known, and a lower bound."""
        log = lag.log
        arrived = self._ends.arrival(log, lag.first_uncommitted[2])
        if arrived is None:
            since = self._ends.since(log)
            return None, 0.0 if since is None else time - since
        age = max(0.0, time - arrived)
        return age, age

    def _cluster_samples(self, snapshot: Snapshot) -> Iterator["_Sample"]:
        for state, number in snapshot.states.items():
            yield catalogue.GROUPS, (state,), number
        if snapshot.offsets_topic is not None:
            yield catalogue.HELD_PARTITIONS, (), len(self._held)
        for number, (held, since) in sorted(self._held.items()):
            yield catalogue.HELD_MESSAGES, (str(number),), held.end - held.stable
            yield catalogue.HELD_SECONDS, (str(number),), snapshot.time - since
        holding = [each for each in snapshot.transactions if OFFSETS_TOPIC in each.partitions]
        for transaction in sorted(holding, key=lambda each: each.started)[:_TRANSACTIONS]:
            age = max(0.0, snapshot.time - transaction.started)
            yield catalogue.TRANSACTION_AGE, (transaction.transactional_id,), age

    def _topic_ends(self, snapshot: Snapshot) -> Iterator["_Sample"]:
        ends: dict[str, dict[int, int]] = defaultdict(dict)
        for group in snapshot.groups:
            for each in group.partitions:
                if each.end is not None and self._options.topics.select(each.topic):
                    ends[each.topic][each.partition] = each.end
        for topic, of_topic in ends.items():
            yield catalogue.TOPIC_END, (topic,), sum(of_topic.values())

    def _topic_transactions(self, snapshot: Snapshot) -> Iterator["_Sample"]:
        """Yield the age of the oldest transaction that holds messages of a topic back."""
        held = {
            (each.topic, each.partition)
            for group in snapshot.groups
            for each in group.partitions
            if each.held and self._options.topics.select(each.topic)
        }
        seen: set[str] = set()
        for transaction in sorted(snapshot.transactions, key=lambda each: each.started):
            age = max(0.0, snapshot.time - transaction.started)
            for topic, numbers in transaction.partitions.items():
                if topic not in seen and any((topic, number) in held for number in numbers):
                    seen.add(topic)
                    yield catalogue.TOPIC_TRANSACTION_AGE, (topic, transaction.transactional_id), age

    def _group_samples(self, lag: GroupLag, rows: list["_Row"], snapshot: Snapshot) -> Iterator["_Sample"]:
        group, history = lag.group, self._groups[lag.group.id]
        labels = (group.id,)
        coordinator = str(group.coordinator.id)
        yield catalogue.GROUP_INFO, (group.id, str(group.type), group.assignor, coordinator), 1
        yield catalogue.GROUP_STATE, (group.id, group.state), 1
        yield catalogue.GROUP_MEMBERS, labels, len(group.members)
        if not group.is_rebalancing and group.is_assignment_known:
            yield catalogue.GROUP_IDLE_MEMBERS, labels, sum(not each.assigned for each in group.members)
        if history.generation is not None:
            yield catalogue.GROUP_GENERATION, labels, history.generation
        yield catalogue.GROUP_GENERATION_CHANGES, labels, history.generation_changes
        yield catalogue.GROUP_REBALANCES, labels, history.rebalances
        seconds = history.rebalancing_seconds(snapshot.time)
        yield catalogue.GROUP_REBALANCING_SECONDS, labels, seconds
        stuck = {
            "rebalancing": history.rebalancing_since is not None and seconds >= self._options.stuck_seconds,
            "no_progress": any(row.is_stuck for row in rows),
            "transaction": history.held.longest(snapshot.time) >= self._options.stuck_seconds,
        }
        for reason, is_stuck in stuck.items():
            yield catalogue.GROUP_STUCK, (group.id, reason), is_stuck
        if snapshot.commits is not None:
            yield catalogue.GROUP_COMMITS, labels, snapshot.commits.get(group.id, 0)

    def _topic_samples(
        self, group: DescribedGroup, topic: str, rows: list["_Row"], time: float
    ) -> Iterator["_Sample"]:
        labels = (group.id, topic)
        known = [row for row in rows if row.messages is not None]
        if known:
            yield from self._lag_samples(labels, known, time)
        else:
            self._velocities.pop(labels, None)
        oldest = max((row.at_least for row in known), default=0.0)
        is_caught_up = known and not any(row.messages != 0 and row.lag.may_lag for row in rows)
        if oldest or is_caught_up:
            yield catalogue.LAG_SECONDS, labels, oldest
        yield catalogue.LAG_SECONDS_UNKNOWN, labels, sum(row.seconds is None for row in known)
        if is_caught_up:
            yield catalogue.CATCH_UP, labels, 0.0
        committed = [row.lag.committed for row in rows if row.lag.committed is not None]
        if committed:
            yield catalogue.COMMITTED, labels, sum(committed)
            yield catalogue.BEYOND_END, labels, sum(row.lag.is_beyond_end for row in rows)
            if group.type is not GroupType.SHARE:
                yield catalogue.DELETED_UNREAD, labels, sum(row.lag.deleted for row in rows)
        if group.is_assignment_known:
            owned = [row.lag for row in rows if row.lag.owners]
            yield catalogue.ASSIGNED, labels, len(owned)
            uncommitted = [lag for lag in owned if lag.committed is None]
            if all(lag.has_no_commit for lag in uncommitted):
                yield catalogue.UNCOMMITTED, labels, len(uncommitted)
                logs = [(lag.begin, lag.stable_end) for lag in uncommitted]
                sizes = [end - begin for begin, end in logs if begin is not None and end is not None]
                if len(sizes) == len(logs):
                    yield catalogue.UNCOMMITTED_MESSAGES, labels, sum(sizes)
        if (subscribes := group.subscribes(topic)) is not None:
            is_left = bool(group.members) and not subscribes
            yield catalogue.UNSUBSCRIBED, labels, len(committed) if is_left else 0
        yield catalogue.STUCK_PARTITIONS, labels, sum(row.is_stuck for row in rows)

    def _lag_samples(self, labels: Labels, rows: list["_Row"], time: float) -> Iterator["_Sample"]:
        """Yield the samples of rows whose lag is known."""
        lags = [row.messages or 0 for row in rows]
        lag = sum(lags)
        yield catalogue.LAG, labels, lag
        yield catalogue.LAG_MAX, labels, max(lags)
        yield catalogue.HELD, labels, sum(row.lag.held or 0 for row in rows if row.lag.stable != row.lag.end)
        drained = [row.lag for row in rows if row.lag.has_message is False]
        yield catalogue.UNREADABLE, labels, sum(each.unreadable or 0 for each in drained)
        of_lag, of_processed = self._velocities.setdefault(labels, (LagVelocity(), LagVelocity()))
        velocity = of_lag.update(lag, _logs(rows), time)
        counted = [row for row in rows if row.lag.processed_until is not None]
        processed = sum(row.lag.processed_until or 0 for row in counted)
        consumption = of_processed.update(processed, _logs(counted), time)
        if velocity is not None:
            yield catalogue.VELOCITY, labels, velocity
        # Lag shrinks too if unread messages are deleted, with which the start offset of a share group moves.
        may_be_deleted = any(row.lag.is_shared and row.lag.committed == row.lag.begin for row in rows)
        if lag and velocity is not None and velocity < 0 and (consumption or 0) > 0 and not may_be_deleted:
            yield catalogue.CATCH_UP, labels, lag / -velocity
        margins = [
            max(0, (row.lag.committed or 0) - row.lag.begin)
            for row in rows
            if row.messages and row.lag.begin is not None
        ]
        if margins:
            yield catalogue.RETENTION_MARGIN, labels, min(margins)


@dataclass(frozen=True, slots=True)
class _Row:
    """A partition of a group.

    Attributes:
        messages: Its lag; None if it is not known.
        seconds: Its lag in seconds; None if it is not known.
        at_least: A lower bound of it, 0 if there is none.
    """

    lag: PartitionLag
    messages: int | None
    seconds: float | None
    at_least: float
    is_stuck: bool = field(kw_only=True)


_Sample = tuple[ExporterSpec, Labels, float]


def _as_known_last(lag: PartitionLag, last: PartitionLag) -> PartitionLag:
    """Return a partition with the last known offsets of its log, unless the group has passed its last end."""
    is_same = lag.committed == last.committed
    if not is_same and (lag.committed or 0) > (last.end or 0):
        return lag
    has_message = last.has_message if is_same else None
    return replace(lag, begin=last.begin, end=last.end, stable=last.stable, has_message=has_message)


def _logs(rows: list[_Row]) -> int:
    return hash(frozenset(row.lag.log for row in rows))


def _by_topic(rows: list[_Row]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.lag.topic].append(row)
    return found


def _partition_samples(group: str, row: _Row) -> Iterator[_Sample]:
    labels = (group, row.lag.topic, str(row.lag.partition))
    if row.messages is not None:
        yield catalogue.PARTITION_LAG, labels, row.messages
    if row.seconds is not None:
        yield catalogue.PARTITION_LAG_SECONDS, labels, row.seconds
    if row.lag.committed is not None:
        yield catalogue.PARTITION_COMMITTED, labels, row.lag.committed


class _Builder:
    """Samples up to a number of series. Samples added together are left out together, and counted."""

    def __init__(self, max_series: int) -> None:
        self.samples: Samples = defaultdict(dict)
        self.series = 0
        self.left_out: dict[Level, int] = dict.fromkeys(
            (Level.CLUSTER, Level.GROUP, Level.TOPIC, Level.PARTITION), 0
        )
        self._max = max_series

    def add(self, samples: Iterator[_Sample], level: Level) -> None:
        """Add the samples of one group, or of one topic of a group, or none of them."""
        made = list(samples)
        if self.series + len(made) > self._max:
            self.left_out[level] += len(made)
            return
        self.series += len(made)
        for spec, labels, value in made:
            self.samples[spec][labels] = value
