"""`python -m benchmarks.pipeline`: measure decoding, what-if studies, derived tables and samples."""

import subprocess

import typer

from benchmarks.pipeline.cells import CELLS, FULL, QUICK, run
from benchmarks.pipeline.report import REPORT
from benchmarks.pipeline.results import Results
from benchmarks.shell import ListCells, Only, Output, Quick, Shell, chosen


def main(
    *, quick: Quick = False, only: Only = "*", output: Output = None, show_cells: ListCells = False
) -> None:
    """Measure decoding and its memory, what-if studies, derived tables, and samples of log-end offsets."""
    cells = chosen(CELLS, only, only_list=show_cells)
    shell = Shell("pipeline")
    results = Results(**shell.origin())
    errors = (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError)
    with shell.progress_shown() as folder, shell.may_end_early(*errors):
        for cell in cells:
            for done in run(cell, QUICK if quick else FULL, folder, shell.progress):
                results.runs.append(done)
                shell.console.print(f"{cell}: {done.what}: {done.rate:,.0f}/s", highlight=False)
    shell.finish(REPORT, results, output, is_whole=not quick and len(cells) == len(CELLS))


if __name__ == "__main__":
    typer.run(main)
