"""The `groupwright` command.

`main` is what the command runs. It imports the commands themselves, so that importing this package needs
nothing but Python, and the command can say what is missing.
"""

import sys

__all__ = ["main"]

_EXTRA = frozenset({"typer", "rich", "jgo"})


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    try:
        from groupwright.cli.app import app  # noqa: PLC0415 - needs the extra, which may be missing

        app(prog_name="groupwright")
    except ImportError as error:
        missing = _missing(error)
        if missing is None:
            raise
        sys.exit(
            f"groupwright: the command needs {missing}, which is not installed: pip install 'groupwright[cli]'"
        )
    except KeyboardInterrupt:
        sys.exit(130)  # while importing; the commands have their own ways


def _missing(error: BaseException | None) -> str | None:
    """Return the package of the extra that was not found; an error may have been raised for another."""
    while error is not None:
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if package in _EXTRA:
            return package
        error = error.__cause__
    return None
