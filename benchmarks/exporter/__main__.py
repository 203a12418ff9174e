"""`python -m benchmarks.exporter`: cost of the exporter on a cluster with many groups, against its limits."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from benchmarks.exporter.cluster import BusyGroups
from benchmarks.exporter.measure import measure
from benchmarks.exporter.report import Results, missed, page, table
from benchmarks.layout import printed
from benchmarks.machine import describe
from rich.console import Console

from groupwright.testing import LocalKafka

_PAGES = Path(__file__).parents[2] / "docs" / "benchmarks"
_OFFSETS_TOPIC = "--source=offsets-topic"
_BY_PARTITION = ("--by-partition", "--max-series=10000000")
_RUNS = {
    "admin": (),
    "offsets-topic": (_OFFSETS_TOPIC,),
    "admin, by partition": _BY_PARTITION,
    "offsets-topic, by partition": (_OFFSETS_TOPIC, *_BY_PARTITION),
}


def main(
    *,
    groups: Annotated[int, typer.Option(help="Number of groups.")] = 1000,
    partitions: Annotated[int, typer.Option(help="Partitions of each group.")] = 100,
    interval: Annotated[float, typer.Option(help="Seconds between refreshes.")] = 10.0,
    refreshes: Annotated[int, typer.Option(help="Refreshes to measure in each run.")] = 8,
    keep: Annotated[bool, typer.Option(help="Write docs/benchmarks/exporter.md.")] = False,
) -> None:
    """Measure processor time, memory and scrapes of the exporter; exit with 1 if a limit is exceeded."""
    when, machine = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), describe()
    with LocalKafka(heap="1g") as kafka, BusyGroups(kafka, groups, partitions):
        runs = [
            measure(name, kafka.bootstrap_servers, options, interval, refreshes)
            for name, options in _RUNS.items()
        ]
    results = Results(when, machine, groups, partitions, runs)
    Console().print(printed(table(results)))
    if keep:
        numbers = json.dumps(asdict(results), separators=(",", ":"))
        (_PAGES / "exporter.json").write_text(numbers + "\n", encoding="utf-8")
        (_PAGES / "exporter.md").write_text("\n".join(page(results)) + "\n", encoding="utf-8")
    exceeded = list(missed(results))
    print(*exceeded or ["All limits are kept."], sep="\n")
    raise typer.Exit(int(bool(exceeded)))


if __name__ == "__main__":
    typer.run(main)
