"""Snapshots whose committed offsets and generations come from the records of `__consumer_offsets`."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.lag import Committed
from groupwright.cli._command_line.connection import client_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.exporter.admin_source import AdminSource
from groupwright.cli.exporter.committed_offsets import CommittedOffsets
from groupwright.cli.exporter.limits import GroupLimit
from groupwright.cli.exporter.snapshot import OffsetsTopicState
from groupwright.core.configuration import without_secrets
from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.pipeline import decode_batch

_READER = {
    "group.id": "groupwright-exporter",  # required, and never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "queued.max.messages.kbytes": 16 * 1024,
    "log_level": 0,
}
_BATCH = 10_000
_POLL_SECONDS = 0.1
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
    ]
)


class OffsetsLog:
    """Reader of `__consumer_offsets` from its beginning, without a group."""

    def __init__(self, settings: Mapping[str, Any], timeout: float) -> None:
        """Prepare; nothing is read before the first `read`.

        Args:
            settings: A client's settings, of which those of connections apply.
            timeout: Seconds without records after which a read fails.

        Raises:
            CommandError: The configuration is invalid.
        """
        try:
            self._consumer = Consumer({**client_settings(settings), **_READER})
        except KafkaException as error:
            reason = without_secrets(error.args[0].str(), settings)
            raise CommandError(reason, ExitStatus.USAGE) from None
        self._timeout = timeout
        self._partitions = 0
        self._positions: dict[int, int] = {}
        self._followed: set[int] = set()
        """Partitions that were read to their end once; what comes after is new."""
        self._is_closing = False
        self._reading = threading.Lock()
        self.content = CommittedOffsets()

    def close(self) -> None:
        """Close the connections, after a read in another thread has ended early."""
        self._is_closing = True
        with self._reading:
            self._consumer.close()

    def read(self, topic: OffsetsTopicState) -> None:
        """Read all partitions up to their known last stable offsets, or further.

        Args:
            topic: The offsets topic.

        Raises:
            CommandError: There was nothing to read for the timeout, or reading is not allowed.
        """
        with self._reading:
            self._assign(topic.partitions)
            deadline = time.monotonic() + self._timeout
            while not self._is_closing:
                if all(self._positions.get(number, 0) >= end for number, end in topic.stable.items()):
                    self._followed.update(topic.stable)
                    return
                messages = self._consumer.consume(_BATCH, _POLL_SECONDS)
                if messages:
                    self._apply(messages)
                    deadline = time.monotonic() + self._timeout
                elif time.monotonic() > deadline:
                    break
        raise CommandError(
            f"{OFFSETS_TOPIC} was not read to its end: no records within {self._timeout:g} s",
            ExitStatus.UNREACHABLE,
        )

    def _assign(self, partitions: int) -> None:
        if partitions > self._partitions:
            added = range(self._partitions, partitions)
            self._consumer.incremental_assign(
                [TopicPartition(OFFSETS_TOPIC, number, OFFSET_BEGINNING) for number in added]
            )
            self._partitions = partitions

    def _apply(self, messages: Sequence[Message]) -> None:
        records = []
        for message in messages:
            error, partition = message.error(), int(message.partition() or 0)
            if error is None:
                records.append(message)
                self._positions[partition] = int(message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - confluent-kafka's name
                # This is after transaction markers, which are not returned as messages.
                self._positions[partition] = int(message.offset() or 0)
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise _forbidden()
        new = [each for each in records if each.partition() in self._followed]
        past = [each for each in records if each.partition() not in self._followed]
        for some, is_past in ((past, True), (new, False)):
            if some:
                self.content.apply(decode_batch(_raw(some)), is_past=is_past)


def _forbidden() -> CommandError:
    return CommandError(
        f"these credentials may not read {OFFSETS_TOPIC}: allow Read and Describe on it, or use "
        "--source admin",
        ExitStatus.FORBIDDEN,
    )


def _raw(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


class OffsetsTopicSource(AdminSource):
    """Takes snapshots, for which it reads `__consumer_offsets`.

    Members and states come from requests. A partition that a transaction holds back cannot be read to its
    end, and neither can one whose end is not known: brokers are asked for the offsets of its groups.
    """

    def __init__(self, cluster: Cluster, groups: GroupLimit, log: OffsetsLog) -> None:
        """Create it.

        Args:
            cluster: The cluster.
            groups: Chooses the groups to show.
            log: The reader, which the caller closes.
        """
        super().__init__(cluster, groups)
        self._log = log

    def committed(self, groups: Collection[str], topic: OffsetsTopicState | None) -> Committed:
        """Return the committed offsets of groups other than share groups."""
        if topic is None:
            raise _forbidden()
        if topic.partitions:
            self._log.read(topic)
        readable = topic.stable.keys() - topic.held
        asked = [
            id_ for id_ in groups if topic.partitions and partition_for(id_, topic.partitions) not in readable
        ]
        read = {id_: self._log.content.offsets.get(id_, {}) for id_ in groups}
        return {**read, **self._cluster.committed(asked)} if asked else read

    def generations(self) -> Mapping[str, int]:
        """Return the generations of classic groups."""
        return self._log.content.generations

    def commits(self) -> Mapping[str, int]:
        """Return the number of committed offsets since the start, by group."""
        return self._log.content.commits
