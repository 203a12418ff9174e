"""`python -m simulation.rediscover`: put mended defects back, and time their discovery by simulations.

python -m simulation.rediscover               all defects in simulated code
python -m simulation.rediscover seek stopped  those with one of these words in their names
python -m simulation.rediscover --minutes 2   each for two minutes at most

Times are processor time, so that other work on the machine changes nothing. Defects outside of simulated code
(`Mutation.outside_simulation`) are left out.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutations.mutation import Mutation
from mutations.runner import Copy
from mutations.table import MUTATIONS

_BROKEN = re.compile(r"^(?:seed (\d+)|BROKEN): (.*)$", re.MULTILINE)
_PLAYED = re.compile(r"^([\d,]+) seeds, ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """The time in which simulations found a defect."""

    mutation: Mutation
    guarantee: str
    """The guarantee that was broken; empty if none was."""
    seeds: str
    """Number of seeds played, or the name of the story."""
    seconds: float
    """Processor time, with that of the start."""

    def __str__(self) -> str:
        """Return a row of the table."""
        guarantee = self.guarantee.partition(":")[0] or "**not found**"
        return f"| {self.mutation.name} | {guarantee} | {self.seeds} | {self.seconds:.0f} |"


def search(copy: Copy, mutation: Mutation, minutes: float, first: int) -> Found:
    """Put a defect back, and simulate until a guarantee is broken, for so many minutes of processor time.

    If seeds are known not to show it, its story is played.
    """
    before = _processor_seconds()
    by_seeds = ["--lanes", "1", "--most", "1", "--first", str(first), "--core-minutes", str(minutes)]
    options = ["--story", mutation.story] if mutation.story else by_seeds
    with copy.broken(mutation):
        done = subprocess.run(
            [sys.executable, "-m", "simulation", *options],
            cwd=copy.directory / "integration_tests",
            env=copy.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    found, played = _BROKEN.search(done.stdout), _PLAYED.search(done.stdout)
    if (played is None and not mutation.story) or (found is None and done.returncode):
        raise RuntimeError(f"the simulations could not be run:\n{done.stdout}{done.stderr}")
    seeds = played[1] if played is not None else f"`{mutation.story}`"
    return Found(mutation, found[2] if found else "", seeds, _processor_seconds() - before)


def _processor_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main() -> int:
    """Search; return exit status 1 if a defect is not found."""
    parser = argparse.ArgumentParser(
        prog="python -m simulation.rediscover", description="Find mended defects again."
    )
    parser.add_argument("words", nargs="*", help="parts of mutations' names")
    parser.add_argument("--minutes", type=float, default=10.0, help="processor time for each (default: 10)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    given = parser.parse_args()
    chosen = [
        each
        for each in MUTATIONS
        if not each.outside_simulation and (not given.words or any(word in each.name for word in given.words))
    ]
    missed = 0
    print("| defect | guarantee | seeds | seconds |\n|---|---|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="groupwright-rediscover-") as directory:
        copy = Copy(Path(directory))
        for mutation in chosen:
            one = search(copy, mutation, given.minutes, given.first)
            missed += not one.guarantee
            print(one, flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
