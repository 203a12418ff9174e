"""Timestamps of messages, read without a group."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core.configuration import without_secrets

RecordKey = tuple[str, int, int]
"""Topic, partition and offset."""

_POLL_SECONDS = 0.1
_READER = {
    "group.id": "groupwright-lag",  # required, and never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "earliest",
    "fetch.message.max.bytes": 1024,
    "queued.min.messages": 1,
    "log_level": 0,
}


def record_times(
    settings: Mapping[str, Any], offsets: Collection[RecordKey], timeout: float
) -> dict[RecordKey, float]:
    """Return the timestamp of the first message at or after each offset, in seconds since the epoch.

    Messages without a timestamp, or that do not come in time, are left out.

    Args:
        settings: A confluent-kafka configuration.
        offsets: Offsets with a message at or after them.
        timeout: Seconds for all of them.
    """
    if not offsets:
        return {}
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, TopicPartition

    try:
        consumer = Consumer({**settings, **_READER})
    except KafkaException as error:
        reason = without_secrets(error.args[0].str(), settings)
        raise CommandError(reason, ExitStatus.USAGE) from None
    left: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(offsets, reverse=True):
        left.setdefault((topic, partition), []).append(offset)  # the lowest last
    found: dict[RecordKey, float] = {}
    deadline = time.monotonic() + timeout
    try:
        consumer.assign([TopicPartition(*key, wanted[-1]) for key, wanted in left.items()])
        while left and time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            if message is None or message.error():
                continue
            key, at = (str(message.topic()), int(message.partition() or 0)), int(message.offset() or 0)
            wanted = left.get(key, [])
            kind, milliseconds = message.timestamp()
            while wanted and wanted[-1] <= at:
                offset = wanted.pop()
                if kind != TIMESTAMP_NOT_AVAILABLE:
                    found[*key, offset] = milliseconds / 1000
            if wanted:
                consumer.seek(TopicPartition(*key, wanted[-1]))
            elif key in left:
                del left[key]
                consumer.incremental_unassign([TopicPartition(*key)])
    finally:
        consumer.close()
    return found
