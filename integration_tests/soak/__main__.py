"""`python -m integration_tests.soak`: run a soak for a given number of minutes."""

import argparse
import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from groupwright.assignors import GroupwrightError
from groupwright.consumer._config.strategy import read_strategy
from integration_tests.soak import report, run_directory
from integration_tests.soak.conductor import Plan, Progress, Watcher, run

ASSIGNORS = ("range", "sticky", "cooperative-sticky")


def main() -> int:
    """Run a soak; return exit status 1 if a guarantee was violated or the groups did not settle."""
    options = _options().parse_args()
    console = Console()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    assignors = tuple(options.assignor or served(ASSIGNORS))
    plan = Plan(seed, options.minutes * 60, assignors, options.rate)
    directory = options.directory or run_directory.create(seed)
    directory.mkdir(parents=True, exist_ok=True)
    with run_directory.recorded(plan, directory) as output:
        kept = Console(file=output, width=200, no_color=True)
        for out in (console, kept):
            out.print(
                f"Seed {seed}: {options.minutes:g} min of faults for {', '.join(assignors)}", highlight=False
            )
            out.print(f"Histories and logs: {directory}", highlight=False, soft_wrap=True)
        with _progress(console) as watch:
            result = run(plan, directory, watch)
        # A group that did not settle is a failure even if no rule was violated.
        status = 1 if result.findings.violations or not result.drained else 0
        run_directory.write_findings(result, status, directory)
        for out in (kept, console):
            report.show(result, out)
    return status


def served(names: tuple[str, ...]) -> Iterator[str]:
    """Return the assignors that the consumer takes on their own."""
    for name in names:
        with contextlib.suppress(GroupwrightError):
            read_strategy(name)
            yield name


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Watcher]:
    with Live(Text("starting"), console=console, transient=True, refresh_per_second=4) as live:

        def watch(progress: Progress) -> None:
            live.update(
                Text(
                    f"{progress.phase}, {progress.elapsed:.0f} s: {progress.faults} faults, "
                    f"{progress.rebalances} rebalances, {progress.produced} messages, "
                    f"{progress.consumed} consumed"
                )
            )

        yield watch


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.soak", description="Chaos test of consumer groups."
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="duration of the faults (default: 2)")
    parser.add_argument("--seed", type=int, help="repeat the faults of an earlier run")
    parser.add_argument(
        "--assignor",
        action="append",
        help="a group with this assignor; may be given again (default: one group for each that is served)",
    )
    parser.add_argument("--rate", type=int, default=100, help="messages a second (default: 100)")
    parser.add_argument(
        "--directory", type=Path, help="keep histories, logs and findings here (default: build/soak)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
