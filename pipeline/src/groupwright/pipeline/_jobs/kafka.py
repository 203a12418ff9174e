"""Cluster metadata and offsets, from Kafka's admin client in Spark's JVM, so the source's settings apply."""

import json
import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from groupwright.pipeline._tables.java import has_class, java_class
from groupwright.pipeline.errors import PipelineError, SettingsError, UnreachableError

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
"""Maven coordinates of Spark's Kafka source, which includes Kafka's clients."""
SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
"""Its class."""

_TIMEOUT_SECONDS = 60
_CLOSE_SECONDS = 5
_NO_TOPIC = {"UnknownTopicOrPartitionException", "InvalidTopicException"}
"""Exceptions of a topic that does not exist."""
_FORBIDDEN = "TopicAuthorizationException"
_SHOWN = 5

_log = logging.getLogger("groupwright.pipeline")


def few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic's id, base64-encoded as in Kafka's tools, and number of partitions."""

    id: str
    partitions: int


class Cluster:
    """Admin client of a cluster. Only one thread at a time may call `log_bounds`."""

    def __init__(self, jvm: Any, admin: Any, address: str, consumer_configuration: Any) -> None:
        """Wrap an admin client; use `connected` to create one."""
        self._jvm = jvm
        self._consumer: Any = None
        self._consumer_configuration = consumer_configuration
        self._admin = admin
        self._address = address
        self._time_unit = java_class(jvm, "java.util.concurrent.TimeUnit").SECONDS

    def id(self) -> str:
        """Return the cluster's id.

        Raises:
            PipelineError: The cluster does not respond.
        """
        return str(self._result(self._admin.describeCluster().clusterId()))

    def topics(self, names: Collection[str], *, skip_forbidden: bool = False) -> dict[str, KafkaTopic]:
        """Return the topics that exist.

        Args:
            names: The topics' names.
            skip_forbidden: Whether topics that the principal may not describe are left out.

        Raises:
            PipelineError: The cluster does not respond, or the principal may not describe a topic.
        """
        return {
            name: KafkaTopic(description.topicId().toString(), len(description.partitions()))
            for name, description in self._descriptions(names, skip_forbidden=skip_forbidden)
        }

    def offsets(
        self, topics: Mapping[str, KafkaTopic], position: str, *, read_committed: bool = True
    ) -> Offsets:
        """Return the offsets of all partitions.

        Args:
            topics: The topics.
            position: `earliest`, `latest`, or an ISO 8601 time: the first record at or after it.
            read_committed: Whether a log ends at its last stable offset, before open transactions.

        Raises:
            PipelineError: `position` is none of these, or the cluster does not respond.
        """
        spec = self._spec(position)
        requests = self._class("java.util.HashMap")()
        topic_partition = self._class("org.apache.kafka.common.TopicPartition")
        for name, topic in topics.items():
            for partition in range(topic.partitions):
                requests.put(topic_partition(name, partition), spec)
        levels = self._class("org.apache.kafka.common.IsolationLevel")
        level = levels.READ_COMMITTED if read_committed else levels.READ_UNCOMMITTED
        options = self._class("org.apache.kafka.clients.admin.ListOffsetsOptions")(level)
        results = self._result(self._admin.listOffsets(requests, options).all())
        offsets: Offsets = {name: {} for name in topics}
        for partition, result in results.items():
            offsets[str(partition.topic())][int(partition.partition())] = int(result.offset())
        return self._with_ends(topics, offsets)

    def log_bounds(self, topics: Mapping[str, KafkaTopic]) -> tuple[str, str]:
        """Return the first and, queried later, the last stable offset of all partitions with a leader.

        Both are JSON objects by `topic-partition`. The request and the answers cross to and from Spark's JVM
        as a whole: a call for each partition takes 0.4 ms, which is minutes for a large cluster.

        Raises:
            PipelineError: The cluster does not respond.
        """
        wanted = {name: dict.fromkeys(range(topic.partitions), 0) for name, topic in topics.items()}
        try:
            return self._log_bounds(wanted)
        except UnreachableError:
            # Kafka's client returns no offset at all while one partition has no leader. To look for these
            # takes a call for each partition, so it is done only then.
            if not (offline := self._offline(topics)):
                raise
        _log.warning(
            "The sample of log-end offsets lacks partitions without a leader: %s",
            few([f"{name}-{partition}" for name, partition in offline]),
        )
        for name, partition in offline:
            wanted[name].pop(partition, None)
        return self._log_bounds({name: partitions for name, partitions in wanted.items() if partitions})

    def close(self) -> None:
        """Close the connections, within 10 s."""
        timeout = self._class("java.time.Duration").ofSeconds(_CLOSE_SECONDS)
        if self._consumer is not None:
            try:
                self._consumer.close(timeout)
            except Py4JJavaError as error:  # a thread that did not end in time still uses it
                _log.warning("The consumer of sampled offsets was not closed: %s", _cause(error).toString())
        self._admin.close(timeout)

    def _descriptions(
        self, names: Collection[str], *, skip_forbidden: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield the name and the `TopicDescription` of each topic that exists."""
        # One future per topic: a topic may be deleted meanwhile.
        futures = self._admin.describeTopics(self._java_list(sorted(names))).topicNameValues()
        for name, future in futures.items():
            try:
                description = self._get(future)
            except Py4JJavaError as error:
                kind = str(_cause(error).getClass().getSimpleName())
                if kind == _FORBIDDEN and not skip_forbidden:
                    raise PipelineError(
                        f"the job's principal may not describe the topic {name}: grant it Describe and Read "
                        "(events_topic= reads no events)"
                    ) from None
                if kind not in {*_NO_TOPIC, _FORBIDDEN}:
                    raise self._no_response(error) from None
            else:
                yield str(name), description

    def _offline(self, topics: Collection[str]) -> list[tuple[str, int]]:
        """Return the partitions that have no leader."""
        return [
            (name, int(partition.partition()))
            for name, description in self._descriptions(topics)
            for partition in description.partitions()
            if partition.leader() is None
        ]

    def _log_bounds(self, wanted: Mapping[str, Mapping[int, int]]) -> tuple[str, str]:
        by_partition = self._class("org.apache.spark.sql.kafka010.JsonUtils").partitionOffsets(
            json.dumps(wanted)
        )
        partitions = self._class("scala.jdk.javaapi.CollectionConverters").asJavaCollection(
            by_partition.keySet()
        )
        timeout = self._class("java.time.Duration").ofSeconds(_TIMEOUT_SECONDS)
        try:
            if self._consumer is None:
                consumer_class = self._class("org.apache.kafka.clients.consumer.KafkaConsumer")
                self._consumer = consumer_class(self._consumer_configuration)
            bounds = (
                self._consumer.beginningOffsets(partitions, timeout),
                self._consumer.endOffsets(partitions, timeout),
            )
        except Py4JJavaError as error:
            raise self._no_response(error) from None
        mapper = self._class("com.fasterxml.jackson.databind.ObjectMapper")()
        starts, ends = (str(mapper.writeValueAsString(offsets)) for offsets in bounds)
        return starts, ends

    def _with_ends(self, topics: Mapping[str, KafkaTopic], offsets: Offsets) -> Offsets:
        """Replace -1, which means that all records are older than the given time, by the log-end offset."""
        if all(offset >= 0 for by_partition in offsets.values() for offset in by_partition.values()):
            return offsets
        ends = self.offsets(topics, "latest")
        return {
            name: {
                partition: ends[name][partition] if offset < 0 else offset
                for partition, offset in by_partition.items()
            }
            for name, by_partition in offsets.items()
        }

    def _spec(self, position: str) -> Any:
        specs = self._class("org.apache.kafka.clients.admin.OffsetSpec")
        if position in {"earliest", "latest"}:
            return specs.earliest() if position == "earliest" else specs.latest()
        return specs.forTimestamp(math.ceil(time_of(position).timestamp() * 1000))

    def _class(self, name: str) -> Any:
        return java_class(self._jvm, name)

    def _java_list(self, values: Collection[str]) -> Any:
        listed = self._class("java.util.ArrayList")()
        for value in values:
            listed.add(value)
        return listed

    def _result(self, future: Any) -> Any:
        try:
            return self._get(future)
        except Py4JJavaError as error:
            raise self._no_response(error) from None

    def _get(self, future: Any) -> Any:
        return future.get(_TIMEOUT_SECONDS, self._time_unit)

    def _no_response(self, error: Py4JJavaError) -> UnreachableError:
        return UnreachableError(f"Kafka at {self._address} does not respond: {_cause(error).toString()}")


def _cause(error: Py4JJavaError) -> Any:
    return error.java_exception.getCause() or error.java_exception


@contextmanager
def connected(spark: SparkSession, client: Mapping[str, str]) -> Iterator[Cluster]:
    """Connect to a cluster.

    Args:
        spark: A session with Kafka's clients on its class path.
        client: The client's settings, including `bootstrap.servers`.

    Raises:
        PipelineError: Spark does not have Kafka's clients, or they reject the settings.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no other way to its class path
    admin_class = java_class(jvm, "org.apache.kafka.clients.admin.Admin")
    if not has_class(jvm, SOURCE):
        raise PipelineError(
            f"Spark's Kafka source is missing: start Spark with `--packages {CONNECTOR}`, in the version of "
            "your Spark"
        )
    configuration = java_class(jvm, "java.util.HashMap")()
    for key, value in client.items():
        configuration.put(key, value)
    address = client["bootstrap.servers"]
    try:
        admin = admin_class.create(configuration)
    except Py4JJavaError as error:
        raise SettingsError(f"Kafka's client rejects its settings: {_cause(error).getMessage()}") from None
    for side in ("key", "value"):
        configuration.put(
            f"{side}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        )
    configuration.put("isolation.level", "read_committed")
    configuration.put("allow.auto.create.topics", "false")  # of a topic that was deleted meanwhile
    cluster = Cluster(jvm, admin, address, configuration)
    try:
        yield cluster
    finally:
        cluster.close()


def time_of(text: str) -> datetime:
    """Parse an ISO 8601 time; without a UTC offset it is in UTC.

    Raises:
        PipelineError: The text is not such a time, or it is before 1970 or after the year 9998.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{text!r} is not a position in a log: write earliest, latest, or a time such as "
            "2026-11-21T08:00:00Z"
        ) from None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if not datetime(1970, 1, 1, tzinfo=UTC) <= time < datetime(9999, 1, 1, tzinfo=UTC):
        raise SettingsError(f"{text} is no time of a record: write one between the years 1970 and 9998")
    return time
