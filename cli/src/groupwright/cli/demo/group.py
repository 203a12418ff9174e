"""The members' processes."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from groupwright.cli.demo.events import Events, MemberEnded, MemberReported
from groupwright.cli.demo.reports import decode

_LEAVE_SECONDS = 15.0
_KILLED_SECONDS = 5.0
_SLICE = 0.05


class Group:
    """Starts members, has them leave, and kills them; none outlives the `with` block.

    A member's standard input is a pipe that this process alone holds. Its end has the member leave, so that
    members leave too where this process is killed outright.
    """

    def __init__(
        self,
        command: Callable[[str], list[str]],
        *,
        logs: Path,
        events: Events,
        hurry: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start with no members.

        Args:
            command: Returns the command line of the member with a name.
            logs: A directory; each member's standard error goes into a file of its own there.
            events: Gets the members' reports and ends.
            hurry: Asked while members leave; once it is true they are killed.
        """
        self._command = command
        self._logs = logs
        self._events = events
        self._hurry = hurry
        self._processes: dict[str, _MemberProcess] = {}

    def __enter__(self) -> Self:
        """Return the group itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all members."""
        self.close()

    def start(self, name: str) -> None:
        """Start a member; what it does is told by events."""
        self._processes[name] = _MemberProcess(name, self._command(name), self._log_path(name), self._events)

    def leave(self, name: str) -> None:
        """Have a member leave in good order, and end."""
        self._processes[name].leave()

    def kill(self, name: str) -> None:
        """End a member at once (SIGKILL): it cannot tell anyone."""
        self._processes[name].kill()

    def close(self) -> None:
        """Have all members leave, kill those that do not, and return when all have ended."""
        try:
            for process in self._processes.values():
                process.leave()
            deadline = time.monotonic() + _LEAVE_SECONDS
            for process in self._processes.values():
                while not process.ended(_SLICE) and not self._hurry() and time.monotonic() < deadline:
                    pass
        finally:
            for process in self._processes.values():
                process.kill()
            for process in self._processes.values():
                process.ended(_KILLED_SECONDS)

    def log_tail(self, name: str, lines: int = 15) -> str:
        """Return the last lines of a member's log."""
        return "\n".join(self._log_path(name).read_text(errors="replace").splitlines()[-lines:])

    def _log_path(self, name: str) -> Path:
        return self._logs / f"{name}.log"


class _MemberProcess:
    """One member's process, and the thread that reads its reports."""

    def __init__(self, name: str, command: list[str], log_path: Path, events: Events) -> None:
        self._name = name
        self._events = events
        with log_path.open("wb") as log:
            self._popen = subprocess.Popen(  # noqa: S603 - no shell; this interpreter runs a module of this package
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # A terminal's Ctrl-C must not reach it: it leaves when it is told to.
                start_new_session=os.name == "posix",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # Windows
            )
        self._reader = threading.Thread(target=self._read, name=f"reports of {name}", daemon=True)
        self._reader.start()

    def leave(self) -> None:
        assert self._popen.stdin is not None  # noqa: S101 - for the type checker
        with contextlib.suppress(OSError):
            self._popen.stdin.close()

    def kill(self) -> None:
        self._popen.kill()

    def ended(self, timeout: float) -> bool:
        self._reader.join(timeout)
        return not self._reader.is_alive()

    def _read(self) -> None:
        assert self._popen.stdout is not None  # noqa: S101 - for the type checker
        with self._popen.stdout as lines:
            for line in lines:
                report = decode(line)
                if report is not None:
                    self._events.put(MemberReported(self._name, report))
        self._events.put(MemberEnded(self._name, self._popen.wait()))
