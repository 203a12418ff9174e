"""Fixtures: the command as a process, and its child processes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until


@pytest.fixture
def groupwright() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run the command to its end, with no terminal and a width that wraps nothing."""

    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "groupwright.cli", *arguments],
            env={**os.environ, "COLUMNS": "200", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    return run


class RunningDemo:
    """`groupwright demo` as a process that is watched while it runs."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        self._output_path = directory / "output"
        self._errors_path = directory / "errors"
        with self._output_path.open("wb") as output, self._errors_path.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "groupwright.cli", "demo", *arguments],
                env={
                    **os.environ,
                    "TMPDIR": str(self.temporary),
                    "PYTHONWARNINGS": "always::ResourceWarning",
                    "PYTHONIOENCODING": "utf-8",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        self.started: list[psutil.Process] = []

    @property
    def output(self) -> str:
        return self._output_path.read_text(encoding="utf-8")

    @property
    def errors(self) -> str:
        return self._errors_path.read_text(encoding="utf-8")

    def wait_for(self, pattern: str) -> "re.Match[str]":
        """Wait until it has printed this, and take note of its processes."""

        def is_printed() -> bool:
            assert self._process.poll() is None, f"it ended before {pattern!r}: {self.output}{self.errors}"
            return re.search(pattern, self.output) is not None

        wait_until(is_printed, f"{pattern!r} in the output of the demo")
        self.started = psutil.Process(self._process.pid).children(recursive=True)
        found = re.search(pattern, self.output)
        assert found is not None
        return found

    def members(self) -> list[psutil.Process]:
        program = ["-m", "groupwright.testing._groups.member_process"]
        return [process for process in self.started if process.cmdline()[1:3] == program]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def exit_status(self) -> int:
        """Wait for its end."""
        return self._process.wait(PATIENCE)

    def wait_for_its_processes(self) -> None:
        """Wait until everything that it had started has ended, such as the guard of its Kafka."""
        wait_until(lambda: not any(map(_lives, self.started)), "the end of the demo's processes")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended. (Without a parent that waits it remains as a zombie.)"""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def start_demo(tmp_path: Path) -> Iterator[Callable[..., RunningDemo]]:
    """Start `groupwright demo` with a directory of its own for temporary files."""
    demos: list[RunningDemo] = []

    def start(*arguments: str) -> RunningDemo:
        demos.append(RunningDemo(tmp_path, *arguments))
        return demos[-1]

    yield start
    for demo in demos:
        demo.end()
