"""`python -m benchmarks.consumer`: measures Groupwright's consumer beside other clients' on a broker."""

import shlex
import sys
import tempfile
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer
from benchmarks.consumer.contestants import ROOT, prepare
from benchmarks.consumer.plan import FULL, QUICK, Effort
from benchmarks.consumer.processes import RunFailedError
from benchmarks.consumer.report import keep
from benchmarks.consumer.results import Results
from benchmarks.consumer.runner import Bench
from benchmarks.consumer.tables import summary, tables
from benchmarks.layout import show
from benchmarks.machine import describe
from confluent_kafka import KafkaException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from groupwright.assignors.errors import GroupwrightError

_KEPT = ROOT / "docs" / "benchmarks"
_PASSING = ROOT / "build" / "benchmarks"
_WIDTH_WITHOUT_TERMINAL = 200


def main(
    *,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A bit of each in less than two minutes, or all of it.")
    ] = False,
    only: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only cells whose name matches: 'join/*', 'idle'.")
    ] = "*",
    output: Annotated[
        Path | None, typer.Option(help="Where to keep the results; docs/benchmarks for a whole run.")
    ] = None,
    show_cells: Annotated[bool, typer.Option("--list", help="Name the cells, and stop.")] = False,
) -> None:
    """Measure the consumer: throughput, a join, the latency of its events, and what it takes when idle."""
    effort = QUICK if quick else FULL
    cells = [cell for cell in effort.cells if fnmatch(cell, only)]
    if not cells:
        raise typer.BadParameter(f"no cell is named like {only!r}; --list names them", param_hint="--only")
    if show_cells:
        print(*cells, sep="\n")
        return
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)
    results, is_complete = _measure(cells, effort, console)
    show(console, tables(results), summary(results))
    is_whole = is_complete and not quick and cells == effort.cells
    for path in keep(output or (_KEPT if is_whole else _PASSING), results):
        console.print(f"Kept {path}", highlight=False)


def _measure(cells: list[str], effort: Effort, console: Console) -> tuple[Results, bool]:
    """Run the cells; when interrupted, return what is there, and False."""
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, _bar(console) as bar:
        task = bar.add_task("compiling", total=None)
        clients = prepare(Path(name))
        for client in clients.values():
            if client.absent:
                console.print(f"{client.name} is left out: {client.absent}", highlight=False)
        results = Results(
            command=f"python -m benchmarks.consumer {shlex.join(sys.argv[1:])}".strip(),
            date=datetime.now().astimezone().date().isoformat(),
            machine=describe(),
            clients={one.name: one.absent or one.version for one in clients.values()},
            messages=effort.messages,
        )

        def progress(what: str, done: int) -> None:
            bar.update(task, completed=done, description=what)

        bench = Bench(clients, effort, cells, progress)
        bar.update(task, total=bench.runs)
        try:
            bench.run(results)
        except KeyboardInterrupt:
            console.print("Interrupted; this is what was done.")
            return results, False
        except (GroupwrightError, KafkaException, RunFailedError, TimeoutError) as error:
            console.print(f"Stopped early, with these results. {error}", highlight=False, markup=False)
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
