"""Ledger of a group under load: the events of all members and of the producer."""

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups import report
from groupwright.testing._groups.events import (
    Assigned,
    Committed,
    Consumed,
    Died,
    Event,
    Failed,
    Killed,
    Left,
    Produced,
    Rebalanced,
    Revoked,
    now,
)
from groupwright.testing._groups.member_history import End, MemberHistory, Window
from groupwright.testing._groups.offsets import OffsetMap, Span

_FAILED = "failed"


class Ledger:
    """Events of all members and of the producer, and the state derived from them. Thread-safe.

    Attributes:
        histories: Each member's events, by its name, in the order in which they were recorded.
        produced: The producer's events.
        generations: The last generation that each member in the group reported.
        commits: Number of successful commits that each member reported.
    """

    def __init__(self) -> None:
        """Start with no events."""
        self.histories: defaultdict[str, list[Event]] = defaultdict(list)
        self.produced: list[Produced] = []
        self.generations: dict[str, int] = {}
        self.commits: Counter[str] = Counter()
        self._owned: defaultdict[str, set[TopicPartitionKey]] = defaultdict(set)
        self._assigned: set[str] = set()
        self._consumed_by_member: Counter[str] = Counter()
        self._committed: dict[TopicPartitionKey, int] = {}
        self._produced_offsets: defaultdict[TopicPartitionKey, OffsetMap[None]] = defaultdict(OffsetMap)
        self._consumed_offsets: defaultdict[TopicPartitionKey, OffsetMap[None]] = defaultdict(OffsetMap)
        self._forgotten: dict[str, float] = {}
        self._forgotten_count = 0
        self._lock = threading.RLock()

    # --- Writing

    def record(self, member: str, *events: Event) -> None:
        """Record a member's events, in its order."""
        with self._lock:
            for event in events:
                self.histories[member].append(event)
                self._apply(member, event)

    def record_produced(self, event: Produced) -> None:
        """Record messages that brokers acknowledged."""
        with self._lock:
            self.produced.append(event)
            for span in event.spans:
                self._produced_offsets[span.topic, span.partition].put(span.start, span.stop, None)

    def forget(self, topic: str) -> None:
        """Forget the messages of a deleted topic: they need not be consumed, and `check` ignores them.

        If the topic is created again, its offsets begin at 0. `histories` and `produced` keep all events.
        """
        with self._lock:
            self._forgotten[topic] = now()
            maps = (self._produced_offsets, self._consumed_offsets)
            for partition in {each for offsets in maps for each in offsets if each[0] == topic}:
                self._produced_offsets.pop(partition, None)
                if (consumed := self._consumed_offsets.pop(partition, None)) is not None:
                    self._forgotten_count += consumed.size
                self._committed.pop(partition, None)

    def _apply(self, member: str, event: Event) -> None:
        match event:
            case Assigned(partitions=partitions):
                self._assigned.add(member)
                self._owned[member].update(partitions)
            case Revoked(partitions=partitions):
                self._owned[member].difference_update(partitions)
            case Rebalanced(generation=generation, outcome=outcome) if outcome != _FAILED:
                self.generations[member] = generation
            case Consumed(spans=spans):
                for span in spans:
                    self._consumed_by_member[member] += span.size
                    self._consumed_offsets[span.topic, span.partition].put(span.start, span.stop, None)
            case Committed(offsets=offsets, error=None):
                self.commits[member] += 1
                for partition, offset in offsets.items():
                    self._committed[partition] = max(offset, self._committed.get(partition, 0))
            case Killed() | Left() | Died():
                self._owned[member].clear()
                self._assigned.discard(member)
                self.generations.pop(member, None)
            case _:
                pass

    # --- Reading

    @property
    def produced_count(self) -> int:
        """The number of messages that brokers acknowledged."""
        with self._lock:
            return sum(each.size for each in self._produced_offsets.values())

    @property
    def consumed_count(self) -> int:
        """The number of deliveries, over all members; a message that was consumed twice counts twice."""
        return sum(self._consumed_by_member.values())

    @property
    def redelivered_count(self) -> int:
        """The number of deliveries of messages that had been consumed before."""
        with self._lock:
            distinct = self._forgotten_count + sum(each.size for each in self._consumed_offsets.values())
            return self.consumed_count - distinct

    @property
    def unconsumed_count(self) -> int:
        """The number of produced messages that no member has consumed yet."""
        with self._lock:
            return sum(span.size for span in self.unconsumed())

    def unconsumed(self, until: Mapping[TopicPartitionKey, int] | None = None) -> tuple[Span, ...]:
        """Return the produced messages, by default all, that no member has consumed yet.

        Args:
            until: Only messages before these offsets.
        """
        with self._lock:
            found = report.difference(self._produced_offsets, self._consumed_offsets)
        if until is None:
            return found
        clipped = (
            span._replace(stop=min(span.stop, until.get((span.topic, span.partition), 0))) for span in found
        )
        return tuple(span for span in clipped if span.size > 0)

    def consumed_by(self, member: str) -> int:
        """Return the number of messages that a member has consumed."""
        return self._consumed_by_member[member]

    def owned_by(self, member: str) -> set[TopicPartitionKey]:
        """Return the partitions that a member owns now, according to its callbacks."""
        with self._lock:
            return set(self._owned[member])

    def was_assigned(self, member: str) -> bool:
        """Return whether the member's on_assign has been called, even if without partitions."""
        return member in self._assigned

    def owners(self) -> dict[TopicPartitionKey, list[str]]:
        """Return the owners of each partition now; in a settled group, each partition has one."""
        owners: defaultdict[TopicPartitionKey, list[str]] = defaultdict(list)
        with self._lock:
            for member, owned in self._owned.items():
                for partition in owned:
                    owners[partition].append(member)
        return dict(owners)

    def owners_at(self, time: float) -> dict[TopicPartitionKey, list[str]]:
        """Return the owners of each partition at a time, in seconds of `time.monotonic`."""
        owners: defaultdict[TopicPartitionKey, list[str]] = defaultdict(list)
        for window in self.ownership():
            if window.begin <= time < window.end:
                owners[window.partition].append(window.member)
        return dict(owners)

    def ownership(self) -> list[Window]:
        """Return all ownership windows so far, ordered by their begin."""
        with self._lock:
            histories = {name: list(events) for name, events in self.histories.items()}
        found = [
            window for name, events in histories.items() for window in MemberHistory(name, events).windows
        ]
        return sorted(found, key=lambda window: window.begin)

    def ends(self) -> dict[TopicPartitionKey, int]:
        """Return the log end offset by partition: one past the last acknowledged message."""
        with self._lock:
            return {partition: produced.end for partition, produced in self._produced_offsets.items()}

    def committed(self) -> dict[TopicPartitionKey, int]:
        """Return the highest offset that any member reported as committed, by partition."""
        with self._lock:
            return dict(self._committed)

    def is_consumed(self, until: Mapping[TopicPartitionKey, int]) -> bool:
        """Return whether all messages produced before these offsets have been consumed."""
        with self._lock:
            return not any(
                start < until.get(partition, 0)
                for partition, produced in self._produced_offsets.items()
                for start, _ in produced.without(self._consumed_offsets[partition])
            )

    def errors(self, member: str) -> list[str]:
        """Return the errors that a member's polls raised or returned, as text."""
        with self._lock:
            return [event.error for event in self.histories[member] if isinstance(event, Failed)]

    def check(
        self,
        duplicates_after: Collection[End] = frozenset({End.KILLED, End.LOST}),
        *,
        waited: float | None = None,
    ) -> report.Report:
        """Check all recorded events against the guarantees of a consumer group.

        Args:
            duplicates_after: The ends of ownership after which uncommitted messages may be consumed again.
            waited: Time in seconds that the members had for the last messages, if it was too short for them.
                What they have not consumed at the end of a partition is then reported as unconsumed, not as
                lost.
        """
        with self._lock:
            histories = {name: list(map(self._kept, events)) for name, events in self.histories.items()}
            produced = list(map(self._kept, self.produced))
            return report.check(histories, produced, duplicates_after, waited=waited)

    def _kept(self, event: Event) -> Event:
        """Return the event without messages and offsets of topics that were forgotten after it."""
        gone = {topic for topic, time in self._forgotten.items() if event.time <= time}
        if gone and isinstance(event, Consumed | Produced):
            spans = tuple(span for span in event.spans if span.topic not in gone)
            return replace(event, spans=spans, values=())
        if gone and isinstance(event, Committed | Killed):
            offsets = {each: offset for each, offset in event.offsets.items() if each[0] not in gone}
            return replace(event, offsets=offsets)
        return event
