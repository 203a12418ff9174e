"""First messages at or after offsets, read without a group as a consumer with `read_committed` reads them."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groupwright.cli._command_line.connection import client_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core.configuration import without_secrets

if TYPE_CHECKING:
    from confluent_kafka import Message

RecordKey = tuple[str, int, int]
"""Topic, partition and offset."""

_POLL_SECONDS = 0.1
_FETCH_BYTES = 16_384
_NEAR_BYTES = 2 * _FETCH_BYTES
"""Messages up to here are read in less time than a seek takes."""
_RECORD_BYTES = 10
"""Of a message beside its key and value, at least."""
_READER = {
    "group.id": "groupwright-lag",  # required, and never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.message.max.bytes": _FETCH_BYTES,
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 1,  # a seek waits for it, and one partition may have many offsets
    "queued.min.messages": 1,
    "log_level": 0,
}


@dataclass(frozen=True, slots=True)
class FirstMessages:
    """The first messages at or after offsets.

    Offsets whose partition may not be read are in none of the attributes.

    Attributes:
        times: Timestamps of the messages, in seconds since the epoch; None for a message without one.
        absent: Offsets without a message between them and the last stable offset.
        late: Offsets whose partition did not respond in time.
    """

    times: dict[RecordKey, float | None] = field(default_factory=dict)
    absent: set[RecordKey] = field(default_factory=set)
    late: set[RecordKey] = field(default_factory=set)

    @property
    def has_message(self) -> dict[RecordKey, bool]:
        """Whether there is a message at or after each offset."""
        return dict.fromkeys(self.times, True) | dict.fromkeys(self.absent, False)


def first_messages(
    settings: Mapping[str, Any], offsets: Collection[RecordKey], timeout: float
) -> FirstMessages:
    """Return the first message at or after each offset.

    No partition is waited for beyond its last stable offset: markers of transactions, aborted and compacted
    messages, and messages behind an open transaction are not returned to a consumer.

    Args:
        settings: A client's settings, of which those of connections apply.
        offsets: The offsets.
        timeout: Seconds for all of them.
    """
    found = FirstMessages()
    if not offsets:
        return found
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    try:
        consumer = Consumer({**client_settings(settings), **_READER})
    except KafkaException as error:
        reason = without_secrets(error.args[0].str(), settings)
        raise CommandError(reason, ExitStatus.USAGE) from None
    left: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(offsets, reverse=True):
        left.setdefault((topic, partition), []).append(offset)  # the lowest last
    deadline = time.monotonic() + timeout
    try:
        consumer.assign([TopicPartition(*key, wanted[-1]) for key, wanted in left.items()])
        while left and time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            key = str(message.topic()), int(message.partition() or 0)
            if key not in left:
                continue
            _take(message, key, left[key], found)
            if not left[key]:
                del left[key]
                consumer.incremental_unassign([TopicPartition(*key)])
            elif not _is_near(left[key][-1], message):
                consumer.seek(TopicPartition(*key, left[key][-1]))
    finally:
        consumer.close()
    found.late.update((*key, offset) for key, wanted in left.items() for offset in wanted)
    return found


def _is_near(offset: int, message: "Message") -> bool:
    """Return whether the messages up to an offset, if they are as large as this one, are soon read."""
    messages = offset - int(message.offset() or 0)
    size = len(message) + len(message.key() or b"") + _RECORD_BYTES
    return messages == 1 or messages * size < _NEAR_BYTES


def _take(message: "Message", key: tuple[str, int], wanted: list[int], found: FirstMessages) -> None:
    """Take a message or an error of a partition, and remove the offsets that it settles from `wanted`."""
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError

    error = message.error()
    if error is not None:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - confluent-kafka's name
            found.absent.update((*key, offset) for offset in wanted)
        wanted.clear()
        return
    at, (kind, milliseconds) = int(message.offset() or 0), message.timestamp()
    while wanted and wanted[-1] <= at:
        found.times[*key, wanted.pop()] = None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds / 1000
