"""How a consumer stands after its last rebalance."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from groupwright.core import Leadership, Partitions


@dataclass(frozen=True, slots=True)
class Standing:
    """What a consumer's gauges tell. Never changed but replaced, so that a scrape needs no lock."""

    owned: Mapping[str, int] = field(default_factory=dict)
    """Numbers of partitions by topic; a topic that was owned once stays, with 0."""
    partitions: Partitions = field(default_factory=dict)
    """What was owned when the last rebalance ended."""
    generation: int | None = None
    kind: str = ""
    """One of `labels.KINDS`; empty before the first rebalance that says so."""
    ended_at: float | None = None
    """When the last rebalance ended, in seconds since the epoch."""
    duration: float | None = None
    """How long it took, in seconds; None where that is not known."""
    leadership: Leadership | None = None
    """Of the last rebalance, if this member led."""

    def without(self, gone: Mapping[str, int]) -> "Standing":
        """Return the standing after partitions were given up or lost."""
        left = {topic: max(0, self.owned.get(topic, 0) - number) for topic, number in gone.items()}
        return replace(self, owned={**self.owned, **left})

    def owning(self, partitions: Partitions, generation: int) -> "Standing":
        """Return the standing after an assignment was applied."""
        owned = {str(topic): len(numbers) for topic, numbers in partitions.items()}
        return replace(
            self,
            owned={**dict.fromkeys(self.owned, 0), **owned},
            partitions=partitions,
            generation=generation,
        )
