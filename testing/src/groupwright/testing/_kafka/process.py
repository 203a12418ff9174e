"""A child process that does not outlive this one."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_KILLED_WITHIN_SECONDS = 10.0


class GuardedProcess:
    """A program that runs in a session of its own, until it is stopped or this process ends.

    A terminal's Ctrl-C does not reach it, so that its clients can leave first. On POSIX systems it ends with
    this process even where that is killed outright (`lifeline.py` says how); on Windows it does not.
    Everything but `start` does nothing where the program does not run.
    """

    def __init__(
        self, command: Sequence[str | Path], *, log_path: Path, remove_if_orphaned: Path | None
    ) -> None:
        """Describe the program; `start` starts it.

        Args:
            command: The path of the executable, and its arguments.
            log_path: Standard output and standard error are appended to it.
            remove_if_orphaned: A directory to remove if this process dies while the program runs.
        """
        self._command = [str(part) for part in command]
        self._log_path = log_path
        self._remove_if_orphaned = remove_if_orphaned
        self._popen: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        return self._popen.pid if self._popen else None

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative for a signal); None before the end."""
        return self._popen.poll() if self._popen else None

    @property
    def running(self) -> bool:
        """Whether the program has been started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Start the program, once; wherever this is interrupted, no program is left running."""
        reader, writer = os.pipe()
        try:
            with self._log_path.open("ab") as log:
                self._popen = subprocess.Popen(  # noqa: S603 - no shell; the command is the caller's
                    self._guarded_command(),
                    stdin=reader,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # Windows
                )
            self._lifeline = writer
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)

    def wait(self, timeout: float) -> int | None:
        """Wait for the end, and return the exit code; None if the program runs on after so many seconds."""
        if self._popen is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout)
        return self.exit_code

    def stop(self, timeout: float) -> None:
        """Ask the program to end (SIGTERM), and kill it if it has not ended after so many seconds."""
        try:
            self.resume()  # a suspended process heeds SIGKILL alone
            if self._popen is not None:
                self._popen.terminate()
            self.wait(timeout)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the program at once (SIGKILL)."""
        try:
            if self._popen is not None:
                self._popen.kill()
                self._popen.wait(_KILLED_WITHIN_SECONDS)
        finally:
            self._let_go()

    def suspend(self) -> None:
        """Freeze the program (SIGSTOP): its connections stay open, and nothing answers on them."""
        if self._popen is not None:
            self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a suspended program go on (SIGCONT)."""
        if self._popen is not None and os.name == "posix":
            self._popen.send_signal(signal.SIGCONT)

    def _let_go(self) -> None:
        """Dismiss the watcher of a program that has ended, and have it end one that has not."""
        if self._lifeline is None:
            return
        lifeline, self._lifeline = self._lifeline, None
        if not self.running:
            with contextlib.suppress(OSError):  # the watcher may be gone
                os.write(lifeline, b".")
        os.close(lifeline)

    def _guarded_command(self) -> list[str]:
        if os.name != "posix":
            return self._command
        lifeline = Path(__file__).with_name("lifeline.py")
        directory = str(self._remove_if_orphaned or "")
        return [sys.executable, "-I", "-S", str(lifeline), directory, *self._command]
