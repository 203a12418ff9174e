"""Detection of records that can no longer be read: recreated, truncated or restored topics. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from groupwright.pipeline._jobs.kafka import KafkaTopic, Offsets, few
from groupwright.pipeline._jobs.positions import Positions, TopicPosition
from groupwright.pipeline._jobs.state import BatchRange


class Kind(Enum):
    """The kinds of loss."""

    DELETED = "deleted"
    RECREATED = "recreated"
    TRUNCATED = "truncated"
    CUT = "cut"
    """The log was truncated within the range of an unfinished batch."""
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Records of a topic that cannot be read.

    Attributes:
        topic: The topic.
        kind: The kind of loss.
        message: A clause that says what is missing.
        remedy: A clause that says what a restart does: the object of "set on_data_loss=restart to".
        partitions: The affected partitions.
    """

    topic: str
    kind: Kind
    message: str
    remedy: str
    partitions: tuple[int, ...]


def find_losses(
    positions: Positions,
    topics: Mapping[str, KafkaTopic],
    earliest: Offsets,
    ends: Offsets,
    pending: BatchRange | None = None,
) -> list[DataLoss]:
    """Compare the recorded positions with the topics as they are.

    Args:
        positions: The newest snapshot.
        topics: The topics that exist, of those to read: those of the settings, and of the unfinished batch.
            Others are not in `positions`.
        earliest: The first offset of each partition.
        ends: The log-end offset of each partition, under `read_uncommitted`.
        pending: The batch that may be unfinished.
    """
    planned = pending.end if pending else {}
    return [
        loss
        for name, known in positions.topics.items()
        for loss in _losses(
            name,
            known,
            topics.get(name),
            _Log(earliest.get(name, {}), ends.get(name, {}), planned.get(name, {})),
        )
    ]


def readable_part(
    pending: BatchRange, losses: Collection[DataLoss], earliest: Offsets, ends: Offsets
) -> BatchRange | None:
    """Return the part of a batch that still exists, with the batch's identity; None if nothing does.

    Tables that have the whole batch do not change when this part is added, so no row of it is doubled.

    Args:
        pending: The batch.
        losses: The losses.
        earliest: The first offset of each partition.
        ends: The log-end offset of each partition.
    """
    lost_topics = {loss.topic for loss in losses if loss.kind in {Kind.DELETED, Kind.RECREATED}}
    start: Offsets = {}
    end: Offsets = {}
    for topic, offsets in pending.end.items():
        if topic in lost_topics:
            continue
        for partition, planned in offsets.items():
            first = max(pending.start[topic][partition], earliest.get(topic, {}).get(partition, 0))
            last = min(planned, ends.get(topic, {}).get(partition, planned))
            if first < last:
                start.setdefault(topic, {})[partition] = first
                end.setdefault(topic, {})[partition] = last
    return replace(pending, start=start, end=end) if end else None


@dataclass(frozen=True, slots=True)
class _Log:
    """Offsets by partition: the first, the log-end offset, and the end of an unfinished batch."""

    earliest: Mapping[int, int]
    ends: Mapping[int, int]
    planned: Mapping[int, int]


def _losses(name: str, known: TopicPosition, topic: KafkaTopic | None, log: _Log) -> Iterator[DataLoss]:
    earliest, ends = log.earliest, log.ends
    everything = tuple(sorted(known.offsets))
    if topic is None:
        message = f"{name} was deleted; the tables have read it {_at(known.offsets)}"
        yield DataLoss(name, Kind.DELETED, message, "go on without it until it exists again", everything)
        return
    if topic.id != known.id:
        message = (
            f"{name} was deleted and created again: its topic id is {topic.id} and was {known.id}, and the "
            f"tables have read the former topic {_at(known.offsets)}"
        )
        yield DataLoss(name, Kind.RECREATED, message, "read the new topic from its beginning", everything)
        return
    beyond = {
        partition: offset for partition, offset in known.offsets.items() if offset > ends.get(partition, 0)
    }
    if beyond:
        message = (
            f"{name} was truncated or restored from an older copy: it ends at {_list(ends, beyond)}, and the "
            f"tables have read it {_at(beyond)}"
        )
        remedy = "go on at the first record that is not older than the newest one in the tables"
        yield DataLoss(name, Kind.TRUNCATED, message, remedy, tuple(sorted(beyond)))
    cut = {
        partition: offset
        for partition, offset in log.planned.items()
        if partition not in beyond and offset > ends.get(partition, 0)
    }
    if cut:
        message = (
            f"{name} was truncated or restored from an older copy: it ends at {_list(ends, cut)}, and an "
            f"unfinished batch goes up to {_list(cut, cut)}"
        )
        yield DataLoss(name, Kind.CUT, message, "add that batch up to the log's end", tuple(sorted(cut)))
    expired = {
        partition: offset
        for partition, offset in known.offsets.items()
        if partition not in beyond and offset < earliest.get(partition, 0)
    }
    if expired:
        missing = sum(earliest[partition] - offset for partition, offset in expired.items())
        message = (
            f"{missing} offsets of {name} were deleted before they were read: it begins at "
            f"{_list(earliest, expired)}, and the tables have read it {_at(expired)}"
        )
        yield DataLoss(name, Kind.EXPIRED, message, "go on at its first record", tuple(sorted(expired)))


def _at(offsets: Mapping[int, int]) -> str:
    return f"up to {_list(offsets, offsets)}"


def _list(offsets: Mapping[int, int], partitions: Mapping[int, int]) -> str:
    """Return the offsets of partitions as text, such as `offset 10 (partition 0), 12 (1)`."""
    listed = [f"{offsets.get(partition, 0)} ({partition})" for partition in sorted(partitions)]
    return f"offset (partition) {few(listed)}"
