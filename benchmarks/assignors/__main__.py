"""`python -m benchmarks.assignors`: measures the leader's whole step of Groupwright and of other clients."""

import shlex
import sys
import tempfile
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer
from benchmarks.assignors.cases import CONTESTANTS, GROUPWRIGHT, Case, full_matrix, quick_matrix
from benchmarks.assignors.contestants import ROOT, prepare
from benchmarks.assignors.report import keep, tables
from benchmarks.assignors.results import Results
from benchmarks.assignors.runner import FULL, QUICK, Effort, run_case
from benchmarks.assignors.tables import summary
from benchmarks.layout import show
from benchmarks.machine import describe
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_KEPT = ROOT / "docs" / "benchmarks"
_PASSING = ROOT / "build" / "benchmarks"
_WIDTH_WITHOUT_TERMINAL = 200


def main(
    *,
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="A few small cells in less than a minute, or the whole matrix."),
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            metavar="PATTERN", help="Only cells whose name matches: 'sticky/half/*', '*/LEAVE_ONE'."
        ),
    ] = "*",
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this contestant beside Groupwright; repeatable."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="What one run may take; 30, or 5 with --quick.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where to keep the results; docs/benchmarks for the whole matrix.")
    ] = None,
    show_cells: Annotated[bool, typer.Option("--list", help="Name the cells, and stop.")] = False,
) -> None:
    """Measure the leader's whole step, from subscriptions in bytes to assignments in bytes."""
    matrix = quick_matrix() if quick else full_matrix()
    cases = [case for case in matrix if fnmatch(case.name, only)]
    if not cases:
        raise typer.BadParameter(f"no cell is named like {only!r}; --list names them", param_hint="--only")
    if show_cells:
        print(*(case.name for case in cases), sep="\n")
        return
    names = _taking_part(against)
    effort = QUICK if quick else FULL
    if limit is not None:
        effort = replace(effort, limit=limit)
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)
    results = _measure(cases, effort, names, console)
    show(console, tables(results), summary(results.rows))
    is_whole = not quick and len(cases) == len(matrix) == len(results.rows) and not against
    for path in keep(output or (_KEPT if is_whole else _PASSING), results):
        console.print(f"Kept {path}", highlight=False)


def _measure(cases: list[Case], effort: Effort, names: set[str], console: Console) -> Results:
    """Run the cells; when interrupted, return those that are done."""
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, _bar(console) as bar:
        folder = Path(name)
        task = bar.add_task("compiling", total=None)
        contestants = prepare(folder, names)
        for contestant in contestants:
            if contestant.absent:
                console.print(f"{contestant.name} is left out: {contestant.absent}", highlight=False)
        results = Results(
            command=f"python -m benchmarks.assignors {shlex.join(sys.argv[1:])}".strip(),
            date=datetime.now().astimezone().date().isoformat(),
            machine=describe(),
            contestants={one.name: one.absent or one.version for one in contestants},
        )
        bar.update(task, total=len(cases) * len(contestants))

        def progress(cell: str, contestant: str) -> None:
            bar.update(task, advance=1, description=f"{cell} {contestant}")

        try:
            for case in cases:
                results.rows.append(run_case(case, contestants, effort, folder, progress))
        except KeyboardInterrupt:
            console.print("Interrupted; these are the cells that are done.")
    return results


def _taking_part(against: list[str] | None) -> set[str]:
    """Return the names of those who take part: all, or Groupwright and those that are chosen."""
    if not against:
        return set(CONTESTANTS)
    if strange := set(against) - set(CONTESTANTS):
        raise typer.BadParameter(
            f"no contestant is called {min(strange)!r}; there are: {', '.join(CONTESTANTS)}",
            param_hint="--against",
        )
    return {GROUPWRIGHT, *against}


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


if __name__ == "__main__":
    typer.run(main)
