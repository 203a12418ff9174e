"""Context shared by all jobs: tables, state, cluster, start offsets and samples of log-end offsets."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._jobs import source
from groupwright.pipeline._jobs.data_loss import DataLoss, Kind, find_losses, readable_part
from groupwright.pipeline._jobs.ingest import BatchSummary, Ingest
from groupwright.pipeline._jobs.kafka import Cluster, KafkaTopic, Offsets, connected
from groupwright.pipeline._jobs.lease import Lease, hold_lease
from groupwright.pipeline._jobs.positions import Positions, TopicPosition, derived_offsets, newest_time
from groupwright.pipeline._jobs.samples import EndOffsets
from groupwright.pipeline._jobs.session import has_few_rows
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._jobs.state import State
from groupwright.pipeline._tables import Batch, Tables, kept, open_tables
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._transforms.base import OFFSETS_TOPIC
from groupwright.pipeline.errors import PipelineError, UnreachableError

_T = TypeVar("_T")
_log = logging.getLogger("groupwright.pipeline")


@dataclass(slots=True)
class JobContext:
    """Connections and settings of a running job.

    Attributes:
        spark: The session.
        settings: The job's settings.
        tables: The tables to write.
        state: The job's persistent state.
        cluster: Admin client of the cluster to read.
        ingest: Adds batches to the base tables.
        lease: The right to write the tables.
        topics: The topics to read, as of `prepare`: the offsets topic, and the events' topic if it exists.
        repeated: Summary of the pending batch that `prepare` has added.
        accepted_losses: The losses that the last `prepare` went on after.
    """

    spark: SparkSession
    settings: Settings
    tables: Tables
    state: State
    cluster: Cluster
    ingest: Ingest
    lease: Lease
    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)
    repeated: BatchSummary = field(default_factory=BatchSummary)
    accepted_losses: Sequence[DataLoss] = ()

    def prepare(self) -> Offsets:
        """Compare the topics with the tables, add a pending batch, and return the start offsets.

        Partitions that the tables do not have yet are read from their beginning, or from the setting `start`
        if the tables are empty.

        Raises:
            PipelineError: Records are missing and `on_data_loss` is `fail`, the principal may not describe
                a topic to read, or the cluster has no groups yet or is not the tables' cluster.
        """
        self.topics = self._existing_topics()
        self._load_older_positions()
        # Of the same answer: a topic that another answer lacks would be no loss, and lose its position.
        existing, losses = self._topics_and_losses()
        names = self._names()
        self.topics = {name: topic for name, topic in existing.items() if name in names}
        self.accepted_losses = losses
        for loss in losses:
            _log.warning("%s. on_data_loss=restart: the job will %s", loss.message, loss.remedy)
        if OFFSETS_TOPIC not in self.topics:
            raise PipelineError(
                f"{self.settings.bootstrap_servers} has no topic {OFFSETS_TOPIC}: no group has committed yet"
            )
        self._add_pending(existing, losses)
        before = self.ingest.positions
        after = self._start_positions(losses)
        log_if_repartitioned(before, self.topics)
        if before != after:
            self.ingest.record_positions(
                replace(after, sequence=before.sequence + 1), Batch(f"start-{uuid4()}", 0)
            )
        return {name: offsets for name, offsets in after.offsets().items() if name in self.topics}

    def topics_have_changed(self) -> bool:
        """Return whether a topic was created, deleted, or has more partitions since `prepare`."""
        return self.cluster.topics(self._names()) != self.topics

    def losses(self) -> list[DataLoss]:
        """Return the records that can no longer be read, as of now.

        Raises:
            PipelineError: There are some, and `on_data_loss` is `fail`.
        """
        return self._topics_and_losses()[1]

    def _topics_and_losses(self) -> tuple[Mapping[str, KafkaTopic], list[DataLoss]]:
        """Return the topics that exist, with those of an unfinished batch, and `losses`."""
        # Read before the cluster is queried: a batch that ends later may have positions beyond `ends`, which
        # would look like a truncated log.
        pending = self.state.pending()
        if pending and self.ingest.positions.has_passed(pending.end):
            pending = None
        # The settings may name another topic of events than the unfinished batch has.
        names = self._names() | (pending.end.keys() if pending else set())
        positions = self._positions_in(names)
        topics, (earliest, ends) = self._of_existing_topics(
            lambda topics: (
                self.cluster.offsets(topics, "earliest"),
                self.cluster.offsets(topics, "latest", read_committed=False),
            ),
            lambda: self.cluster.topics(names),
        )
        losses = find_losses(positions, topics, earliest, ends, pending)
        if losses and self.settings.on_data_loss == "fail":
            raise PipelineError(_message(losses))
        return topics, losses

    def log_ends(self) -> tuple[Offsets, Offsets]:
        """Return the last stable offset and, queried later, the log-end offset of each partition."""
        _, ends = self._of_existing_topics(
            lambda topics: (
                self.cluster.offsets(topics, "latest"),
                self.cluster.offsets(topics, "latest", read_committed=False),
            ),
            lambda: self.cluster.topics(self._names()),
        )
        return ends

    def sample_ends(self, topics: Collection[str]) -> EndOffsets | None:
        """Sample the topics' log-start and log-end offsets.

        Returns:
            The sample; None if none of the topics exists any more, or, with a warning, if Kafka does not
            return their offsets.
        """

        def query(existing: Mapping[str, KafkaTopic]) -> EndOffsets | None:
            time = datetime.now(UTC)
            ids = {name: topic.id for name, topic in existing.items()}
            return EndOffsets(time, *self.cluster.log_bounds(existing), ids) if existing else None

        try:
            return self._of_existing_topics(query, lambda: self.cluster.topics(topics, skip_forbidden=True))[
                1
            ]
        except UnreachableError as error:
            _log.warning("Log-end offsets were not sampled: %s", error)
            return None

    def known_topics(self) -> set[str]:
        """Return the topics of the commits and of the samples of log-end offsets within `lookback_days`.

        The days count back from today for commits, and from the newest sample for samples. A batch with an
        `end` in the past adds commits to topics that were never sampled.
        """
        lookback = timedelta(days=self.settings.lookback_days)
        newest = self.tables.read(schemas.END_OFFSETS).agg(F.max("date").alias("date")).collect()[0].date
        sampled = self.tables.read(schemas.END_OFFSETS, since=newest and newest - lookback)
        committed = self.tables.read(schemas.OFFSET_COMMITS, since=datetime.now(UTC).date() - lookback)
        topics = sampled.select("topic").union(committed.select("topic")).distinct()
        return {row.topic for row in topics.collect()}

    def _of_existing_topics(
        self,
        query: Callable[[Mapping[str, KafkaTopic]], _T],
        existing: Callable[[], Mapping[str, KafkaTopic]],
    ) -> tuple[Mapping[str, KafkaTopic], _T]:
        """Return the topics that exist and the result of `query`, which is repeated if they change meanwhile.

        The offsets of a topic that is deleted while they are listed time out.
        """
        topics = existing()
        while True:
            try:
                return topics, query(topics)
            except PipelineError:
                before, topics = topics, existing()
                if topics == before:
                    raise

    def _names(self) -> set[str]:
        return {OFFSETS_TOPIC, self.settings.events_topic} - {""}

    def _existing_topics(self) -> Mapping[str, KafkaTopic]:
        settings = self.settings
        topics = self.cluster.topics(self._names())
        known, id_ = self.ingest.positions, self.cluster.id()
        if known.cluster_id and known.cluster_id != id_:
            raise PipelineError(
                f"{settings.tables} has tables of cluster {known.cluster_id}, but "
                f"{settings.bootstrap_servers} is cluster {id_}: use separate tables for each cluster"
            )
        if settings.events_topic and settings.events_topic not in topics:
            _log.warning("Topic %s does not exist: no events are read", settings.events_topic)
        return topics

    def _load_older_positions(self) -> None:
        """Derive positions from the base tables if these have rows, and `read_positions` has no snapshot.

        If the job's state was lost, the recent dates are marked as stale, too.
        """
        positions = self.ingest.positions
        if positions.sequence:
            if not self.state.exists():
                self._mark_recent_stale()
            return
        offsets = derived_offsets(self.tables, self.settings.events_topic)
        if not offsets:
            return
        _log.warning(
            "%s has records but no positions: the job goes on after each partition's last record",
            self.settings.tables,
        )
        self.ingest.positions = Positions(
            topics={
                name: TopicPosition(topic.id, offsets[name])
                for name, topic in self.topics.items()
                if name in offsets
            }
        )
        self._mark_recent_stale()

    def _mark_recent_stale(self) -> None:
        # It is unknown which dates were stale. States of groups may lack their records, so all are deleted.
        self.tables.retain(schemas.GROUP_STATES, date.max)
        today = datetime.now(UTC).date()
        self.state.mark_stale({today - timedelta(days=n) for n in range(self.settings.lookback_days)})

    def _positions_in(self, names: Collection[str]) -> Positions:
        known = self.ingest.positions
        return replace(known, topics={name: at for name, at in known.topics.items() if name in names})

    def _add_pending(self, existing: Mapping[str, KafkaTopic], losses: Collection[DataLoss]) -> None:
        """Add the batch that an earlier job has left unfinished, with the same identity and offsets."""
        pending = self.state.pending()
        if pending is None:
            return
        if self.ingest.positions.has_passed(pending.end):
            # The batch is complete, and the job died before `finish`. Its records may have been deleted
            # since, so they are not read again.
            self.state.finish()
            return
        if {loss.topic for loss in losses} & pending.end.keys():
            _log.warning("A batch was left unfinished, and some of its records are lost: %s", pending)
            earliest = self.cluster.offsets(existing, "earliest")
            ends = self.cluster.offsets(existing, "latest", read_committed=False)
            pending = readable_part(pending, losses, earliest, ends)
            if pending is None:
                self.state.finish()
                return
        records = source.batch(self.spark, self.settings, pending.start, pending.end)
        self.repeated = self.ingest.add(records, pending)

    def _start_positions(self, losses: Collection[DataLoss]) -> Positions:
        known = self._positions_in(self._names())
        defaults = self.cluster.offsets(self.topics, "earliest" if known.topics else self.settings.start)
        topics = {
            name: TopicPosition(
                topic.id,
                self._start_offsets(
                    name,
                    defaults[name],
                    known.topics.get(name),
                    [loss for loss in losses if loss.topic == name],
                ),
            )
            for name, topic in self.topics.items()
        }
        # Topics that the settings no longer name keep their positions.
        other = {name: at for name, at in self.ingest.positions.topics.items() if name not in known.topics}
        return replace(known, cluster_id=self.cluster.id(), topics={**other, **topics})

    def _start_offsets(
        self,
        topic: str,
        default: Mapping[int, int],
        known: TopicPosition | None,
        losses: Collection[DataLoss],
    ) -> Mapping[int, int]:
        if known is None or any(loss.kind is Kind.RECREATED for loss in losses):
            return default
        start = {**default, **known.offsets}
        for loss in losses:
            for partition in loss.partitions:
                # The pending batch, just added, may end after the first record that still exists.
                start[partition] = max(start[partition], default[partition])
                if loss.kind is Kind.TRUNCATED:
                    start[partition] = self._first_unread(topic, partition)
        return start

    def _first_unread(self, topic: str, partition: int) -> int:
        """Return the offset of the first record that is not older than the newest one in the tables."""
        newest = newest_time(self.tables, self.settings.events_topic, topic, partition)
        position = newest.astimezone(UTC).isoformat() if newest else "earliest"
        return self.cluster.offsets({topic: self.topics[topic]}, position)[topic][partition]


@contextmanager
def job_context(spark: SparkSession, settings: Settings, job: str) -> Iterator[JobContext]:
    """Acquire the lease, open the tables and connect to the cluster.

    Args:
        spark: A session with Spark's Kafka source.
        settings: The job's settings.
        job: The job's name.

    Raises:
        PipelineError: The cluster does not respond.
        TablesError: The tables cannot be opened, or another job is writing them.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # so that dates are in UTC
    with ExitStack() as stack:
        cluster = stack.enter_context(connected(spark, settings.client))
        lease = stack.enter_context(hold_lease(Folder(spark, settings.lease_folder), job))
        tables = open_tables(spark, settings.tables, settings.format, lease=lease)
        if job == "batch" and has_few_rows(settings):
            tables = stack.enter_context(kept(tables))
        state = State(Folder(spark, settings.state_folder), lease)
        yield JobContext(spark, settings, tables, state, cluster, Ingest(spark, tables, state), lease)


def log_if_repartitioned(positions: Positions, topics: Mapping[str, KafkaTopic]) -> None:
    """Log an error if the offsets topic's number of partitions has changed."""
    known, topic = positions.topics.get(OFFSETS_TOPIC), topics.get(OFFSETS_TOPIC)
    if known is None or topic is None or len(known.offsets) == topic.partitions:
        return
    _log.error(
        "%s has %d partitions and had %d before: groups now map to other partitions. Offsets committed "
        "before are not found, so consumers start from auto.offset.reset",
        OFFSETS_TOPIC,
        topic.partitions,
        len(known.offsets),
    )


def _message(losses: Collection[DataLoss]) -> str:
    what = "; ".join(loss.message for loss in losses)
    remedies = " and ".join(dict.fromkeys(loss.remedy for loss in losses))
    return f"records are missing: {what}. Restore them, or set on_data_loss=restart to {remedies}"
