"""The command of a benchmark: its options, its progress, interrupts, and what is shown and kept."""

import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.layout import Report, show
from benchmarks.machine import describe

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "benchmarks"
_PASSING = ROOT / "build" / "benchmarks"
_WIDTH_WITHOUT_TERMINAL = 200

Quick = Annotated[bool, typer.Option("--quick/--full", help="A bit of each in minutes, or all of it.")]
Only = Annotated[str, typer.Option(metavar="PATTERN", help="Only cells whose name matches: 'join/*'.")]
ListCells = Annotated[bool, typer.Option("--list", help="Name the cells, and stop.")]
Output = Annotated[
    Path | None, typer.Option(help="Where to keep the results; docs/benchmarks for a whole run.")
]


class _Contestant(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def absent(self) -> str: ...


def chosen(cells: Iterable[str], pattern: str, *, only_list: bool) -> list[str]:
    """Return the cells whose name matches a pattern; if only their list is wanted, print it and exit.

    Raises:
        typer.BadParameter: No cell matches.
    """
    found = [cell for cell in cells if fnmatch(cell, pattern)]
    if not found:
        raise typer.BadParameter(f"no cell is named like {pattern!r}; --list names them", param_hint="--only")
    if only_list:
        print(*found, sep="\n")
        raise typer.Exit
    return found


class Shell:
    """A run of a benchmark, on the terminal.

    Attributes:
        console: The console.
        is_complete: False if an interrupt or an error ended the run early.
    """

    def __init__(self, name: str) -> None:
        """Create the shell of the benchmark `benchmarks.<name>`."""
        self.console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)
        self.is_complete = True
        self._name = name
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self._task = self._bar.add_task("preparing", total=None)

    def origin(self) -> dict[str, Any]:
        """Return the fields that the results of all benchmarks have: command, date and machine."""
        return {
            "command": f"python -m benchmarks.{self._name} {shlex.join(sys.argv[1:])}".strip(),
            "date": datetime.now().astimezone().date().isoformat(),
            "machine": describe(),
        }

    @contextmanager
    def progress_shown(self) -> Iterator[Path]:
        """Show the progress while the block runs, which is given a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, self._bar:
            yield Path(name)

    @contextmanager
    def may_end_early(self, *errors: type[Exception]) -> Iterator[None]:
        """End the block at an interrupt or at one of these errors, and say so."""
        try:
            yield
        except KeyboardInterrupt:
            self.is_complete = False
            self.console.print("Interrupted; this is what was done.")
        except errors as error:
            self.is_complete = False
            self.console.print(f"Stopped early, with these results. {error}", highlight=False, markup=False)

    def leave_out(self, contestants: Iterable[_Contestant]) -> None:
        """Print which contestants are absent, and why."""
        for each in contestants:
            if each.absent:
                self.console.print(f"{each.name} is left out: {each.absent}", highlight=False)

    def expect(self, total: int) -> None:
        """Set the number of steps."""
        self._bar.update(self._task, total=total)

    def progress(self, description: str, done: int | None = None) -> None:
        """Show what is being done, and the number of steps that are."""
        self._bar.update(self._task, description=description, completed=done)

    def advance(self, description: str) -> None:
        """Show what is being done, after one step more."""
        self._bar.update(self._task, description=description, advance=1)

    def finish(self, report: Report[Any], results: Any, output: Path | None, *, is_whole: bool) -> None:
        """Print the results and keep them: in docs/benchmarks if the run is whole and complete."""
        show(self.console, report.tables(results), map(str, report.summary(results)))
        folder = output or (KEPT if is_whole and self.is_complete else _PASSING)
        for path in report.keep(folder, results):
            self.console.print(f"Kept {path}", highlight=False)
