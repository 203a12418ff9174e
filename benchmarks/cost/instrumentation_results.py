"""Results of the instrumentation's benchmark, and its limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.cost.consumption import Rates
from benchmarks.layout import Finding

LEAST_RATIO = 0.99
MOST_HALF_WIDTH = 0.015
"""Of the ratio's interval: a wider one says too little about the limit."""
MOST_SCRAPE_MS = 10.0
MOST_MEMORY = 2 * 2**20
"""Bytes a consumer."""


@dataclass(frozen=True)
class Scrape:
    """Scrapes of one consumer, in milliseconds.

    Attributes:
        by_partition: Whether the lag of each partition is shown.
        series: Lines of the page that are series.
        buckets: Those of histograms' buckets.
        milliseconds: Time of each scrape.
    """

    by_partition: bool
    series: int
    buckets: int
    milliseconds: list[float]

    @property
    def median(self) -> float:
        """The median time."""
        return median(self.milliseconds)


@dataclass(frozen=True)
class Results:
    """All results.

    Attributes:
        command: Command line.
        date: Date of its start.
        machine: The machine.
        partitions: Partitions of the consumer.
        messages: Messages of a turn.
        rates: Throughput by the method that consumes.
        scrapes: Scrapes without and with the lag of each partition.
        statistics_ms: Time to parse one set of statistics and to compute the lag.
        statistics_bytes: Size of that set.
        memory: Bytes a consumer.
    """

    command: str
    date: str
    machine: dict[str, str]
    partitions: int
    messages: int
    rates: dict[str, Rates]
    scrapes: list[Scrape]
    statistics_ms: float
    statistics_bytes: int
    memory: int

    def findings(self) -> Iterator[Finding]:
        """Yield each result with a limit, in words."""
        for method, rates in self.rates.items():
            found = rates.interval
            ratio = f"throughput with `{method}`, of that without instrumentation: {found.estimate:.3f}"
            yield Finding(f"{ratio} (at least {LEAST_RATIO})", found.estimate >= LEAST_RATIO)
            precision = f"its 95 % confidence interval, by {len(rates.ratios)} rounds"
            yield Finding(
                f"{precision}: {found.low:.3f} to {found.high:.3f} (at most ±{MOST_HALF_WIDTH:.1%})",
                found.half_width <= MOST_HALF_WIDTH,
            )
        for scrape in self.scrapes:
            kind = "with" if scrape.by_partition else "without"
            text = f"a scrape of {scrape.series:,} series, {kind} the lag of each partition: "
            yield Finding(
                text + f"{scrape.median:.1f} ms (at most {MOST_SCRAPE_MS:g})",
                scrape.median <= MOST_SCRAPE_MS,
            )
        yield Finding(
            f"memory: {self.memory / 2**20:.2f} MiB a consumer (at most {MOST_MEMORY / 2**20:g})",
            self.memory <= MOST_MEMORY,
        )
