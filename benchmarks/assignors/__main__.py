"""`python -m benchmarks.assignors`: measures the leader's whole step of Groupwright and of other clients."""

from dataclasses import replace
from typing import Annotated

import typer

from benchmarks.assignors.cases import CONTESTANTS, GROUPWRIGHT, full_matrix, quick_matrix
from benchmarks.assignors.contestants import prepare
from benchmarks.assignors.report import REPORT
from benchmarks.assignors.results import Results
from benchmarks.assignors.runner import FULL, QUICK, run_case
from benchmarks.shell import ListCells, Only, Output, Quick, Shell, chosen


def main(
    *,
    quick: Quick = False,
    only: Only = "*",
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this contestant beside Groupwright; repeatable."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="What one run may take; 30, or 5 with --quick.")
    ] = None,
    output: Output = None,
    show_cells: ListCells = False,
) -> None:
    """Measure the leader's whole step, from subscriptions in bytes to assignments in bytes."""
    matrix = {case.name: case for case in (quick_matrix() if quick else full_matrix())}
    cases = [matrix[name] for name in chosen(matrix, only, only_list=show_cells)]
    names = _taking_part(against)
    effort = QUICK if quick else FULL
    if limit is not None:
        effort = replace(effort, limit=limit)
    shell = Shell("assignors")
    with shell.progress_shown() as folder:
        contestants = prepare(folder, names)
        shell.leave_out(contestants)
        results = Results(
            **shell.origin(), contestants={one.name: one.absent or one.version for one in contestants}
        )
        shell.expect(len(cases) * len(contestants))
        with shell.may_end_early():
            for case in cases:
                run = run_case(
                    case, contestants, effort, folder, lambda cell, name: shell.advance(f"{cell} {name}")
                )
                results.rows.append(run)
    shell.finish(
        REPORT,
        results,
        output,
        is_whole=not quick and len(cases) == len(matrix) and not against and limit is None,
    )


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


if __name__ == "__main__":
    typer.run(main)
