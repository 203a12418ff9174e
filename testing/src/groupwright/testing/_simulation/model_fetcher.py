"""Partitions that a simulated consumer owns, with their positions, and the messages that it fetches."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from groupwright.core import TopicPartitionKey
from groupwright.testing._simulation.cluster import Cluster, Topic
from groupwright.testing._simulation.messages import CommittedOffset
from groupwright.testing._simulation.scheduler import MS, Event, Process

FETCH_LATENCY = (1 * MS, 4 * MS)
"""Shortest and longest time from a message's append to its arrival at a consumer that waits for it."""
FETCH_RETRY = 500 * MS
"""Time until a consumer tries again to fetch from a partition that cannot be reached or does not exist."""

Message = tuple[int, str, int, int]
"""(topic id, topic, partition, offset)."""


@dataclass(slots=True)
class Position:
    """An owned partition.

    Attributes:
        partition: The partition.
        next: Offset of the next message; None until the committed offset is known.
        committed: The last offset that was committed or fetched as such.
        topic_id: The topic to which `next` belongs; 0 for the one that exists at the first fetch.
        is_waiting: Whether all messages are fetched, so that the partition's next append wakes the consumer.
    """

    partition: TopicPartitionKey
    next: int | None = None
    committed: int = -1
    topic_id: int = 0
    is_waiting: bool = False


class ModelFetcher:
    """Owned partitions and their messages."""

    def __init__(self, cluster: Cluster, process: Process, on_messages: Callable[[], object]) -> None:
        """Create a fetcher without partitions; `on_messages` is called when `fetch` may have messages."""
        self.owned: dict[TopicPartitionKey, Position] = {}
        self.is_paused = False
        """True if `fetch` returns nothing, because all partitions are about to be revoked."""
        self._cluster = cluster
        self._process = process
        self._on_messages = on_messages
        self._random = process.scheduler.stream(f"{process.name}/fetch")
        self._wake: Event | None = None
        self._turn = 0

    def assign(self, partitions: Iterable[TopicPartitionKey]) -> None:
        """Own these partitions, besides the others; `start` must follow."""
        self.owned.update((partition, Position(partition)) for partition in partitions)

    def unassign(self, partitions: Iterable[TopicPartitionKey]) -> None:
        """Own these partitions no longer."""
        for partition in partitions:
            del self.owned[partition]

    def unknown(self) -> list[Position]:
        """Return the partitions whose committed offset is not known."""
        return [position for position in self.owned.values() if position.next is None]

    def start(self, positions: Sequence[Position], committed: Sequence[int]) -> None:
        """Set positions to the committed offsets, or to the beginning where an offset is -1."""
        for position, offset in zip(positions, committed, strict=True):
            position.next, position.committed = max(offset, 0), offset

    def to_commit(
        self, partitions: Iterable[TopicPartitionKey] | None = None
    ) -> tuple[tuple[TopicPartitionKey, CommittedOffset], ...]:
        """Return positions that are not committed, of these or of all partitions."""
        chosen = self.owned if partitions is None else partitions
        positions = [self.owned[partition] for partition in chosen]
        return tuple(
            (each.partition, CommittedOffset(each.next))
            for each in positions
            if each.next is not None and each.next != max(each.committed, 0)
        )

    def on_committed(self, partition: TopicPartitionKey, offset: int) -> None:
        """Record a commit that the coordinator has accepted."""
        if partition in self.owned:
            self.owned[partition].committed = offset

    def fetch(self, limit: int) -> list[Message]:
        """Return the next messages, from one partition after the other, and move the positions.

        Where there are none, the next append calls `on_messages`.
        """
        messages: list[Message] = []
        if self.is_paused or not self.owned:
            return messages
        positions = list(self.owned.values())
        self._turn = (self._turn + 1) % len(positions)
        for position in positions[self._turn :] + positions[: self._turn]:
            if position.next is None or position.is_waiting:
                continue
            topic = self._topic(position)
            if topic is None:
                self._wake_in(FETCH_RETRY)
                continue
            name, partition = position.partition
            taken = range(position.next, min(topic.ends[partition], position.next + limit - len(messages)))
            messages += [(topic.id, name, partition, offset) for offset in taken]
            position.next = taken.stop if taken else position.next
            if position.next >= topic.ends[partition]:
                position.is_waiting = True
                topic.fetchers.setdefault(partition, []).append(partial(self._appended, position))
        return messages

    def _topic(self, position: Position) -> Topic | None:
        """Return the topic if the partition can be fetched from; reset positions of an earlier topic."""
        name, partition = position.partition
        topic = self._cluster.topics.get(name)
        if topic is None or partition >= len(topic.ends):
            return None
        if not self._cluster.reaches(self._process, self._cluster.leader(position.partition)):
            return None
        if position.topic_id not in {0, topic.id}:  # the topic was deleted and created again
            position.next, position.committed = 0, -1
        position.topic_id = topic.id
        return topic

    def _appended(self, position: Position) -> None:
        position.is_waiting = False
        if self.owned.get(position.partition) is position:
            low, high = FETCH_LATENCY
            self._wake_in(low + int(self._random.random() * (high - low)))

    def _wake_in(self, delay: int) -> None:
        when = self._process.scheduler.now + delay
        if self._wake is None or self._wake.when > when:
            if self._wake is not None:
                self._wake.cancel()
            self._wake = self._process.call_at(when, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._on_messages()
