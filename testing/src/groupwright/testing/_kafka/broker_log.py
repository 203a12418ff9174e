"""What a broker's log says about its failure."""

import re
from pathlib import Path

_CAUSE = re.compile(r".* ERROR |(Caused by: |Exception in thread .*)?[\w.$]+(Exception|Error)\b")
_PORT_TAKEN = re.compile(r"failed to bind to .*:\d+")


def size(log_path: Path) -> int:
    """Return the log's length in bytes, which is 0 as long as there is none."""
    return log_path.stat().st_size if log_path.exists() else 0


def read(log_path: Path, *, since: int = 0) -> str:
    """Return the log from a byte offset on, empty if there is none."""
    if not log_path.exists():
        return ""
    with log_path.open("rb") as log:
        log.seek(since)
        return log.read().decode(errors="replace")


def tail(log: str, lines: int) -> str:
    """Return the last lines."""
    return "\n".join(log.splitlines()[-lines:])


def failure(log: str, *, lines: int = 20, causes: int = 10) -> str:
    """Return the last lines, and before them the errors further up.

    A broker that cannot start shuts its parts down cleanly and at length: its last lines alone do
    not say why it ended.
    """
    earlier = log.splitlines()[:-lines]
    telling = list(dict.fromkeys(line for line in earlier if _CAUSE.match(line)))
    return "\n".join([*telling[:causes], tail(log, lines)])


def says_port_taken(log: str) -> bool:
    """Return whether a listener could not be opened (`SocketServer`'s message)."""
    return _PORT_TAKEN.search(log) is not None
