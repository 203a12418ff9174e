"""Exit statuses of the command, and the errors that end it."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import typer

from groupwright.cli._command_line.text import harmless
from groupwright.core import GroupwrightError


class ExitStatus(IntEnum):
    """Exit statuses; scripts may rely on them."""

    OK = 0
    FINDINGS = 1
    """The command ran, and its answer is no: `doctor` has warnings, the demo's checks failed."""
    USAGE = 2
    """Wrong arguments or configuration, or an extra that is not installed."""
    UNREACHABLE = 3
    """No broker responds, or the brokers refuse this client's credentials or protocol."""
    NOT_FOUND = 4
    """The group or topic does not exist."""
    FORBIDDEN = 5
    """The credentials do not allow it."""
    REFUSED = 6
    """The state of the group does not allow it, such as a reset while it has members."""
    INCOMPLETE = 7
    """A part of it was done, or is known; the messages say which."""
    INTERRUPTED = 130


class CommandError(GroupwrightError):
    """An error that ends the command with a message and an exit status."""

    def __init__(self, message: str, status: ExitStatus) -> None:
        """Create it."""
        super().__init__(message)
        self.status = status


def unusable_file(path: Path, use: str, error: Exception) -> CommandError:
    """Return the error of a file that cannot be `read` or `written`, without the number of the error."""
    reason = getattr(error, "strerror", None) or error
    return CommandError(f"{path} cannot be {use}: {reason}", ExitStatus.USAGE)


@contextmanager
def errors_reported(command: str) -> Iterator[None]:
    """Print a `CommandError` on standard error, and exit with its status; 130 after Ctrl-C."""
    try:
        yield
    except CommandError as error:
        typer.echo(f"groupwright {command}: {harmless(str(error))}", err=True)
        raise typer.Exit(error.status) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
