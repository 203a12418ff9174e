"""Completion of the names of groups, asked of the cluster that the command line names so far."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from groupwright.cli._command_line.connection import connection_settings
from groupwright.core import GroupwrightError

_TIMEOUT = 2.0
"""Seconds for each request: a shell waits for the names."""
_HARMLESS = re.compile(r"[\w.][\w.:@+,/-]*")
"""Names in which no shell sees anything but a word. Zsh evaluates the names, and Bash puts them on the
command line as they are, so that a group named `$(...)` would run a command."""


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Return the groups whose names begin with a text; none if the cluster cannot be asked.

    Names with characters that mean something to a shell are left out.

    Args:
        context: The command line so far, with its connection and the groups that it names already.
        incomplete: The beginning of the name.
    """
    from groupwright.cli._cluster.client import Cluster

    given: dict[str, Any] = context.params
    try:
        settings = connection_settings(given.get("bootstrap_servers"), _path(given.get("config")))
        with Cluster(settings, timeout=_TIMEOUT) as cluster:
            listed, _ = cluster.groups()
    except GroupwrightError:
        return []  # a shell has no place for the reason
    named = given.get("groups") or ()
    return [
        name
        for name in completable(each.id for each in listed)
        if name.startswith(incomplete) and name not in named
    ]


def completable(names: Iterable[str]) -> list[str]:
    """Return the names that a shell takes as one word, whatever it does with them."""
    return [name for name in names if _HARMLESS.fullmatch(name)]


GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", autocompletion=complete_group, help="Name of the group.")
]


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)
