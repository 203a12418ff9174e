"""Results as tables and as a page, and the limits that they are held against."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.cost.exporter import Run
from benchmarks.layout import Finding, Report, Table, markdown

MOST_SCRAPE_MS = 100.0
"""99th percentile of scrapes, in any run."""
MOST_CPU_SECONDS = 3.0
"""Processor time of a refresh by topic: a tenth of a core at the default interval of 30 s."""
MOST_MEMORY = 512 * 2**20
"""Bytes."""
_BY_PARTITION = "by partition"


@dataclass(frozen=True)
class Results:
    """Results of the benchmark.

    Attributes:
        command: Command line.
        date: Date of its start.
        machine: The machine.
        groups: Number of groups.
        partitions: Partitions of each group.
        runs: The runs.
    """

    command: str
    date: str
    machine: dict[str, str]
    groups: int
    partitions: int
    runs: list[Run]


def table(results: Results) -> Table:
    """Return the results of all runs."""
    return Table(
        f"{results.groups:,} groups of {results.partitions} partitions",
        [
            "run",
            "series",
            "page",
            "compressed",
            "refresh",
            "CPU a refresh",
            "memory",
            "scrape, median",
            "99th percentile",
            "slowest",
        ],
        [
            [
                run.name,
                f"{run.series:,}",
                f"{run.page_bytes / 1e6:.1f} MB",
                f"{run.compressed_bytes / 1e3:.0f} kB",
                f"{run.refresh_seconds:.2f} s",
                f"{run.cpu_seconds:.2f} s",
                f"{run.memory_bytes / 2**20:.0f} MiB",
                f"{run.scrape_ms:.1f} ms",
                f"{run.scrape_p99_ms:.1f} ms",
                f"{run.scrape_max_ms:.1f} ms",
            ]
            for run in results.runs
        ],
    )


def missed(results: Results) -> Iterator[str]:
    """Report the limits that are not kept."""
    for run in results.runs:
        if run.scrape_p99_ms > MOST_SCRAPE_MS:
            yield (
                f"{run.name}: 1 % of scrapes take {run.scrape_p99_ms:.0f} ms or more, and "
                f"{MOST_SCRAPE_MS:g} ms is the limit"
            )
        if run.cpu_seconds > MOST_CPU_SECONDS and _BY_PARTITION not in run.name:
            yield (
                f"{run.name}: a refresh takes {run.cpu_seconds:.1f} s of CPU, and {MOST_CPU_SECONDS:g} s is "
                "the limit"
            )
        if run.memory_bytes > MOST_MEMORY:
            yield f"{run.name}: {run.memory_bytes} bytes of memory, and {MOST_MEMORY} is the limit"


def findings(results: Results) -> list[Finding]:
    """Return the limits that are not kept, or that all are."""
    return [Finding(line, reached=False) for line in missed(results)] or [
        Finding("All limits are kept.", reached=True)
    ]


def _page(results: Results, _plot: str | None) -> Iterator[str]:
    yield "# What the exporter costs"
    yield ""
    yield f"Made by `{results.command}` on {results.date}."
    yield "[benchmarks/cost](../../benchmarks/cost/README.md) says what is measured."
    yield ""
    yield from (f"- {name}: {value}" for name, value in results.machine.items())
    yield ""
    yield from markdown(table(results))
    yield ""
    yield from (f"- {finding}" for finding in findings(results))
    yield ""


REPORT = Report("exporter", Results, lambda results: [table(results)], findings, _page)
