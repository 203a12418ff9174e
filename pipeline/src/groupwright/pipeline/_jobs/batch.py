"""The batch job: brings the tables up to a time or to offsets.

It starts where the tables end, so it can be run at any interval. A long range is read in parts of at most
`max_offsets_per_trigger` offsets.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.context import JobContext, job_context
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.maintenance import is_due, maintain
from groupwright.pipeline._jobs.open_transactions import held_partitions, warning
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import BatchRange
from groupwright.pipeline._tables import Batch
from groupwright.pipeline._transforms.base import OFFSETS_TOPIC
from groupwright.pipeline.errors import SettingsError, spark_errors

_log = logging.getLogger("groupwright.pipeline")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a batch: `done` of `total` offsets."""

    done: int
    total: int


OnProgress = Callable[[Progress], None]


def run_batch(
    spark: SparkSession,
    settings: Settings,
    on_progress: OnProgress = lambda progress: _log.info("%s", progress),
) -> int:
    """Bring the tables up to the settings' `end`, and return the number of records added.

    Args:
        spark: A session with Spark's Kafka source.
        settings: The job's settings.
        on_progress: Called after each part.

    Raises:
        PipelineError: The cluster does not respond, or `end` is not a valid position.
        TablesError: The tables cannot be opened or written.
    """
    with spark_errors("the batch"), job_context(spark, settings, "batch") as context:
        added, topics, is_current = _add(context, on_progress)
        if held := held_partitions(*context.log_ends()):
            _log.warning("%s", warning(held))
        if settings.end_offsets_seconds and not is_current:
            _log.warning(
                "end=%s is before the end of the log: log-end offsets are not sampled, because later "
                "commits, which are not read, would be missing from the lag",
                settings.end,
            )
        elif settings.end_offsets_seconds:
            now = datetime.now(UTC)
            if sample := context.sample_ends(topics | context.known_topics()):
                context.ingest.add_samples([sample], Batch(f"sampler-{now.isoformat()}", 0))
        stale = context.state.stale()
        if stale:
            derive(context.tables, stale, lookback_days=settings.lookback_days)
            context.state.mark_derived(stale)
            yesterday = datetime.now(UTC).date() - timedelta(days=1)
            if is_due(context.state, yesterday):
                maintain(context.spark, context.tables, settings, context.state, yesterday)
        return added


def _add(context: JobContext, on_progress: OnProgress) -> tuple[int, set[str], bool]:
    """Add all parts, and return the number of records, their topics, and whether all commits were read."""
    start = context.prepare()
    added, topics = context.repeated.records.total(), set(context.repeated.topics)
    end = _end(context)
    is_current = _is_current(context, start, end)
    total, done = _count_offsets(start, end), 0
    on_progress(Progress(0, total))
    while _count_offsets(start, end):
        sequence = context.ingest.positions.sequence
        part = _part(sequence, start, end, context.settings.max_offsets_per_trigger)
        records = source.batch(context.spark, context.settings, part.start, part.end)
        summary = context.ingest.add(records, part)
        added += summary.records.total()
        topics |= summary.topics
        done += _count_offsets(part.start, part.end)
        start = part.end
        on_progress(Progress(min(done, total), total))
    return added, topics, is_current


def _is_current(context: JobContext, start: Offsets, end: Offsets) -> bool:
    """Return whether a batch reads the offsets topic up to its present end."""
    if context.settings.end == "latest":
        return True
    topics = {OFFSETS_TOPIC: context.topics[OFFSETS_TOPIC]}
    to_read = end.get(OFFSETS_TOPIC, {})
    read = {
        partition: max(offset, to_read.get(partition, offset))
        for partition, offset in start[OFFSETS_TOPIC].items()
    }
    return not _count_offsets({OFFSETS_TOPIC: read}, context.cluster.offsets(topics, "latest"))


def _end(context: JobContext) -> Offsets:
    end = context.settings.end
    if not end.startswith("{"):
        return context.cluster.offsets(context.topics, end)
    try:
        offsets = {
            topic: {int(partition): int(offset) for partition, offset in by_partition.items()}
            for topic, by_partition in json.loads(end).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise SettingsError(f'end={end} must have the form {{"topic": {{"0": 123}}}}: {error}') from None
    if unknown := offsets.keys() - context.topics.keys():
        raise SettingsError(
            f"end names {', '.join(sorted(unknown))}, but the job reads only {', '.join(context.topics)}"
        )
    _require_existing(offsets, context.cluster.offsets(context.topics, "latest"))
    return offsets


def _require_existing(end: Offsets, latest: Offsets) -> None:
    """Raise a `SettingsError` if an end is not a position in the log of a partition."""
    for topic, by_partition in end.items():
        for partition, offset in by_partition.items():
            last = latest[topic].get(partition)
            if last is None:
                raise SettingsError(
                    f"end names {topic}-{partition}, but {topic} has {len(latest[topic])} partitions"
                )
            if not 0 <= offset <= last:
                raise SettingsError(
                    f"end={offset} of {topic}-{partition} is not in its log: write an offset from 0 to {last}"
                )


def _part(sequence: int, start: Offsets, end: Offsets, max_offsets: int) -> BatchRange:
    """Return the next part, at most `max_offsets` offsets: the same fraction of each partition's range.

    The identity includes the snapshot's number, since a topic that was created again has the same offsets.
    """
    total = _count_offsets(start, end)
    part_end = {
        topic: {
            partition: _next_offset(offset, end, (topic, partition), total, max_offsets)
            for partition, offset in by_partition.items()
        }
        for topic, by_partition in start.items()
    }
    return BatchRange(Batch(f"batch-{_digest([sequence, start, part_end])}", 0), start, part_end)


def _next_offset(
    offset: int, end: Offsets, topic_partition: tuple[str, int], total: int, max_offsets: int
) -> int:
    topic, partition = topic_partition
    remaining = max(0, end.get(topic, {}).get(partition, offset) - offset)
    return offset + (remaining if total <= max_offsets else -(-remaining * max_offsets // total))


def _count_offsets(start: Offsets, end: Offsets) -> int:
    """Return the number of offsets between start and end."""
    return sum(
        max(0, end.get(topic, {}).get(partition, offset) - offset)
        for topic, by_partition in start.items()
        for partition, offset in by_partition.items()
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
