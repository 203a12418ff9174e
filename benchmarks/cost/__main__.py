"""`python -m benchmarks.cost`: what the instrumentation and the exporter cost, against their limits."""

from typing import Any

import typer

from benchmarks.cost import (
    exporter,
    exporter_report,
    instrumentation,
    instrumentation_report,
    instrumentation_results,
)
from benchmarks.cost.busy_groups import BusyGroups
from benchmarks.layout import Finding, Report
from benchmarks.shell import ListCells, Only, Output, Quick, Shell, chosen
from groupwright.testing import LocalKafka

_OFFSETS_TOPIC = "--source=offsets-topic"
_BY_PARTITION = ("--by-partition", "--max-series=10000000")
_EXPORTERS = {
    "admin": (),
    "offsets-topic": (_OFFSETS_TOPIC,),
    "admin, by partition": _BY_PARTITION,
    "offsets-topic, by partition": (_OFFSETS_TOPIC, *_BY_PARTITION),
}
_PARTITIONS = 100
"""Partitions of each group."""
_INTERVAL = 10.0
"""Seconds between refreshes."""
_REPORTS: dict[str, Report[Any]] = {
    each.name: each for each in (instrumentation_report.REPORT, exporter_report.REPORT)
}


def main(
    *, quick: Quick = False, only: Only = "*", output: Output = None, show_cells: ListCells = False
) -> None:
    """Measure the instrumentation and the exporter; exit with 1 if a whole run exceeds a limit."""
    cells = chosen(_REPORTS, only, only_list=show_cells)
    is_kept = True
    for cell in cells:
        shell = Shell("cost")
        with shell.progress_shown():
            results = (_instrumentation if cell == "instrumentation" else _exporter)(shell, quick=quick)
        report = _REPORTS[cell]
        shell.finish(report, results, output, is_whole=not quick)
        is_kept &= all(each.reached for each in report.summary(results) if isinstance(each, Finding))
    raise typer.Exit(int(not (quick or is_kept)))


def _instrumentation(shell: Shell, *, quick: bool) -> instrumentation_results.Results:
    shell.progress("consuming with the instrumentation, and without")
    with LocalKafka(heap="1g") as kafka:
        return instrumentation.measure(kafka, 250_000, 5.0 if quick else 150.0, shell.origin())


def _exporter(shell: Shell, *, quick: bool) -> exporter_report.Results:
    groups, refreshes = (100, 2) if quick else (1000, 8)
    shell.expect(len(_EXPORTERS))
    runs = []
    with LocalKafka(heap="1g") as kafka, BusyGroups(kafka, groups, _PARTITIONS):
        for done, (name, options) in enumerate(_EXPORTERS.items()):
            shell.progress(name, done)
            runs.append(exporter.measure(name, kafka.bootstrap_servers, options, _INTERVAL, refreshes))
    return exporter_report.Results(**shell.origin(), groups=groups, partitions=_PARTITIONS, runs=runs)


if __name__ == "__main__":
    typer.run(main)
