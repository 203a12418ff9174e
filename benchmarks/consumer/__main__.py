"""`python -m benchmarks.consumer`: measures Groupwright's consumer beside other clients' on a broker."""

import typer
from confluent_kafka import KafkaException

from benchmarks.consumer.contestants import prepare
from benchmarks.consumer.plan import FULL, QUICK
from benchmarks.consumer.processes import RunFailedError
from benchmarks.consumer.report import REPORT
from benchmarks.consumer.results import Results
from benchmarks.consumer.runner import Bench
from benchmarks.shell import ListCells, Only, Output, Quick, Shell, chosen
from groupwright.assignors.errors import GroupwrightError


def main(
    *, quick: Quick = False, only: Only = "*", output: Output = None, show_cells: ListCells = False
) -> None:
    """Measure the consumer: throughput, joins, leaves, kills, deploys, the latency of events, and idling."""
    effort = QUICK if quick else FULL
    cells = chosen(effort.cells, only, only_list=show_cells)
    shell = Shell("consumer")
    with shell.progress_shown() as folder:
        clients = prepare(folder)
        shell.leave_out(clients.values())
        results = Results(
            **shell.origin(),
            clients={one.name: one.absent or one.version for one in clients.values()},
            messages=effort.messages,
        )
        bench = Bench(clients, effort, cells, shell.progress)
        shell.expect(bench.runs)
        with shell.may_end_early(GroupwrightError, KafkaException, RunFailedError, TimeoutError):
            bench.run(results)
    shell.finish(REPORT, results, output, is_whole=not quick and cells == effort.cells)


if __name__ == "__main__":
    typer.run(main)
