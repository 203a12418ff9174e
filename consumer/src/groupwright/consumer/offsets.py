"""Which offsets to commit: what the application has been handed, or what it has stored by hand.

With ``enable.auto.offset.store`` (the default) that is librdkafka's position, one past the last message that
was returned; reading it costs nothing per message. Without it, what `store_offsets` was told is kept here, since
librdkafka does not give it back.

Any thread may store and commit while another polls, so every method takes a lock, for a few dict operations.
"""

import threading
from collections.abc import Callable, Iterable

from confluent_kafka import Message, TopicPartition

from groupwright.consumer.protocol import Offset, Offsets, TopicPartitionKey


class OffsetTracker:
    """What may be committed, and what has been. Safe to use from any thread."""

    def __init__(self, *, by_hand: bool) -> None:
        """Track positions, or only what is stored `by_hand`."""
        self.by_hand = by_hand
        self._lock = threading.Lock()
        self._assigned: set[TopicPartitionKey] = set()
        self._stored: dict[TopicPartitionKey, Offset] = {}
        self._committed: dict[TopicPartitionKey, int] = {}
        self._sought: dict[TopicPartitionKey, int] = {}

    def store(self, offsets: Offsets) -> bool:
        """Remember what the application stored of assigned partitions; return whether any of them is assigned."""
        with self._lock:
            assigned = {key: offset for key, offset in offsets.items() if key in self._assigned}
            self._stored.update(assigned)
        return bool(assigned) or not offsets

    def assigned(self, keys: Iterable[TopicPartitionKey], starts: Offsets) -> None:
        """Start afresh with partitions that were gained."""
        gained = set(keys)
        with self._lock:
            self._forget(gained)
            self._assigned |= gained
            self._committed.update({key: start.offset for key, start in starts.items() if start.offset >= 0})

    def dropped(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget partitions: an offset stored under a former assignment must not be committed under a later."""
        with self._lock:
            self._forget(set(keys))

    def seek(self, key: TopicPartitionKey, offset: int) -> None:
        """Note where a partition was sought: until a message of it comes, librdkafka knows no position."""
        with self._lock:
            self._sought[key] = offset

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return where a partition was last sought since it was assigned; None if nowhere."""
        return self._sought.get(key)

    def owns(self, key: TopicPartitionKey) -> bool:
        """Whether a partition is assigned."""
        return key in self._assigned

    def committed(self, offsets: Offsets) -> None:
        """Note a commit that succeeded; of a partition that went meanwhile it says nothing."""
        with self._lock:
            self._committed.update(
                {key: offset.offset for key, offset in offsets.items() if key in self._assigned}
            )

    def pending(self, position: Callable[[], list[TopicPartition]]) -> dict[TopicPartitionKey, Offset]:
        """Return what has not been committed yet; `position` reads the handle's positions."""
        consumed = None if self.by_hand else from_partitions(position())
        with self._lock:
            offsets = self._stored if consumed is None else consumed
            return {
                key: offset
                for key, offset in offsets.items()
                if key in self._assigned and self._committed.get(key) != offset.offset
            }

    def _forget(self, keys: set[TopicPartitionKey]) -> None:
        self._assigned -= keys
        for key in keys:
            self._stored.pop(key, None)
            self._sought.pop(key, None)
            self._committed.pop(key, None)


def from_partitions(partitions: Iterable[TopicPartition]) -> dict[TopicPartitionKey, Offset]:
    """Read offsets from confluent-kafka's type; partitions without a real offset are left out."""
    return {
        (p.topic, p.partition): Offset(p.offset, _epoch(p.leader_epoch), p.metadata or "")
        for p in partitions
        if p.offset >= 0
    }


def from_message(message: Message) -> dict[TopicPartitionKey, Offset]:
    """Return the offset that follows a message; nothing for a message that is an error."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if message.error() is not None or topic is None or partition is None or offset is None:
        return {}
    return {(topic, partition): Offset(offset + 1, _epoch(message.leader_epoch()))}


def to_partitions(offsets: Offsets) -> list[TopicPartition]:
    """Write offsets as confluent-kafka's type."""
    return [
        TopicPartition(
            topic, number, offset.offset, metadata=offset.metadata, leader_epoch=offset.leader_epoch
        )
        for (topic, number), offset in offsets.items()
    ]


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch
