"""Standard output that cannot be written: a full disk, a closed descriptor, or a pipe without a reader."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

UNWRITABLE = 8
"""Exit status of a command whose output cannot be written."""
PIPE_CLOSED = 141
"""Exit status of a command whose output's reader closed the pipe: as shells report SIGPIPE."""


class _OutputError(Exception):
    """Standard output cannot be written. No OSError, since typer and rich handle some of those themselves."""


class _Output(io.TextIOWrapper):
    """Standard output whose errors are `_OutputError`."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise _OutputError from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _OutputError from error


@contextmanager
def output_errors_reported() -> Iterator[None]:
    """Exit with `UNWRITABLE` and a sentence, or silently with `PIPE_CLOSED`, if output cannot be written."""
    if sys.stdout is None:
        _exit("standard output is closed")
    plain = sys.stdout
    sys.stdout = _Output(plain.buffer, plain.encoding, plain.errors, line_buffering=plain.isatty())
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except _OutputError as error:
        # Python flushes standard output once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        cause = error.__cause__
        if isinstance(cause, BrokenPipeError):
            sys.exit(PIPE_CLOSED)
        _exit(getattr(cause, "strerror", cause))


def _exit(reason: object) -> NoReturn:
    sys.stderr.write(f"groupwright: the output cannot be written: {reason}\n")
    sys.exit(UNWRITABLE)
