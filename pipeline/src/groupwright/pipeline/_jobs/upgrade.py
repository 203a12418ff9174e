"""Upgrade of tables that an older version wrote: names of columns, positions, and the unfinished batch.

Older versions kept positions in `held.json` without topic ids, the cluster in `cluster.json`, and a stream's
unfinished batch in Spark's checkpoint alone.
"""

import json
from collections.abc import Mapping
from uuid import uuid4

from pyspark.sql import SparkSession

from groupwright.pipeline._jobs.context import JobContext, job_context
from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._jobs.positions import Positions, TopicPosition
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import CHECKPOINT, BatchRange, parse_offsets, planned_end
from groupwright.pipeline._tables import RENAMED_TABLES, Batch
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline.errors import PipelineError, spark_errors

_OFFSETS, _CLUSTER = "held.json", "cluster.json"


def run_upgrade(spark: SparkSession, settings: Settings) -> bool:
    """Bring tables of an older version up to date, and return whether they needed it.

    Raises:
        PipelineError: The cluster does not respond, or is not the tables' cluster.
        TablesError: The tables cannot be opened or written.
    """
    with spark_errors("the upgrade"), job_context(spark, settings, "upgrade") as context:
        former = list(filter(context.tables.has_former_names, RENAMED_TABLES))
        for table in former:
            context.tables.rename_columns(table)
        folder = Folder(spark, settings.state_folder)
        text = folder.read(_OFFSETS)
        if text is None:
            return bool(former)
        offsets = parse_offsets(json.loads(text))
        cluster = json.loads(folder.read(_CLUSTER) or "{}")
        if not context.ingest.positions.sequence:
            _upgrade_positions(context, folder, offsets, cluster)
        for name in (_OFFSETS, _CLUSTER, CHECKPOINT):
            folder.delete(name)
        return True


def _upgrade_positions(
    context: JobContext, folder: Folder, offsets: Offsets, cluster: Mapping[str, object]
) -> None:
    id_ = context.cluster.id()
    if cluster.get("id", id_) != id_:
        raise PipelineError(
            f"{context.settings.tables} has tables of cluster {cluster['id']}, but "
            f"{context.settings.bootstrap_servers} is cluster {id_}"
        )
    pending = context.state.pending() or unfinished_batch(folder / CHECKPOINT, offsets)
    if pending:
        context.state.begin(pending)
    topics = context.cluster.topics(offsets)
    known = {name: TopicPosition(topic.id, offsets[name]) for name, topic in topics.items()}
    context.ingest.record_positions(Positions(1, id_, known), Batch(f"upgrade-{uuid4()}", 0))


def unfinished_batch(checkpoint: Folder, start: Offsets) -> BatchRange | None:
    """Return the batch that Spark's checkpoint has begun and not committed.

    Args:
        checkpoint: The checkpoint.
        start: The end offsets of the last complete batch.
    """
    metadata = checkpoint.read("metadata")
    begun = [int(name) for name in (checkpoint / "offsets").names() if name.isdigit()]
    if metadata is None or not begun or str(max(begun)) in (checkpoint / "commits").names():
        return None
    batch = Batch(f"stream-{json.loads(metadata)['id']}", max(begun))
    return BatchRange.between(batch, start, planned_end(checkpoint, batch.number))
