"""Contestants' processes: starting them, reading their output, and enforcing time limits."""

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from benchmarks.consumer.contestants import ROOT
from benchmarks.consumer.results import Status

_READY_SECONDS = 60.0


class RunFailedError(Exception):
    """A contestant returned no result."""

    def __init__(self, status: Status, note: str = "") -> None:
        """Create the error with the contestant's status and the reason."""
        super().__init__(note)
        self.status = status
        self.note = note


class Programs:
    """Running programs whose output is read together."""

    def __init__(self, cleanup: ExitStack) -> None:
        """Create an empty set of programs; `cleanup` ends those that are started."""
        self._cleanup = cleanup
        self._started: list[tuple[subprocess.Popen[str], IO[bytes]]] = []
        self._lines: queue.Queue[tuple[int, str | None]] = queue.Queue()
        self._done: set[int] = set()
        """Those that may end."""

    def start(self, command: Sequence[str], settings: Mapping[str, object]) -> None:
        """Start a program with these settings."""
        errors = self._cleanup.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the rest
        arguments = (f"{name}={value}" for name, value in settings.items())
        process = subprocess.Popen(  # noqa: S603 - contestants
            (*command, *arguments),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        number = len(self._started)
        reader = threading.Thread(target=self._forward, args=(process, number), daemon=True)
        self._cleanup.callback(_end, process, reader)
        reader.start()
        self._started.append((process, errors))

    def order(self, line: str) -> None:
        """Send an order to all programs."""
        for process, _ in self._started:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            with suppress(BrokenPipeError):  # its last words say why it ended
                process.stdin.write(f"{line}\n")
                process.stdin.flush()

    def await_all(self, word: str, seconds: float = _READY_SECONDS) -> None:
        """Wait until every program that is not done has printed this word.

        Raises:
            RunFailedError: A program times out or ends.
        """
        deadline = time.monotonic() + seconds
        for _ in range(len(self._started) - len(self._done)):
            while (line := self.next_line(deadline)) != word:
                if line is None:
                    raise RunFailedError(Status.TIMEOUT, f"no {word!r} in {seconds:.0f} s")

    def result(self, seconds: float) -> dict[str, Any]:
        """Return the measurement of the only program.

        Raises:
            RunFailedError: The program times out, or ends without a result.
        """
        deadline = time.monotonic() + seconds
        while (line := self.next_line(deadline)) is not None:
            word, _, rest = line.partition(" ")
            if word == "result":
                result: dict[str, Any] = json.loads(rest)
                return result
        raise RunFailedError(Status.TIMEOUT, f"no result in {seconds:.0f} s")

    def next_line(self, deadline: float) -> str | None:
        """Return the next line that a program prints, or None at the deadline (monotonic).

        Raises:
            RunFailedError: A program reports a failure or a missing feature, or ends without a result.
        """
        while True:
            try:
                number, line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return None
            if line is not None or number not in self._done:
                return self._checked(number, line)

    def _checked(self, number: int, line: str | None) -> str:
        if line is None:
            raise RunFailedError(Status.FAILED, self._last_error(number))
        word, _, rest = line.partition(" ")
        if word == "lacks":
            raise RunFailedError(Status.LACKING, rest)
        if word == "failed":
            raise RunFailedError(Status.FAILED, rest)
        if word == "done":
            self._done.add(number)
        return line

    def _last_error(self, number: int) -> str:
        _, errors = self._started[number]
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else "it ended without a word"

    def _forward(self, process: subprocess.Popen[str], number: int) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in process.stdout:
            self._lines.put((number, line.strip()))
        self._lines.put((number, None))


@contextmanager
def programs() -> Iterator[Programs]:
    """Yield a starter of programs, and end all of them on exit."""
    with ExitStack() as cleanup:
        yield Programs(cleanup)


def measured(command: Sequence[str], settings: Mapping[str, object], seconds: float) -> dict[str, Any]:
    """Run one program, and return its measurement.

    Raises:
        RunFailedError: The program times out or fails.
    """
    with programs() as running:
        running.start(command, settings)
        return running.result(seconds)


def _end(process: subprocess.Popen[str], reader: threading.Thread) -> None:
    process.kill()
    process.wait()
    reader.join()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # an order that it has not read
            pipe.close()
