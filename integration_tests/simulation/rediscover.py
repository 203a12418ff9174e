"""`python -m simulation.rediscover`: put mended defects back, and time their discovery by simulations.

python -m simulation.rediscover                    all mutations that lie in simulated code
python -m simulation.rediscover seek stopped       those with one of these words in their names
python -m simulation.rediscover --all --minutes 2  also those that no simulation is known to find
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mutations.mutation import CONSUMER, Mutation
from mutations.runner import Copy
from mutations.table import MUTATIONS

_BROKEN = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)
_GRACE_SECONDS = 300
"""Seconds beyond the given time for the simulations that are under way."""


@dataclass(frozen=True, slots=True)
class Found:
    """The time in which simulations found a defect."""

    mutation: Mutation
    seed: int | None
    """The first seed that broke a promise; None if none did."""
    promise: str
    seconds: float

    def __str__(self) -> str:
        """Return a row of the table."""
        promise = self.promise.partition(":")[0] or "**not found**"
        return f"| {self.mutation.name} | {promise} | {self.seconds:.0f} |"


def search(copy: Copy, mutation: Mutation, minutes: float, first: int) -> Found:
    """Put a defect back, and simulate until a promise is broken, for so many minutes."""
    began = time.monotonic()
    command = [sys.executable, "-m", "simulation", "--minutes", str(minutes), "--most", "1"]
    with copy.broken(mutation):
        done = subprocess.run(
            [*command, "--first", str(first)],
            cwd=copy.directory / "integration_tests",
            env=copy.environment,
            capture_output=True,
            text=True,
            timeout=60 * minutes + _GRACE_SECONDS,
            check=False,
        )
    found = _BROKEN.search(done.stdout)
    if found is None and done.returncode:
        raise RuntimeError(f"the simulations could not be run:\n{done.stdout}{done.stderr}")
    seed, promise = (int(found[1]), found[2]) if found else (None, "")
    return Found(mutation, seed, promise, time.monotonic() - began)


def main() -> int:
    """Search; return exit status 1 if a defect is not found that should be."""
    parser = argparse.ArgumentParser(
        prog="python -m simulation.rediscover", description="Find mended defects again."
    )
    parser.add_argument("words", nargs="*", help="parts of mutations' names")
    parser.add_argument("--minutes", type=float, default=10.0, help="longest time for each (default: 10)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--all", action="store_true", help="also defects that no simulation is known to find")
    given = parser.parse_args()
    chosen = [
        each
        for each in MUTATIONS
        if each.file.startswith(CONSUMER)
        and (each.in_simulation or given.all)
        and (not given.words or any(word in each.name for word in given.words))
    ]
    missed = 0
    print("| defect | promise | seconds |\n|---|---|--:|")
    with tempfile.TemporaryDirectory(prefix="groupwright-rediscover-") as directory:
        copy = Copy(Path(directory))
        for mutation in chosen:
            one = search(copy, mutation, given.minutes, given.first)
            missed += one.seed is None and mutation.in_simulation
            print(one, flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
