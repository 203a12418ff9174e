"""Mutation runner: breaks a copy of the sources, and runs the test that must fail."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutations.mutation import Mutation

ROOT = Path(__file__).parents[2]
_PARTS = ("core", "assignors", "consumer", "instrumentation", "testing", "cli")
_BESIDES = ("consumer/tests", "integration_tests", "examples", "docs", "pyproject.toml")
_PATIENCE_SECONDS = "15"
"""Timeout of a waiting test; longer than any session timeout plus poll interval."""
_LIMIT_SECONDS = 900
"""For all tests on what is not broken; one mutation's take seconds."""
_TESTS_FAILED = 1


class RunnerError(Exception):
    """The runner's result is not reliable."""


@dataclass(frozen=True, slots=True)
class Run:
    """Outcome of a test run."""

    exit_code: int
    output: str

    @property
    def failed(self) -> bool:
        """True if the tests ran and failed.

        Raises:
            RunnerError: The tests could not be run.
        """
        if self.exit_code not in {0, _TESTS_FAILED}:
            raise RunnerError(f"the tests could not be run:\n{self.output}")
        return self.exit_code == _TESTS_FAILED


class Copy:
    """A copy of the sources and the tests, with at most one mutated file at a time."""

    def __init__(self, directory: Path) -> None:
        """Copy sources and tests into an empty directory.

        Raises:
            RunnerError: The tests would import the original sources.
        """
        self.directory = directory
        """Its root."""
        for name in (*(f"{part}/src" for part in _PARTS), *_BESIDES):
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*_cache")
                shutil.copytree(source, directory / name, ignore=ignored)
            else:
                shutil.copy(source, directory / name)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(directory / part / "src") for part in _PARTS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GROUPWRIGHT_TESTS_PATIENCE": _PATIENCE_SECONDS,
        }
        """With which a process imports the copy."""
        self._check_that_it_is_used()

    def run(self, tests: Iterable[str]) -> Run:
        """Run tests on the current copy."""
        done = self._python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
        return Run(done.returncode, done.stdout + done.stderr)

    def run_broken(self, mutation: Mutation) -> Run:
        """Apply a mutation, run the test that must fail, and restore the copy."""
        with self.broken(mutation):
            return self.run([mutation.caught_by])

    @contextmanager
    def broken(self, mutation: Mutation) -> Iterator[None]:
        """Apply a mutation, and restore the copy at the end."""
        path = self.directory / mutation.file
        whole = path.read_text(encoding="utf-8")
        path.write_text(mutation.applied_to(whole), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(whole, encoding="utf-8")

    def _check_that_it_is_used(self) -> None:
        shown = "import groupwright.consumer as c, groupwright.assignors as a; print(c.__file__, a.__file__)"
        paths = self._python("-c", shown).stdout.split()
        if len(paths) != 2 or not all(path.startswith(str(self.directory)) for path in paths):
            raise RunnerError(f"the tests would not run on the copy in {self.directory}, but on {paths}")

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
