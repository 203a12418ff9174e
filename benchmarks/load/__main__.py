"""`python -m benchmarks.load`: measures balance by load beside balance by counts and by lag, on a broker."""

import shlex
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from benchmarks.consumer.contestants import ROOT
from benchmarks.layout import show
from benchmarks.load.contestants import prepare
from benchmarks.load.plan import FULL, QUICK, Effort
from benchmarks.load.report import keep
from benchmarks.load.results import Results
from benchmarks.load.runner import run
from benchmarks.load.tables import summary, tables
from benchmarks.machine import describe
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_KEPT = ROOT / "docs" / "benchmarks"
_PASSING = ROOT / "build" / "benchmarks"
_WIDTH_WITHOUT_TERMINAL = 200


def main(
    *,
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="One shape in two minutes, or all in 20."),
    ] = False,
    lag_assignor: Annotated[
        Path | None,
        typer.Option(
            help="Jar or source file of the lag-based assignor, if no Maven repository has it.",
            exists=True,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where to keep the results; docs/benchmarks for a whole run.")
    ] = None,
) -> None:
    """Measure balance by load: the drain of a backlog, the sustained throughput, and moves."""
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)
    results, is_complete = _measure(QUICK if quick else FULL, lag_assignor, console)
    show(console, tables(results), summary(results))
    for path in keep(output or (_KEPT if is_complete and not quick else _PASSING), results):
        console.print(f"Kept {path}", highlight=False)


def _measure(effort: Effort, lag_assignor: Path | None, console: Console) -> tuple[Results, bool]:
    """Run all contestants; when interrupted, return what is there, and False."""
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, _bar(console) as bar:
        task = bar.add_task("compiling", total=None)
        contestants = prepare(Path(name), lag_assignor)
        for contestant in contestants:
            if contestant.absent:
                console.print(f"{contestant.name} is left out: {contestant.absent}", highlight=False)
        results = Results(
            command=f"python -m benchmarks.load {shlex.join(sys.argv[1:])}".strip(),
            date=datetime.now().astimezone().date().isoformat(),
            machine=describe(),
            contestants={one.name: one.absent or one.version for one in contestants},
        )
        bar.update(task, total=len(contestants) * len(effort.shapes))

        def progress(what: str, done: int) -> None:
            bar.update(task, completed=done, description=what)

        try:
            run(contestants, effort, progress, results)
        except KeyboardInterrupt:
            console.print("Interrupted; this is what was done.")
            return results, False
    return results, True


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


if __name__ == "__main__":
    typer.run(main)
