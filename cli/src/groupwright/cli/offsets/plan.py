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

    def row(self, key: TopicPartitionKey) -> "PlannedPartition":
        """Return a partition without a plan."""
        return PlannedPartition(*key, self.committed.get(key), self.begins.get(key), self.ends.get(key))


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
    """

    topic: str
    partition: int
    committed: CommittedOffset | None
    begin: int | None
    end: int | None
    after: int | None = None
    note: str = ""
    error: str = ""

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
        """True if the plan changes the partition's offset."""
        return not self.error and self.after != self.before

    @property
    def lag(self) -> int | None:
        """Messages from the committed offset to the end of the log; None if it is not known, or beyond it."""
        return self._lag_from(self.before)

    @property
    def lag_after(self) -> int | None:
        """The lag after the plan is executed; None if it is not known, or no offset is left."""
        return self._lag_from(self.after)

    def _lag_from(self, offset: int | None) -> int | None:
        if offset is None or self.end is None or offset > self.end:
            return None
        return max(0, self.end - max(offset, self.begin or 0))


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
    is of another log.
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
    return replace(row, after=after, note=note)


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
        case Offsets(_, offsets):
            return offsets[row.key], ""
        case Shift(by):
            return (None, "has no committed offset to shift") if row.before is None else (row.before + by, "")
    found = facts.at_time[row.key]
    return (end, "no message since then: the end") if found is None else (found, "")
