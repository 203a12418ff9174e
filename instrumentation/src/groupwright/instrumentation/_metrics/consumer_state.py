"""A consumer's state after its last rebalance."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from groupwright.core import Leadership, LoadCheckResult, Partitions


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The values of a consumer's gauges. It is replaced, never changed, so that a scrape needs no lock."""

    owned: Mapping[str, int] = field(default_factory=dict)
    """Number of owned partitions by topic; 0 for a topic of which the last partition was revoked or lost."""
    generation: int | None = None
    kind: str = ""
    """A `groupwright.core.Kind`; empty before the first rebalance."""
    ended_at: float | None = None
    """When the last rebalance ended, in seconds since the epoch."""
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

    def after_removal(self, removed: Mapping[str, int]) -> "ConsumerState":
        """Return the state after partitions were revoked or lost.

        Args:
            removed: Number of partitions by topic.
        """
        left = {topic: max(0, self.owned.get(topic, 0) - number) for topic, number in removed.items()}
        return replace(self, owned={**self.owned, **left})

    def after_assignment(self, partitions: Partitions, generation: int) -> "ConsumerState":
        """Return the state after an assignment was applied."""
        owned = {str(topic): len(numbers) for topic, numbers in partitions.items()}
        return replace(self, owned={**dict.fromkeys(self.owned, 0), **owned}, generation=generation)
