"""Directory of a run: plan, histories, logs, output and findings; only the newest runs are kept."""

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

from integration_tests.soak.checker import summary
from integration_tests.soak.conductor import Plan, Result

RUNS = Path(__file__).parents[2] / "build" / "soak"
"""Parent directory of all runs, unless `--directory` is given."""
KEPT_RUNS = 20
OUTPUT = "output.txt"


def create(seed: int, runs: Path = RUNS) -> Path:
    """Create the directory of a new run, and remove the oldest runs; return the directory."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    directory = runs / f"{stamp}-seed-{seed}"
    number = 1
    while directory.exists():
        number += 1
        directory = runs / f"{stamp}-seed-{seed}-{number}"
    directory.mkdir(parents=True)
    for old in outdated(sorted(member.name for member in runs.iterdir() if member.is_dir())):
        shutil.rmtree(runs / old)
    return directory


def outdated(names: list[str], kept: int = KEPT_RUNS) -> list[str]:
    """Return the names of the runs to remove, oldest first; other names are ignored."""
    runs = sorted(name for name in names if "-seed-" in name)
    return runs[: max(0, len(runs) - kept)]


@contextmanager
def recorded(plan: Plan, directory: Path) -> Iterator[IO[str]]:
    """Write the plan, yield the output file, and append the traceback if the body raises."""
    (directory / "plan.json").write_text(json.dumps(dataclasses.asdict(plan), indent=2) + "\n")
    with (directory / OUTPUT).open("a", buffering=1, encoding="utf-8") as output:
        try:
            yield output
        except BaseException:
            output.write(traceback.format_exc())
            output.write(f"load average: {os.getloadavg()}\n")
            raise


def write_findings(result: Result, status: int, directory: Path) -> None:
    """Write the result of a run as JSON: counts, and each violation."""
    findings = result.findings
    counts = {
        field.name: value
        for field in dataclasses.fields(findings)
        if isinstance(value := getattr(findings, field.name), int)
    }
    found = {
        "status": status,
        "drained": result.drained,
        "rebalances": result.rebalances,
        "faults": dict(result.faults),
        "counts": counts,
        "broken": summary(findings.violations),
        "violations": [dataclasses.asdict(violation) for violation in findings.violations],
    }
    (directory / "findings.json").write_text(json.dumps(found, indent=2) + "\n")
