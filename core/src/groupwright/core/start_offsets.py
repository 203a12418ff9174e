"""Offsets at which an application itself starts partitions, by `assign` or `seek`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupwright.core.rebalance import TopicPartitionKey

OFFSET_BEGINNING = -2
"""librdkafka's logical offset of a log's beginning."""
_OFFSET_STORED = -1000  # the committed offset
_OFFSET_INVALID = -1001  # none given


class StartOffsets:
    """Start offsets by partition. Safe to use from any thread.

    librdkafka has no position between an assignment or a seek and the next message. Partitions that start at
    their committed offset are left out: librdkafka reports that one.
    """

    def __init__(self) -> None:
        """Start without partitions."""
        self._offsets: dict[TopicPartitionKey, int] = {}

    def set(self, partitions: Iterable[Any]) -> None:
        """Record the offsets of these `confluent_kafka.TopicPartition` objects; they may be logical ones."""
        for partition in partitions:
            key = (partition.topic, partition.partition)
            if partition.offset in {_OFFSET_STORED, _OFFSET_INVALID}:
                self._offsets.pop(key, None)
            else:
                self._offsets[key] = partition.offset

    def replace(self, partitions: Iterable[Any]) -> None:
        """Forget all partitions, and record these."""
        self._offsets.clear()
        self.set(partitions)

    def remove(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget partitions that are no longer assigned."""
        for key in keys:
            self._offsets.pop(key, None)

    def all(self) -> dict[TopicPartitionKey, int]:
        """Return a copy."""
        return self._offsets.copy()
