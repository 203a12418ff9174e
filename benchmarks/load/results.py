"""Results of a benchmark run."""

from dataclasses import dataclass, field

from benchmarks.consumer.results import Status


@dataclass(frozen=True)
class Window:
    """Measurement of some seconds of traffic, without a rebalance.

    Attributes:
        written: Messages per second that were written.
        consumed: Messages per second that were consumed, in any order.
        sustained: Messages per second of this traffic at which no member would fall behind.
        ideal: The same for the best possible assignment.
        peak_over_bound: Load of the busiest member over the certified bound.
    """

    written: float
    consumed: float
    sustained: float
    ideal: float
    peak_over_bound: float


@dataclass(frozen=True)
class Rebalance:
    """The result of an enforced rebalance.

    Attributes:
        moved: Partitions that have another owner.
        revoked: Partitions that a member had to revoke, for a time or for good.
    """

    moved: int
    revoked: int


@dataclass(frozen=True)
class Drain:
    """Measurement of the drain of a backlog.

    Attributes:
        messages: Number of messages in the backlog.
        seconds: Time from the beginning of the first message to the end of the last one.
        ideal_seconds: Time that the best possible assignment needs: the certified bound over the capacity.
        peak_over_bound: Load of the busiest member over the certified bound.
    """

    messages: int
    seconds: float
    ideal_seconds: float
    peak_over_bound: float

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


@dataclass(frozen=True)
class Run:
    """Measurement of a contestant with a shape of traffic.

    Attributes:
        drain: The drain of the backlog.
        windows: One window before the first drift, and one after each rebalance.
        rebalances: The enforced rebalances.
        lag: Pairs of seconds since the traffic began, and messages that were written and not consumed.
        twice: Number of messages that were consumed again.
    """

    drain: Drain
    windows: tuple[Window, ...]
    rebalances: tuple[Rebalance, ...]
    lag: tuple[tuple[float, int], ...]
    twice: int

    @property
    def moved(self) -> int:
        """Partitions that changed owner in all rebalances."""
        return sum(each.moved for each in self.rebalances)

    @property
    def revoked(self) -> int:
        """Partitions that were revoked in all rebalances."""
        return sum(each.revoked for each in self.rebalances)


@dataclass
class Outcome:
    """Result of a contestant with a shape.

    Attributes:
        status: Outcome, as one word.
        note: Missing feature, or error.
        run: The measurement, if there is one.
    """

    status: Status = Status.OK
    note: str = ""
    run: Run | None = None


@dataclass
class Results:
    """Results of a benchmark run.

    Attributes:
        command: Command line.
        date: Date of its start.
        machine: Description of the machine, by property.
        contestants: Version of each contestant, or the reason why it is missing.
        shapes: By shape and contestant, the outcomes.
    """

    command: str
    date: str
    machine: dict[str, str]
    contestants: dict[str, str]
    shapes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
