"""Results of simulations, which `str` returns as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionPause:
    """Pauses in the consumption of a partition: the times in which no member owned it. All in seconds.

    Attributes:
        topic: The topic.
        partition: The partition.
        pauses: The length of each pause.
    """

    topic: str
    partition: int
    pauses: tuple[float, ...]

    @property
    def longest(self) -> float:
        """The longest pause; 0 without any."""
        return max(self.pauses, default=0.0)

    @property
    def mean(self) -> float:
        """The mean of all pauses; 0 without any."""
        return self.total / len(self.pauses) if self.pauses else 0.0

    @property
    def total(self) -> float:
        """The sum of all pauses."""
        return sum(self.pauses)


@dataclass(frozen=True, slots=True)
class Result:
    """Cost of a scenario to a group, from its beginning until the group is stable again. `str` returns text.

    Attributes:
        scenario: The scenarios, as text.
        seed: The seed.
        pods: Pods at the beginning.
        rebalances: Generations that the group has begun.
        moves: Changes of a partition's owner. A pod that restarts is the same owner.
        min_moves: Moves that were needed: as many as an assignor makes that keeps each of these generations
            balanced with the fewest, and never more than `moves`.
        partitions: The pauses of each partition.
        produced: Messages produced since the beginning, and those that were not consumed before.
        delivered: Deliveries of messages to applications in that time, repeated ones included.
        delivered_twice: Deliveries of messages that had been delivered before.
        seconds: Time from the first action to the last, such as the start of the last pod's consumer.
        stable_seconds: Time from the first action until the group was stable: all live pods are its members,
            and have their partitions.
    """

    scenario: str
    seed: int
    pods: int
    rebalances: int
    moves: int
    min_moves: int
    partitions: tuple[PartitionPause, ...]
    produced: int
    delivered: int
    delivered_twice: int
    seconds: float
    stable_seconds: float

    @property
    def paused_partitions(self) -> int:
        """Partitions with a pause."""
        return sum(bool(each.pauses) for each in self.partitions)

    @property
    def longest_pause(self) -> float:
        """The longest pause of a partition, in seconds."""
        return max((each.longest for each in self.partitions), default=0.0)

    @property
    def mean_pause(self) -> float:
        """The mean of all pauses of all partitions, in seconds; 0 without any."""
        pauses = sum(len(each.pauses) for each in self.partitions)
        return self.total_pause / pauses if pauses else 0.0

    @property
    def total_pause(self) -> float:
        """The sum of all pauses of all partitions, in seconds."""
        return sum(each.total for each in self.partitions)

    def __str__(self) -> str:
        """Return the result as text."""
        return _text((self,))


@dataclass(frozen=True, slots=True)
class Study:
    """Results of one scenario with several seeds; `str` returns their ranges as text.

    Attributes:
        results: One result for each seed.
    """

    results: tuple[Result, ...]

    def range(self, figure: Callable[[Result], float]) -> tuple[float, float]:
        """Return the smallest and the largest value of a figure of each result."""
        figures = [figure(result) for result in self.results]
        return min(figures), max(figures)

    def __str__(self) -> str:
        """Return the ranges as text."""
        return _text(self.results)


def _text(results: Sequence[Result]) -> str:
    def span(figure: Callable[[Result], float], digits: int = 0) -> str:
        figures = sorted(round(figure(result), digits) for result in results)
        low, high = (f"{value:,.{digits}f}" for value in (figures[0], figures[-1]))
        return low if low == high else f"{low} to {high}"

    first = results[0]
    seeds = f"seed {first.seed}" if len(results) == 1 else f"{len(results)} seeds"
    needed = f"{span(lambda each: each.moves)}, of which {span(lambda each: each.min_moves)} were needed"
    pauses = (
        f"{span(lambda each: each.paused_partitions)}; longest {span(lambda each: each.longest_pause, 1)} s, "
        f"mean {span(lambda each: each.mean_pause, 1)} s, total {span(lambda each: each.total_pause)} s"
    )
    repeated = f"{span(lambda each: each.delivered_twice)} of {span(lambda each: each.produced)} messages"
    stable = f"{span(lambda each: each.stable_seconds, 1)} s; the last pod began or ended after "
    rows = {
        "rebalances": span(lambda each: each.rebalances),
        "moves of partitions": needed,
        "partitions paused": pauses,
        "delivered twice": repeated,
        "stable after": f"{stable}{span(lambda each: each.seconds, 1)} s",
    }
    head = f"{first.scenario}: {first.pods} pods, {len(first.partitions)} partitions, {seeds}"
    return "\n".join([head, *(f"  {name:<20} {value}" for name, value in rows.items())])
