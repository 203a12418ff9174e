"""What the jobs have in common: the tables, the cluster they are of, where to begin, and the logs' ends."""

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
    """What a job works with.

    Attributes:
        topics: What is read: the offsets topic, and that of events if it is there.
    """

    spark: SparkSession
    settings: Settings
    tables: Tables
    state: State
    cluster: Cluster
    ingest: Ingest
    topics: dict[str, KafkaTopic]

    def start(self) -> Offsets:
        """Return where to begin: where the tables end, or else where the settings say."""
        held = self.state.held()
        return {
            topic: {number: held.get(topic, {}).get(number, offset) for number, offset in of_topic.items()}
            for topic, of_topic in self.cluster.offsets(self.topics, self.settings.start).items()
        }

    def sample_ends(self, topics: Collection[str], batch: Batch) -> None:
        """Add where the logs of topics end now; those that are gone are passed over."""
        found = self.cluster.topics(topics)
        if not found:
            return
        time = datetime.now(UTC)
        rows = [
            (topic, number, offset, time, found[topic].id, time.date())
            for topic, of_topic in self.cluster.offsets(found, "latest").items()
            for number, offset in of_topic.items()
        ]
        self.ingest.sample(self.spark, rows, time, batch)

    def known_topics(self) -> set[str]:
        """Return the topics whose ends have been sampled before."""
        ends = self.tables.read(schemas.END_OFFSETS).select("topic").distinct()
        return {row.topic for row in ends.collect()}


@contextmanager
def job_context(spark: SparkSession, settings: Settings) -> Iterator[JobContext]:
    """Open the tables and connect to the cluster.

    Raises:
        PipelineError: The cluster does not answer, has no groups yet, or is not the one that the tables are of.
        TablesError: The tables cannot be opened.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # dates are UTC's
    tables = open_tables(spark, settings.tables, settings.format)
    state = State(Folder(spark, settings.state_folder))
    with connected(spark, settings.client) as cluster:
        topics = cluster.topics({OFFSETS_TOPIC, settings.events_topic} - {""})
        _require_the_same(cluster, topics, state, settings)
        if settings.events_topic and settings.events_topic not in topics:
            _log.warning("There is no topic %s: no events are read", settings.events_topic)
        yield JobContext(spark, settings, tables, state, cluster, Ingest(tables, state), topics)


def _require_the_same(
    cluster: Cluster, topics: dict[str, KafkaTopic], state: State, settings: Settings
) -> None:
    if OFFSETS_TOPIC not in topics:
        raise PipelineError(
            f"{settings.bootstrap_servers} has no {OFFSETS_TOPIC}, or does not show it: no group has committed yet, or "
            "the job may not describe it"
        )
    now: dict[str, Any] = {"id": cluster.id(), "partitions": topics[OFFSETS_TOPIC].partitions}
    before = state.cluster()
    if before and before["id"] != now["id"]:
        raise PipelineError(
            f"{settings.tables} has tables of the cluster {before['id']}, and {settings.bootstrap_servers} is "
            f"{now['id']}: give each cluster tables of its own"
        )
    log_if_repartitioned(before["partitions"] if before else None, now["partitions"])
    if before != now:
        state.set_cluster(now)


def log_if_repartitioned(before: int | None, now: int) -> bool:
    """Log that the offsets topic has another number of partitions than it had, and return whether it has."""
    if before is None or before == now:
        return False
    _log.error(
        "%s has %d partitions, and had %d: groups are now coordinated, and looked for, in other partitions. What they "
        "had committed is not found there: they begin anew by auto.offset.reset",
        OFFSETS_TOPIC,
        now,
        before,
    )
    return True
