"""Offsets that groups have committed, and their expiry (Kafka's `OffsetMetadataManager`).

Transactions are left out: an offset of the model is always stable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from groupwright.core import TopicPartitionKey
from groupwright.testing._simulation.classic_group import CONSUMER, ClassicGroup, State
from groupwright.testing._simulation.messages import NO_OFFSET, CommittedOffset
from groupwright.testing._simulation.records import Log, OffsetCommitKey, OffsetCommitRecord


@dataclass(slots=True)
class CommittedOffsets:
    """The committed offsets of all groups, which are written to `log` at once."""

    log: Log
    _offsets: dict[str, dict[TopicPartitionKey, OffsetCommitRecord]] = field(default_factory=dict)

    def load(self, key: OffsetCommitKey, record: OffsetCommitRecord) -> None:
        """Take up an offset that the log has."""
        self._offsets.setdefault(key.group_id, {})[key.partition] = record

    def commit(self, group_id: str, partition: TopicPartitionKey, offset: CommittedOffset, now: int) -> None:
        """Store an offset, in place of the partition's last one."""
        key = OffsetCommitKey(group_id, partition)
        record = OffsetCommitRecord(offset, now)
        self.log[key] = record
        self.load(key, record)

    def fetch(self, group_id: str, partition: TopicPartitionKey) -> CommittedOffset:
        """Return a partition's committed offset, or `NO_OFFSET`."""
        record = self._offsets.get(group_id, {}).get(partition)
        return record.committed if record else NO_OFFSET

    def delete(self, group_id: str, partition: TopicPartitionKey) -> None:
        """Delete a partition's offset, if there is one."""
        if self._offsets.get(group_id, {}).pop(partition, None) is not None:
            del self.log[OffsetCommitKey(group_id, partition)]

    def delete_all(self, group_id: str) -> None:
        """Delete all offsets of a group."""
        for partition in list(self._offsets.get(group_id, {})):
            self.delete(group_id, partition)

    def delete_topic(self, topic: str) -> None:
        """Delete the offsets of a topic, in all groups."""
        for group_id, offsets in self._offsets.items():
            for partition in [each for each in offsets if each[0] == topic]:
                self.delete(group_id, partition)

    def has_any(self, group_id: str) -> bool:
        """Return whether a group has committed offsets."""
        return bool(self._offsets.get(group_id))

    def delete_expired(self, group: ClassicGroup, retention_ms: int, now: int) -> None:
        """Delete the offsets of a group that have expired (KIP-211).

        The retention time begins when the group becomes Empty, so it is the same for all its offsets. It
        begins with each commit if the group never had members, or, while a group of consumers is Stable, if
        no member is subscribed to the topic. In other cases offsets do not expire.
        """
        for partition, since in list(self._begins(group)):
            if now - since >= retention_ms:
                self.delete(group.group_id, partition)

    def _begins(self, group: ClassicGroup) -> Iterator[tuple[TopicPartitionKey, int]]:
        """Yield the partitions whose offsets can expire, with the beginning of the retention time."""
        empty = group.protocol_type is not None and group.state is State.EMPTY
        by_topic = group.protocol_type == CONSUMER and group.state is State.STABLE
        if by_topic and group.subscribed_topics is None:
            return
        if empty or by_topic or group.protocol_type is None:
            for partition, record in self._offsets.get(group.group_id, {}).items():
                if not group.is_subscribed_to(partition[0]):
                    yield partition, group.state_since_ms if empty else record.commit_time_ms
