"""What the instrumentation needs of a consumer, and what a consumer tells it.

`groupwright.consumer.Consumer` satisfies this by its shape; nothing here knows of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

Partitions = Mapping[str, Sequence[int]]
"""Partition numbers by topic."""


class PhaseDurations(Protocol):
    """A mapping from a phase's name to seconds."""

    # Not Mapping[str, float], whose keys are invariant: an enumeration of strings would not do as a key.
    def items(self) -> Iterable[tuple[str, float]]:
        """Return the phases that were gone through."""


class RebalanceRecord(Protocol):
    """A finished rebalance, as one member saw it."""

    @property
    def generation(self) -> int:
        """The generation that it led to."""

    @property
    def protocol(self) -> str | None:
        """The assignor that the group voted for; None if there was no vote."""

    @property
    def outcome(self) -> str:
        """One of `catalogue.OUTCOMES`."""

    @property
    def duration(self) -> float:
        """Seconds from the trigger to the end."""

    @property
    def phases(self) -> PhaseDurations:
        """Seconds by phase, of `catalogue.PHASES`."""

    @property
    def partitions(self) -> Partitions:
        """What is owned after it."""

    @property
    def ended_at(self) -> float:
        """Wall-clock time of its end, in seconds since the epoch."""


class RebalanceListener(Protocol):
    """Hears of rebalances; `seconds` is the time that the application's callback took, 0 without one."""

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were gained."""

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were given up in good order."""

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Partitions were lost: others may own them already."""

    def rebalanced(self, rebalance: RebalanceRecord) -> None:
        """A rebalance has ended."""


class ObservableConsumer(Protocol):
    """A consumer that tells of its rebalances. It must allow weak references."""

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application last polled; None if it no longer can. Any thread may ask."""

    def add_listener(self, listener: RebalanceListener, /) -> None:
        """Tell `listener` of every rebalance from now on."""


def as_observable(consumer: Any) -> ObservableConsumer:
    """Return the consumer.

    Raises:
        TypeError: it tells nothing of its rebalances, as a plain `confluent_kafka.Consumer`.
    """
    if hasattr(consumer, "add_listener"):
        return cast("ObservableConsumer", consumer)
    kind = f"{type(consumer).__module__}.{type(consumer).__qualname__}"
    raise TypeError(
        f"cannot instrument a {kind}: it tells nothing of its rebalances, and a plain confluent_kafka.Consumer is "
        "not served yet. Make it a groupwright.consumer.Consumer, which takes the same configuration"
    )
