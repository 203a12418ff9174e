"""Options of commands that study a group, the group that they name, and what is not known of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.cli._command_line.connection import connection_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.text import harmless
from groupwright.cli._study.weights_option import WeightsOption

if TYPE_CHECKING:
    from groupwright.cli._study.model import OpenedGroup

GroupFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A group in a file, instead of --group.")
]
GroupName = Annotated[
    str | None, typer.Option(metavar="GROUP", help="Name of a group of the cluster.", show_default=False)
]
Weights = Annotated[
    WeightsOption,
    typer.Option(
        help="Weights of a cluster's partitions: messages per second in the last 5 minutes, messages to "
        "catch up on, the processing times that members of load-aware sent, or none."
    ),
]
SaveFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the group to a new file, for a later study.", show_default=False
    ),
]


def opened(
    file: Path | None,
    group: str | None,
    bootstrap_servers: str | None,
    config: Path | None,
    *,
    timeout: float,
    weights: WeightsOption,
    save: Path | None,
) -> "OpenedGroup":
    """Return the group that a command's options name, and save it if wanted.

    Raises:
        CommandError: Neither or both of a file and a group are named, or it cannot be read.
    """
    from groupwright.cli._study.files import read_study, write_study
    from groupwright.cli._study.model import OpenedGroup

    if file is not None and group is None:
        found = OpenedGroup(read_study(file, "; for a group of a cluster, pass --group NAME"), ())
    elif group is None or file is not None:
        raise CommandError(
            "pass either --group NAME, for a group of the cluster, or a FILE with a group", ExitStatus.USAGE
        )
    else:
        from groupwright.cli._cluster.client import Cluster
        from groupwright.cli._study.live import read_live

        with Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster:
            found = read_live(cluster, group, weights, patience=timeout)
    if save is not None:
        write_study(save, found.study)
    return found


def warn(command: str, warnings: Sequence[tuple[str, ExitStatus]]) -> ExitStatus:
    """Print warnings on standard error, and return their exit status; `INCOMPLETE` for several ones."""
    for sentence, _ in warnings:
        typer.echo(f"groupwright {command}: {harmless(sentence)}", err=True)
    statuses = {status for _, status in warnings}
    if len(statuses) > 1:
        return ExitStatus.INCOMPLETE
    return statuses.pop() if statuses else ExitStatus.OK
