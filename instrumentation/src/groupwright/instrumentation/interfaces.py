"""What the instrumentation needs of a consumer, and what a consumer tells it.

`groupwright.consumer.Consumer` satisfies this by its shape; nothing here knows of it. Members named optional are used
where a consumer or a record has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

Partitions = Mapping[str, Sequence[int]]
"""Partition numbers by topic."""


class PhaseDurations(Protocol):
    """A mapping from a phase's name to seconds."""

    # Not Mapping[str, float], whose keys are invariant: an enumeration of strings would not do as a key.
    def items(self) -> Iterable[tuple[str, float]]:
        """Return the phases that were gone through."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the group's leader knows of the assignment that it made."""

    members: int
    """Members of the group."""
    moved: int
    """Partitions taken from a member that had them and could have kept them."""
    moves_needed: int
    """The fewest that an assignment as even as can be would have moved."""
    imbalance: int
    """How many partitions wider than it must be the gap is between the member with the most and that with the fewest;
    0: as even as can be."""


class RebalanceRecord(Protocol):
    """A finished rebalance, as one member saw it.

    Optional members: ``kind`` (one of `labels.KINDS`), ``member_id``, ``reason`` and ``error`` (strings or None),
    ``partitions_before`` (`Partitions` owned when it began), ``leadership`` (`Leadership` where this member led).
    """

    @property
    def generation(self) -> int:
        """The generation that it led to."""

    @property
    def protocol(self) -> str | None:
        """The assignor that the group voted for; None if there was no vote."""

    @property
    def outcome(self) -> str:
        """One of `labels.OUTCOMES`."""

    @property
    def duration(self) -> float | None:
        """Seconds from the trigger to the end; None if the consumer cannot tell."""

    @property
    def phases(self) -> PhaseDurations:
        """Seconds by phase, of `labels.PHASES`."""

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


class ClientListener(RebalanceListener, Protocol):
    """Hears of commits as well, from a consumer that tells of them."""

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """A commit has ended: how long it took (None: not known), and the name of its error, if it failed."""


@dataclass(frozen=True, slots=True)
class MembershipSnapshot:
    """A consumer's membership at one moment. What a consumer cannot tell stays None, 0 or empty.

    Numbers are totals since the consumer was made; the instrumentation counts how they grow.
    """

    state: str | None = None
    """One of `labels.STATES`."""
    coordinator: int | None = None
    """The broker's id."""
    coordinator_changes: int = 0
    coordinator_errors: int = 0
    """Requests to the coordinator that had no answer."""
    round_trip: float | None = None
    """To the coordinator, in seconds, as last measured."""
    heartbeat_age: float | None = None
    """Seconds since the coordinator last answered a heartbeat."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests sent, by `labels.REQUESTS`."""
    request_failures: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Those answered with an error, by request and the error's name, as in ``("join_group", "NOT_COORDINATOR")``."""
    fenced: int = 0
    max_poll_exceeded: int = 0
    poll_seconds: float | None = None
    """Time spent inside poll and consume."""
    max_poll_interval: float | None = None
    """``max.poll.interval.ms``, in seconds."""
    ahead: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition, where a consumer has taken messages from librdkafka and not yet handed them out: the first
    one's offset."""
    begins: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition, where a consumer was told to begin: the lag of what nothing was consumed of is from there."""


class ObservableConsumer(Protocol):
    """A consumer that tells of its rebalances. It must allow weak references.

    Optional members: ``membership_snapshot`` (a property that returns a `MembershipSnapshot`; any thread may ask) and
    ``settings`` (its configuration without secrets, a mapping, for advice).
    """

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
        f"cannot instrument this {kind}: it tells nothing of its rebalances, and once it is made, it takes no "
        f"stats_cb any more. Make it by `instrumented({type(consumer).__name__}, config)`, which returns one"
    )
