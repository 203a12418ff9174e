"""`python -m integration_tests.pipeline_chaos`: run the pipeline under faults for some minutes."""

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console

from groupwright.pipeline.jobs import local_session
from integration_tests.pipeline_chaos.conductor import Conductor, Plan, Result
from integration_tests.pipeline_chaos.jobs import QUICK
from integration_tests.soak import run_directory

RUNS = Path(__file__).parents[2] / "build" / "pipeline-chaos"


def main() -> int:
    """Run; return exit status 1 if a record is missing or doubled without a sentence that says so."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.pipeline_chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the faults (default: 10)")
    parser.add_argument("--seed", type=int, help="repeat the faults of an earlier run")
    parser.add_argument("--interval", type=float, default=20.0, help="mean seconds between two faults")
    parser.add_argument("--workers", type=int, default=3, help="workers of the cluster; 0: local[2]")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    folder = run_directory.create(seed, RUNS)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Seed {seed}. Story, ledger, logs and tables: {folder}")
    plan = Plan(seed, options.minutes * 60, options.interval, options.workers)
    reader = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": QUICK}
    result = Conductor(plan, folder, console.print).run(lambda: local_session("chaos", settings=reader))
    show(result, console)
    return 1 if result.findings.violations else 0


def show(result: Result, console: Console) -> None:
    """Print the result."""
    console.print(f"{result.events} events and {result.commits} commits acknowledged")
    console.print(f"Faults: {_counts(result.faults)}")
    console.print(f"Ends of the job: {_counts(result.ends)}")
    for sentence, number in result.findings.explained.items():
        console.print(f"{number} events are not there: {sentence}")
    console.print(f"{result.findings.repeated} records of deleted unfinished batches were added again")
    for violation in result.findings.violations[:20]:
        console.print(f"VIOLATION: {violation}")
    console.print(f"{len(result.findings.violations)} violations")


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.items()) or "none"


if __name__ == "__main__":
    sys.exit(main())
