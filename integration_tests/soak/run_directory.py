"""The directory of a run: its plan, histories, logs, output and verdict, of which the newest runs are kept."""

import dataclasses
import json
import os
import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from soak.checker import summary
from soak.conductor import Plan, Result

RUNS = Path(__file__).parents[2] / "build" / "soak"
"""Where runs are kept unless `--directory` names another place."""
KEPT_RUNS = 20
OUTPUT = "output.txt"


def create(seed: int, runs: Path = RUNS) -> Path:
    """Create and return the directory of a new run, and remove the oldest ones."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    directory = runs / f"{stamp}-seed-{seed}"
    number = 1
    while directory.exists():
        number += 1
        directory = runs / f"{stamp}-seed-{seed}-{number}"
    directory.mkdir(parents=True)
    for old in outdated(sorted(it.name for it in runs.iterdir() if it.is_dir())):
        shutil.rmtree(runs / old)
    return directory


def outdated(names: list[str], kept: int = KEPT_RUNS) -> list[str]:
    """Return the names of runs, oldest first, that are to be removed; what is not named like a run stays."""
    runs = sorted(name for name in names if "-seed-" in name)
    return runs[: max(0, len(runs) - kept)]


@contextmanager
def recorded(plan: Plan, directory: Path) -> Iterator[IO[str]]:
    """Write the plan down, yield the file of what is printed, and add the traceback if the body raises."""
    (directory / "plan.json").write_text(json.dumps(dataclasses.asdict(plan), indent=2) + "\n")
    with (directory / OUTPUT).open("a", buffering=1, encoding="utf-8") as output:
        try:
            yield output
        except BaseException:
            output.write(traceback.format_exc())
            output.write(f"load average: {os.getloadavg()}\n")
            raise


def write_verdict(result: Result, status: int, directory: Path) -> None:
    """Write down the result of a run: counts, and each violation."""
    verdict = result.verdict
    counts = {
        field.name: value
        for field in dataclasses.fields(verdict)
        if isinstance(value := getattr(verdict, field.name), int)
    }
    found = {
        "status": status,
        "drained": result.drained,
        "rebalances": result.rebalances,
        "strikes": dict(result.strikes),
        "counts": counts,
        "broken": summary(verdict.violations),
        "violations": [dataclasses.asdict(violation) for violation in verdict.violations],
    }
    (directory / "verdict.json").write_text(json.dumps(found, indent=2) + "\n")
