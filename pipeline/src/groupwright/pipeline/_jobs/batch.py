"""The batch job: brings the tables up to a time or to offsets.

It starts where the tables end, so it can be run at any interval. A long range is read in parts. A part that
an earlier run left unfinished is repeated first, with the same offsets.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.context import JobContext, job_context
from groupwright.pipeline._jobs.derive import derive
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import Pending
from groupwright.pipeline._tables import Batch
from groupwright.pipeline.errors import PipelineError, spark_errors

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
    with spark_errors("the batch"), job_context(spark, settings) as context:
        added, topics = _add(context, on_progress)
        if added and settings.end_offsets_seconds:
            now = datetime.now(UTC)
            context.sample_ends(topics | context.known_topics(), Batch(f"sampler-{now.isoformat()}", 0))
        stale = context.state.stale()
        if stale:
            derive(context.tables, stale, lookback_days=settings.lookback_days)
            context.state.mark_derived(stale)
        return added


def _add(context: JobContext, on_progress: OnProgress) -> tuple[int, set[str]]:
    added, topics = 0, set[str]()
    begun = context.state.pending()
    start = begun.start if begun else context.start()
    end = _end(context)
    total, done = _size(start, end), 0
    on_progress(Progress(0, total))
    while begun or _size(start, end):
        part = begun or _part(start, end, context.settings.max_offsets_per_trigger)
        begun = None
        context.state.begin(part)
        records = source.batch(context.spark, context.settings, part.start, part.end)
        contents = context.ingest.add(records, part.batch)
        context.state.hold(part.end)
        context.state.end()
        added += contents.records.total()
        topics |= contents.topics
        done += _size(part.start, part.end)
        # A repeated part may have had other partitions.
        start = {
            topic: {
                number: part.end.get(topic, {}).get(number, offset) for number, offset in of_topic.items()
            }
            for topic, of_topic in start.items()
        }
        on_progress(Progress(min(done, total), total))
    return added, topics


def _end(context: JobContext) -> Offsets:
    end = context.settings.end
    if not end.startswith("{"):
        return context.cluster.offsets(context.topics, end)
    try:
        given = {
            topic: {int(number): int(offset) for number, offset in of_topic.items()}
            for topic, of_topic in json.loads(end).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise PipelineError(f'end={end} must have the form {{"topic": {{"0": 123}}}}: {error}') from None
    if unknown := given.keys() - context.topics.keys():
        raise PipelineError(
            f"end names {', '.join(sorted(unknown))}, but the job reads only {', '.join(context.topics)}"
        )
    return given


def _part(start: Offsets, end: Offsets, most: int) -> Pending:
    """Return the next part: the same fraction of each partition's range, at most `most` offsets in total."""
    total = _size(start, end)
    until = {
        topic: {
            number: _on_the_way(offset, end, (topic, number), total, most)
            for number, offset in of_topic.items()
        }
        for topic, of_topic in start.items()
    }
    return Pending(Batch(f"batch-{_digest([start, until])}", 0), start, until)


def _on_the_way(offset: int, end: Offsets, place: tuple[str, int], total: int, most: int) -> int:
    topic, number = place
    way = max(0, end.get(topic, {}).get(number, offset) - offset)
    return offset + (way if total <= most else -(-way * most // total))


def _size(start: Offsets, end: Offsets) -> int:
    """Return the number of offsets between start and end."""
    return sum(
        max(0, end.get(topic, {}).get(number, offset) - offset)
        for topic, of_topic in start.items()
        for number, offset in of_topic.items()
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
