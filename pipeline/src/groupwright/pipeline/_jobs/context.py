"""Context shared by all jobs: tables, state, cluster, start offsets and samples of log-end offsets."""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs.ingest import Ingest
from groupwright.pipeline._jobs.kafka import Cluster, KafkaTopic, Offsets, connected
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import State
from groupwright.pipeline._tables import Batch, Tables, open_tables
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._transforms.base import OFFSETS_TOPIC
from groupwright.pipeline.errors import PipelineError

_log = logging.getLogger("groupwright.pipeline")


@dataclass(frozen=True, slots=True)
class JobContext:
    """Connections and settings of a running job.

    Attributes:
        spark: The session.
        settings: The job's settings.
        tables: The tables to write.
        state: The job's persistent state.
        cluster: Admin client of the cluster to read.
        ingest: Adds batches to the base tables.
        topics: The topics to read: the offsets topic, and the events' topic if it exists.
    """

    spark: SparkSession
    settings: Settings
    tables: Tables
    state: State
    cluster: Cluster
    ingest: Ingest
    topics: dict[str, KafkaTopic]

    def start(self) -> Offsets:
        """Return the start offsets: where the tables end, or the setting `start` for new partitions."""
        ingested = self.state.ingested()
        return {
            topic: {
                partition: ingested.get(topic, {}).get(partition, offset)
                for partition, offset in by_partition.items()
            }
            for topic, by_partition in self.cluster.offsets(self.topics, self.settings.start).items()
        }

    def sample_ends(self, topics: Collection[str], batch: Batch) -> None:
        """Add a sample of the topics' log-end offsets. Topics that no longer exist are skipped."""
        existing = self.cluster.topics(topics)
        if not existing:
            return
        time = datetime.now(UTC)
        rows = [
            (topic, partition, offset, time, existing[topic].id, time.date())
            for topic, by_partition in self.cluster.offsets(existing, "latest").items()
            for partition, offset in by_partition.items()
        ]
        self.ingest.sample(self.spark, rows, time, batch)

    def known_topics(self) -> set[str]:
        """Return the topics that have samples of log-end offsets."""
        ends = self.tables.read(schemas.END_OFFSETS).select("topic").distinct()
        return {row.topic for row in ends.collect()}


@contextmanager
def job_context(spark: SparkSession, settings: Settings) -> Iterator[JobContext]:
    """Open the tables and connect to the cluster.

    Raises:
        PipelineError: The cluster does not respond, has no groups yet, or is not the tables' cluster.
        TablesError: The tables cannot be opened.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # so that dates are in UTC
    tables = open_tables(spark, settings.tables, settings.format)
    state = State(Folder(spark, settings.state_folder))
    with connected(spark, settings.client) as cluster:
        topics = cluster.topics({OFFSETS_TOPIC, settings.events_topic} - {""})
        _require_same_cluster(cluster, topics, state, settings)
        if settings.events_topic and settings.events_topic not in topics:
            _log.warning("Topic %s does not exist: no events are read", settings.events_topic)
        yield JobContext(spark, settings, tables, state, cluster, Ingest(tables, state), topics)


def _require_same_cluster(
    cluster: Cluster, topics: dict[str, KafkaTopic], state: State, settings: Settings
) -> None:
    if OFFSETS_TOPIC not in topics:
        raise PipelineError(
            f"{settings.bootstrap_servers} shows no topic {OFFSETS_TOPIC}: either no group has committed "
            "yet, or the job's principal needs the permission Describe on it"
        )
    now: dict[str, Any] = {"id": cluster.id(), "partitions": topics[OFFSETS_TOPIC].partitions}
    before = state.cluster()
    if before and before["id"] != now["id"]:
        raise PipelineError(
            f"{settings.tables} has tables of cluster {before['id']}, but {settings.bootstrap_servers} is "
            f"cluster {now['id']}: use separate tables for each cluster"
        )
    log_if_repartitioned(before["partitions"] if before else None, now["partitions"])
    if before != now:
        state.set_cluster(now)


def log_if_repartitioned(before: int | None, now: int) -> bool:
    """Log an error if the offsets topic's number of partitions has changed, and return whether it has."""
    if before is None or before == now:
        return False
    _log.error(
        "%s has %d partitions and had %d before: groups now map to other partitions. Offsets committed "
        "before are not found, so consumers start from auto.offset.reset",
        OFFSETS_TOPIC,
        now,
        before,
    )
    return True
