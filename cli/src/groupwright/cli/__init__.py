"""The `groupwright` command.

`main` is its entry point. It imports the commands lazily, so importing this package needs only the standard
library, and the command can report missing packages.
"""

import sys

from groupwright.cli._command_line.standard_output import output_errors_reported

__all__ = ["main"]

_EXTRA = frozenset({"typer", "rich"})


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    try:
        with output_errors_reported():
            from groupwright.cli.app import app  # needs the extra, which may be missing

            app(prog_name="groupwright")
    except ImportError as error:
        missing = _missing(error)
        if missing is None:
            raise
        sys.stderr.write(
            f"groupwright: the command needs {missing}, which is not installed: pip install "
            "'groupwright[cli]'\n"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)  # during imports; the commands handle Ctrl-C themselves


def _missing(error: BaseException | None) -> str | None:
    """Return the missing package of the extra, searching the chain of causes."""
    while error is not None:
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if package in _EXTRA:
            return package
        error = error.__cause__
    return None
