"""`python -m benchmarks.pipeline`: measure decoding, what-if studies, derived tables and samples."""

import shlex
import subprocess
import sys
import tempfile
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer
from benchmarks.layout import show
from benchmarks.machine import describe
from benchmarks.pipeline.cells import CELLS, FULL, QUICK, run
from benchmarks.pipeline.report import keep, summary, table
from benchmarks.pipeline.results import Results
from rich.console import Console

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "docs" / "benchmarks"
_PASSING = _ROOT / "build" / "benchmarks"
_WIDTH_WITHOUT_TERMINAL = 200


def main(
    *,
    quick: Annotated[bool, typer.Option("--quick/--full", help="A bit of each, or all of it.")] = False,
    only: Annotated[str, typer.Option(metavar="PATTERN", help="Only cells whose name matches.")] = "*",
    output: Annotated[
        Path | None, typer.Option(help="Where to keep the results; docs/benchmarks for a whole run.")
    ] = None,
    show_cells: Annotated[bool, typer.Option("--list", help="Name the cells, and stop.")] = False,
) -> None:
    """Measure decoding and its memory, what-if studies, derived tables, and samples of log-end offsets."""
    cells = [cell for cell in CELLS if fnmatch(cell, only)]
    if not cells:
        raise typer.BadParameter(f"no cell is named like {only!r}; --list names them", param_hint="--only")
    if show_cells:
        print(*cells, sep="\n")
        return
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_WITHOUT_TERMINAL)
    results = Results(
        command=f"python -m benchmarks.pipeline {shlex.join(sys.argv[1:])}".strip(),
        date=datetime.now().astimezone().date().isoformat(),
        machine=describe(),
    )
    is_complete = _measure(cells, results, console, quick=quick)
    show(console, [table(results)], summary(results))
    is_whole = is_complete and not quick and len(cells) == len(CELLS)
    for path in keep(output or (_KEPT if is_whole else _PASSING), results):
        console.print(f"Kept {path}", highlight=False)


def _measure(cells: list[str], results: Results, console: Console, *, quick: bool) -> bool:
    """Run the cells; return whether all succeeded."""
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, console.status("") as status:
        try:
            for cell in cells:
                for done in run(cell, QUICK if quick else FULL, Path(name), status.update):
                    results.runs.append(done)
                    console.print(f"{cell}: {done.what}: {done.rate:,.0f}/s", highlight=False)
        except KeyboardInterrupt:
            console.print("Interrupted; this is what was done.")
            return False
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
            console.print(f"Stopped early, with these results. {error}", highlight=False, markup=False)
            return False
    return True


if __name__ == "__main__":
    typer.run(main)
