"""Workers: processes of one program, which are killed, stopped and frozen, and started anew."""

import sys
from pathlib import Path
from typing import Self

from groupwright.testing._kafka.process import GuardedProcess
from integration_tests.harness.patience import PATIENCE


class Workers:
    """Named processes; one that ends is started anew by `tend`, as an orchestrator would."""

    def __init__(self, program: Path, arguments: list[str], directory: Path) -> None:
        """Describe them: each gets the arguments, in which ``{name}`` stands for its name."""
        self.ended: list[tuple[str, int]] = []
        """Whose process ended by itself, and its exit code."""
        self._command = [sys.executable, str(program), *arguments]
        self._directory = directory
        self._processes: dict[str, GuardedProcess] = {}

    def start(self, name: str) -> None:
        """Start a worker."""
        process = GuardedProcess(
            [word.replace("{name}", name) for word in self._command],
            log_path=self._log_path(name),
            remove_if_orphaned=None,
        )
        process.start()
        self._processes[name] = process

    def tend(self) -> None:
        """Start anew what has ended by itself."""
        for name, process in self._processes.items():
            if process.exit_code is not None:
                self.ended.append((name, process.exit_code))
                self.start(name)

    def crash(self, *names: str) -> None:
        """Kill workers (SIGKILL), all at once, and start them anew."""
        for name in names:
            self._processes[name].kill()
        for name in names:
            self.start(name)

    def stop(self, name: str) -> int | None:
        """Ask a worker to end (SIGTERM); return its exit code, which is negative if it had to be killed."""
        process = self._processes.pop(name)
        process.stop(PATIENCE)
        return process.exit_code

    def freeze(self, name: str) -> None:
        """Suspend a worker (SIGSTOP)."""
        self._processes[name].suspend()

    def thaw(self, name: str) -> None:
        """Let a frozen worker go on."""
        self._processes[name].resume()

    def log(self, name: str) -> str:
        """Return what a worker has written to its standard output and error, over all its lives."""
        return self._log_path(name).read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what still runs."""
        for process in self._processes.values():
            process.kill()

    def _log_path(self, name: str) -> Path:
        return self._directory / f"{name}.log"
