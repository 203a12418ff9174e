"""Offset tracker: the offsets to commit, which are positions or stored offsets.

With ``enable.auto.offset.store`` (the default), they are librdkafka's positions: one past the last message
that was returned. Reading them at a commit costs nothing per message. Without it, they are the offsets that
the application passed to `store_offsets`; they are kept here, since librdkafka does not return them.

Any thread may store and commit while another polls, so methods take a lock, for a few dict operations. A
signal handler may do so inside of such an operation: the lock is reentrant, and dicts are copied before they
are iterated over, which no handler interrupts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer._membership.messages import PlainMessage
from groupwright.consumer._protocol.model import Offset, Offsets
from groupwright.core import TopicPartitionKey
from groupwright.core.locking import locked


class OffsetTracker:
    """Offsets that may be committed, and those that were. Safe to use from any thread."""

    def __init__(self, *, by_hand: bool) -> None:
        """Track positions, or only what is stored `by_hand`."""
        self.by_hand = by_hand
        self._lock = threading.RLock()
        self._assigned: set[TopicPartitionKey] = set()
        """Partitions assigned by the group or by hand; `Ownership` has those of the group."""
        self._stored: dict[TopicPartitionKey, Offset] = {}
        self._committed: dict[TopicPartitionKey, Offset] = {}
        self._sought: dict[TopicPartitionKey, int] = {}
        # The offset of the last assignment or seek of each partition without a message since, and the offset
        # to commit from before it.
        self._starts: dict[TopicPartitionKey, tuple[int, Offset | None]] = {}
        self._topics: set[str] = set()
        """Topics of which a partition is assigned, or has been."""
        self._read: set[str] = set()
        """Topics of which a position was read."""

    @locked
    def store(self, offsets: Offsets) -> bool:
        """Store offsets of assigned partitions; return whether any of the partitions is assigned."""
        assigned = {key: offset for key, offset in offsets.items() if key in self._assigned}
        self._stored.update(assigned)
        return bool(assigned) or not offsets

    @locked
    def assigned(self, keys: Iterable[TopicPartitionKey], starts: Offsets) -> None:
        """Track newly assigned partitions; `starts` are their committed offsets."""
        gained = set(keys)
        self._forget(gained)
        self._assigned |= gained
        self._topics.update(topic for topic, _ in gained)
        self._committed.update({key: start for key, start in starts.items() if start.offset >= 0})

    @locked
    def dropped(self, keys: Iterable[TopicPartitionKey]) -> None:
        """Forget partitions: an offset of a former assignment must not be committed in a later one."""
        self._forget(set(keys))

    @locked
    def set_start_offsets(self, partitions: Iterable[TopicPartition]) -> None:
        """Record the start offsets of assigned partitions, at which nothing is consumed yet.

        If the application starts a partition at another offset than its committed one, the committed offset
        is forgotten, so that a lower position is committed, too.
        """
        for key, offset in from_partitions(partitions).items():
            self._starts[key] = (offset.offset, None)
            if key in self._committed and self._committed[key].offset != offset.offset:
                del self._committed[key]

    @property
    @locked
    def start_offsets(self) -> dict[TopicPartitionKey, int]:
        """Start offsets of partitions of which nothing was consumed since; logical offsets are left out."""
        return {key: offset for key, (offset, _) in self._starts.copy().items() if offset >= 0}

    @locked
    def seek(self, key: TopicPartitionKey, offset: int, position: TopicPartition) -> None:
        """Record a seek to `offset`, and the `position` before it.

        librdkafka has no position between a seek and the next message. Until then, the offset from before the
        seek may still be committed.
        """
        self._sought[key] = offset
        self._starts[key] = (offset, self._consumed([position]).get(key))

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return the offset of the last seek since the assignment; None without a seek."""
        return self._sought.get(key)

    def was_assigned(self, topic: str) -> bool:
        """Return whether any partition of this topic is assigned, or has been."""
        return topic in self._topics

    def knows(self, topic: str) -> bool:
        """Return whether librdkafka knows this topic: it was assigned, or its position was read."""
        return topic in self._topics or topic in self._read

    def on_position_read(self, topics: Iterable[str]) -> None:
        """Record that librdkafka was asked for positions of these topics, which creates its entries."""
        self._read.update(topics)

    @locked
    def committed(self, offsets: Offsets) -> None:
        """Record a successful commit, except of partitions that were revoked meanwhile."""
        self._committed.update({key: offset for key, offset in offsets.items() if key in self._assigned})

    @locked
    def all_committed(self) -> dict[TopicPartitionKey, Offset]:
        """Return the committed offsets of assigned partitions, as far as they are known."""
        return dict(self._committed)

    def pending(
        self, position: Callable[[], list[TopicPartition]], *, last: bool = False
    ) -> dict[TopicPartitionKey, Offset]:
        """Return the offsets to commit; `position` reads the handle's positions.

        These are the offsets above the committed ones. As in librdkafka, the `last` commit before partitions
        are unassigned contains all offsets: also those below the committed one, after a seek back, and those
        that are committed already.
        """
        return self._pending([] if self.by_hand else position(), last=last)

    @locked
    def _pending(self, positions: list[TopicPartition], *, last: bool) -> dict[TopicPartitionKey, Offset]:
        offsets = self._stored.copy() if self.by_hand else self._consumed(positions)
        return {
            key: offset
            for key, offset in offsets.items()
            if key in self._assigned and (last or _is_new(offset, self._committed.get(key)))
        }

    @property
    @locked
    def keys(self) -> list[TopicPartitionKey]:
        """The assigned partitions, sorted."""
        return sorted(self._assigned)

    def _consumed(self, positions: list[TopicPartition]) -> dict[TopicPartitionKey, Offset]:
        """Return the offsets of consumed messages + 1, from librdkafka's positions."""
        consumed: dict[TopicPartitionKey, Offset] = {}
        for p in positions:
            key = (p.topic, p.partition)
            start, before = self._starts.get(key, (None, None))
            if p.offset >= 0 and p.offset != start:
                self._starts.pop(key, None)
                consumed[key] = Offset(p.offset, _epoch(p.leader_epoch))
            elif before is not None:
                consumed[key] = before
        return consumed

    def _forget(self, keys: set[TopicPartitionKey]) -> None:
        self._assigned -= keys
        for key in keys:
            self._stored.pop(key, None)
            self._sought.pop(key, None)
            self._starts.pop(key, None)
            self._committed.pop(key, None)


def from_partitions(partitions: Iterable[TopicPartition]) -> dict[TopicPartitionKey, Offset]:
    """Read offsets from confluent-kafka's type; partitions without a real offset are left out."""
    return {
        (p.topic, p.partition): Offset(p.offset, _epoch(p.leader_epoch), p.metadata)
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
        _partition(TopicPartition, key, offset.offset, offset.leader_epoch, offset.metadata)
        for key, offset in offsets.items()
    ]


def _is_new(offset: Offset, committed: Offset | None) -> bool:
    if committed is None:
        return True
    if -1 in {offset.leader_epoch, committed.leader_epoch}:
        return offset.offset > committed.offset
    return (offset.leader_epoch, offset.offset) > (committed.leader_epoch, committed.offset)


class FailedPartition(TopicPartition):
    """A partition with the error of a commit; in confluent-kafka's own type, Python cannot set it."""

    error: KafkaError | None = None  # type: ignore[assignment,unused-ignore] # made settable

    def __repr__(self) -> str:
        """Write it as confluent-kafka does."""
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self.leader_epoch},error={self.error}}}"
        )

    __str__ = __repr__
    __hash__ = TopicPartition.__hash__

    # confluent-kafka's operators accept no subclasses.
    def __eq__(self, other: object) -> bool:
        """Compare topic and partition, as confluent-kafka does."""
        return isinstance(other, TopicPartition) and _key(self) == _key(other)

    def __ne__(self, other: object) -> bool:
        """Compare topic and partition."""
        return not self == other

    def __lt__(self, other: TopicPartition) -> bool:
        """Order by topic and partition."""
        return _key(self) < _key(other)

    def __le__(self, other: TopicPartition) -> bool:
        """Order by topic and partition."""
        return _key(self) <= _key(other)

    def __gt__(self, other: TopicPartition) -> bool:
        """Order by topic and partition."""
        return _key(self) > _key(other)

    def __ge__(self, other: TopicPartition) -> bool:
        """Order by topic and partition."""
        return _key(self) >= _key(other)


def reported(
    partitions: Iterable[TopicPartition], errors: Mapping[TopicPartitionKey, int]
) -> list[TopicPartition]:
    """Copy the partitions of a commit for its caller or its callback, with their errors."""
    report = []
    for p in sorted(partitions, key=_key):  # as librdkafka does
        code = errors.get(_key(p), 0)
        kind = FailedPartition if code else TopicPartition
        made = _partition(kind, _key(p), p.offset, _epoch(p.leader_epoch), p.metadata)
        if isinstance(made, FailedPartition):
            made.error = KafkaError(code)
        report.append(made)
    return report


def _partition(
    kind: type[TopicPartition], key: TopicPartitionKey, offset: int, epoch: int, metadata: str | None
) -> TopicPartition:
    if metadata is None:  # confluent-kafka's constructor takes no None
        return kind(*key, offset, leader_epoch=epoch)
    return kind(*key, offset, metadata, leader_epoch=epoch)


def check_partitions(partitions: object) -> None:
    """Check that the argument is a list of partitions.

    Raises:
        TypeError: It is not; with confluent-kafka's message.
    """
    if not isinstance(partitions, list):
        raise TypeError("requires list of TopicPartition")
    if not all(isinstance(p, TopicPartition) for p in partitions):
        raise TypeError("expected cimpl.TopicPartition")


def check_message(message: object) -> None:
    """Check that the argument is a message.

    Raises:
        TypeError: It is not; with confluent-kafka's message.
    """
    if not isinstance(message, (Message, PlainMessage)):
        raise TypeError("expected confluent_kafka.cimpl.Message")


def _key(partition: TopicPartition) -> TopicPartitionKey:
    return partition.topic, partition.partition


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch
