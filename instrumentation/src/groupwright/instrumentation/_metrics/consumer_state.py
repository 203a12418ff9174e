"""State of a consumer, from which the gauges of its rebalances are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from groupwright.core import Leadership, LoadCheckResult, Partitions, TopicPartitionKey


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The values of a consumer's gauges. It is replaced, never changed, so that a scrape needs no lock."""

    owned: frozenset[TopicPartitionKey] = frozenset()
    topics: frozenset[str] = frozenset()
    """Topics of which partitions are or were owned."""
    generation: int | None = None
    kind: str = ""
    """A `groupwright.core.Kind`; empty before the first rebalance."""
    ended_at: float | None = None
    """End of the last rebalance, in seconds since the epoch."""
    duration: float | None = None
    """Duration of the last rebalance in seconds; None if unknown."""
    leadership: Leadership | None = None
    """Set if this member led the last rebalance."""
    load_check: LoadCheckResult | None = None
    """The last load check of this member that did not fail."""

    @property
    def load_ratios(self) -> tuple[float, float] | None:
        """The group's peak and its lower bound, by the last load check or rebalance, whichever is later.

        None if that was a rebalance that another member led, or in which the leader knew no weights.
        """
        check = self.load_check
        if check is not None and check.ended_at > (self.ended_at or 0.0):
            return (check.peak, check.bound) if check.peak is not None and check.bound is not None else None
        load = None if self.leadership is None else self.leadership.load
        return None if load is None else (load.peak, load.bound)

    def owned_by_topic(self) -> Mapping[str, int]:
        """Return the number of owned partitions; 0 for a topic whose last one was revoked or lost."""
        return {**dict.fromkeys(sorted(self.topics), 0), **Counter(topic for topic, _ in self.owned)}

    def after_addition(self, added: Partitions) -> ConsumerState:
        """Return the state after partitions were assigned."""
        keys = keys_of(added)
        return replace(self, owned=self.owned | keys, topics=self.topics | {topic for topic, _ in keys})

    def after_assignment(self, partitions: Partitions) -> ConsumerState:
        """Return the state after a rebalance that led to these owned partitions."""
        return replace(self, owned=frozenset()).after_addition(partitions)

    def after_removal(self, removed: Partitions) -> ConsumerState:
        """Return the state after partitions were revoked or lost."""
        keys = keys_of(removed)
        return replace(self, owned=self.owned - keys, topics=self.topics | {topic for topic, _ in keys})


def keys_of(partitions: Partitions) -> frozenset[TopicPartitionKey]:
    """Return partitions as a set of topic and number."""
    return frozenset((str(topic), int(number)) for topic, numbers in partitions.items() for number in numbers)
