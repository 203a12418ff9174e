"""`python -m benchmarks.load`: measures balance by load beside balance by counts and by lag, on a broker."""

from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka import KafkaException

from benchmarks.consumer.processes import RunFailedError
from benchmarks.load.contestants import prepare
from benchmarks.load.plan import FULL, QUICK
from benchmarks.load.report import REPORT
from benchmarks.load.results import Results
from benchmarks.load.runner import run
from benchmarks.shell import Output, Quick, Shell
from groupwright.assignors.errors import GroupwrightError


def main(
    *,
    quick: Quick = False,
    lag_assignor: Annotated[
        Path | None,
        typer.Option(
            help="Jar or source file of the lag-based assignor, if no Maven repository has it.",
            exists=True,
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Measure balance by load: the drain of a backlog, the sustained throughput, and moves."""
    effort = QUICK if quick else FULL
    shell = Shell("load")
    with shell.progress_shown() as folder:
        contestants = prepare(folder, lag_assignor)
        shell.leave_out(contestants)
        results = Results(
            **shell.origin(), contestants={one.name: one.absent or one.version for one in contestants}
        )
        shell.expect(len(contestants) * len(effort.shapes))
        with shell.may_end_early(GroupwrightError, KafkaException, RunFailedError, TimeoutError):
            run(contestants, effort, shell.progress, results)
    shell.finish(REPORT, results, output, is_whole=not quick)


if __name__ == "__main__":
    typer.run(main)
