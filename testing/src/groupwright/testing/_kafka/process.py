"""Child process that ends with this process."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_KILLED_WITHIN_SECONDS = 10.0
_SUSPENDED_WITHIN_SECONDS = 10.0


class GuardedProcess:
    """A program in its own session, which runs until it is stopped or this process ends.

    Ctrl-C in the terminal does not reach it, so its clients can leave first. On POSIX systems it ends with
    this process even after a SIGKILL (see `lifeline.py`); on Windows it does not. Methods other than `start`
    do nothing if the program is not running.
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
        """True if the program has been started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Start the program, once. If this is interrupted, no program is left running."""
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
                    env=_utf8(os.environ),
                )
            self._lifeline = writer
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)

    def wait(self, timeout: float) -> int | None:
        """Wait up to `timeout` seconds for the end; return the exit code, or None if it still runs."""
        if self._popen is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout)
        return self.exit_code

    def stop(self, timeout: float) -> None:
        """Terminate the program (SIGTERM), and kill it if it has not ended after `timeout` seconds."""
        try:
            self.resume()  # a suspended process handles no signal but SIGKILL
            if self._popen is not None:
                self._popen.terminate()
            self.wait(timeout)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the program (SIGKILL)."""
        try:
            if self._popen is not None:
                self._popen.kill()
                self._popen.wait(_KILLED_WITHIN_SECONDS)
        finally:
            self._close_lifeline()

    def suspend(self) -> None:
        """Suspend the program (SIGSTOP): its connections stay open, but it does not respond.

        Its threads go on until the one that receives the signal has run, which takes a while on a busy
        machine. So this waits until the program has stopped, where Python can tell.
        """
        if self._popen is None:
            return
        self._popen.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + _SUSPENDED_WITHIN_SECONDS
        while time.monotonic() < deadline and not self._has_stopped_or_ended(self._popen.pid):
            time.sleep(0.001)

    @staticmethod
    def _has_stopped_or_ended(pid: int) -> bool:
        if not hasattr(os, "waitid"):  # on macOS before Python 3.13
            return True
        with contextlib.suppress(ChildProcessError):  # it has ended, and `Popen.wait` was called
            # WNOWAIT leaves the exit code to `Popen.wait`.
            changes = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, pid, changes) is not None
        return True

    def resume(self) -> None:
        """Resume a suspended program (SIGCONT)."""
        if self._popen is not None and os.name == "posix":
            self._popen.send_signal(signal.SIGCONT)

    def _close_lifeline(self) -> None:
        """Close the pipe, which ends the watcher; it kills the program if that is still running."""
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


def _utf8(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with a locale in which Java takes arguments for UTF-8, on Linux."""
    return {**environment, "LC_ALL": "C.UTF-8"} if sys.platform == "linux" else dict(environment)
