"""A program as a process, with everything that it starts."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from integration_tests.harness.patience import PATIENCE


class Process:
    """A process with a process group of its own, whose output is in a file."""

    def __init__(
        self, log: Path, *command: str, env: Mapping[str, str] = os.environ, cwd: Path | None = None
    ) -> None:
        """Start the process."""
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**env, "PYTHONUNBUFFERED": "1"},
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """The output of the process so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while the process runs."""
        return self._process.poll()

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for the process to end, and return its exit status; kill it after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def signal(self, number: int) -> None:
        """Send a signal to the process, not to its group."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL to the process and all of its group, as if the machine failed."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
