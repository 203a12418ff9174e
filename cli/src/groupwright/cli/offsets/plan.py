"""Plan of a reset or a deletion: facts about partitions in, a row for each partition out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli.offsets.target import LogEnd, Offset, Offsets, Shift, Target, Timestamp
from groupwright.core import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class Facts:
    """State of partitions.

    Attributes:
        committed: The committed offsets.
        begins: Beginnings of the logs.
        ends: Ends of the logs.
        stable: Last stable offsets of the logs.
        at_time: Offsets of the first messages at or after the target's time; None where there is none.
        errors: Why the offsets of a log are not known.
        topic_ids: Ids of the topics that exist.
    """

    committed: Mapping[TopicPartitionKey, CommittedOffset] = field(default_factory=dict)
    begins: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    ends: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    at_time: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    errors: Mapping[TopicPartitionKey, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    stable: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)

    def row(self, key: TopicPartitionKey) -> "PlannedPartition":
        """Return a partition without a plan."""
        return PlannedPartition(
            *key,
            self.committed.get(key),
            self.begins.get(key),
            self.ends.get(key),
            stable=self.stable.get(key),
        )


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of a plan.

    Attributes:
        committed: The offset before; None if there is none.
        begin: The beginning of the log; None if it is not known.
        end: The end of the log; None if it is not known.
        after: The offset after; None if there is none.
        note: Why `after` is not what was asked for; empty if it is.
        error: Why there is no plan for the partition; empty if there is.
        restored: The offset after with its leader epoch and metadata, if a file has them; else None.
        stable: The last stable offset; None if it is not known.
    """

    topic: str
    partition: int
    committed: CommittedOffset | None
    begin: int | None
    end: int | None
    after: int | None = None
    note: str = ""
    error: str = ""
    restored: CommittedOffset | None = None
    stable: int | None = field(default=None, kw_only=True)

    @property
    def key(self) -> TopicPartitionKey:
        """The topic and the number."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """The topic and the number, as Kafka writes them."""
        return f"{self.topic}-{self.partition}"

    @property
    def before(self) -> int | None:
        """The committed offset before."""
        return None if self.committed is None else self.committed.offset

    @property
    def is_change(self) -> bool:
        """True if the plan changes the partition's offset, or its metadata."""
        return not self.error and not self.is_held(self.committed)

    def is_held(self, committed: CommittedOffset | None) -> bool:
        """Return whether a committed offset is the planned one, with its metadata if those are planned."""
        offset = None if committed is None else committed.offset
        has_metadata = (
            self.restored is None or committed is None or committed.metadata == self.restored.metadata
        )
        return offset == self.after and has_metadata

    @property
    def lag(self) -> int | None:
        """Messages from the committed to the last stable offset; None if not known, or beyond the end."""
        return self._lag_from(self.before)

    @property
    def lag_after(self) -> int | None:
        """The lag after the plan is executed; None if it is not known, or no offset is left."""
        return self._lag_from(self.after)

    def _lag_from(self, offset: int | None) -> int | None:
        if offset is None or self.end is None or offset > self.end:
            return None
        readable = self.end if self.stable is None else min(self.stable, self.end)
        return max(0, readable - max(offset, self.begin or 0))


def shown(partitions: Iterable[TopicPartitionKey], facts: Facts) -> list[PlannedPartition]:
    """Return the rows to show, without changes; a note says why the offsets of a log are unknown."""
    return [_shown(facts.row(key), facts) for key in partitions]


def _shown(row: PlannedPartition, facts: Facts) -> PlannedPartition:
    is_beyond_end = row.before is not None and row.end is not None and row.before > row.end
    beyond = "the committed offset is beyond the end of the log" if is_beyond_end else ""
    return replace(row, after=row.before, note=facts.errors.get(row.key, beyond))


def planned_reset(
    partitions: Iterable[TopicPartitionKey], target: Target, facts: Facts
) -> list[PlannedPartition]:
    """Return the plan of a reset.

    Offsets outside of a log become its beginning or its end. A file's offset beyond the end has no plan: it
    is of another log. A file's leader epochs and metadata go with its offsets.
    """
    return [_reset(key, target, facts) for key in partitions]


def planned_deletion(partitions: Iterable[TopicPartitionKey], facts: Facts) -> list[PlannedPartition]:
    """Return the plan of a deletion."""
    return [
        replace(facts.row(key), note="" if key in facts.committed else "has no committed offset")
        for key in partitions
    ]


def _reset(key: TopicPartitionKey, target: Target, facts: Facts) -> PlannedPartition:
    row = facts.row(key)
    begin, end = row.begin, row.end
    if begin is None or end is None:
        return replace(row, error=facts.errors.get(key, "the offsets of its log are not known"))
    if isinstance(target, Offsets) and (error := _of_former_topic(row, target, end, facts)):
        return replace(row, error=error)
    if isinstance(target, Timestamp) and key not in facts.at_time:
        return replace(row, error=facts.errors.get(key, "the offset at this time is not known"))
    wanted, note = _wanted(row, begin, end, target, facts)
    if wanted is None:
        return replace(row, note=note)
    after = min(max(wanted, begin), end)
    if after > wanted:
        note = f"{wanted} is before the log: its beginning"
    elif after < wanted:
        note = f"{wanted} is beyond the log: its end"
    elif isinstance(target, Offsets):
        return _restored(replace(row, after=after), target)
    return replace(row, after=after, note=note)


def _restored(row: PlannedPartition, file: Offsets) -> PlannedPartition:
    """Return a partition, which gets its offset of a file, with the leader epoch and metadata there.

    A leader epoch without the topic's id may be of a former topic.
    """
    commit = file.commits.get(row.key)
    if commit is not None and row.topic not in file.topic_ids:
        commit = replace(commit, leader_epoch=None)
    restored = replace(row, restored=commit)
    has_other_metadata = restored.is_change and row.after == row.before
    note = "the offset stays, with the metadata of the file" if has_other_metadata else ""
    return replace(restored, note=note)


def _of_former_topic(row: PlannedPartition, file: Offsets, end: int, facts: Facts) -> str:
    """Return why an offset of a file is not one of the present log; empty if it may be."""
    if file.topic_ids.get(row.topic, facts.topic_ids.get(row.topic)) != facts.topic_ids.get(row.topic):
        return "the file was written for a former topic of this name"
    if file.offsets[row.key] > end:
        return (
            f"{file.offsets[row.key]} is beyond the end of the log, {end}: the file was written for a former "
            "topic of this name, or the log was truncated"
        )
    return ""


def _wanted(
    row: PlannedPartition, begin: int, end: int, target: Target, facts: Facts
) -> tuple[int | None, str]:
    """Return the offset of a target, or None if the partition gets none, and a note."""
    match target:
        case LogEnd.EARLIEST:
            return begin, ""
        case LogEnd.LATEST:
            return end, ""
        case Offset(offset):
            return offset, ""
        case Offsets(offsets=offsets):
            return offsets[row.key], ""
        case Shift(by):
            return (None, "has no committed offset to shift") if row.before is None else (row.before + by, "")
    found = facts.at_time[row.key]
    return (end, "no message since then: the end") if found is None else (found, "")
