"""Run one case with one of the two consumers, and print what was seen as JSON.

A process for each, since what these libraries patch stays patched.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from integration_tests.harness.patience import PROGRAM_PATIENCE


def run(python: str, module: str, case: str, which: str, bootstrap: str) -> Any:
    """Return what a case sees, run by the interpreter of an environment that has the library.

    Raises:
        RuntimeError: The case failed; with the end of what it wrote.
    """
    command = [python, "-m", "integration_tests.third_parties.run_case", module, case, which, bootstrap]
    ended = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_PATIENCE,
    )
    if ended.returncode:
        raise RuntimeError(f"{module}.{case} failed with {which}:\n{ended.stderr[-3000:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def main() -> None:
    """Read module, case, consumer and bootstrap servers from the command line."""
    module, case, which, bootstrap = sys.argv[1:]
    seen = getattr(importlib.import_module(f"integration_tests.third_parties.{module}"), case)(
        which, bootstrap
    )
    sys.stdout.write("\n" + json.dumps(seen, default=str, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
