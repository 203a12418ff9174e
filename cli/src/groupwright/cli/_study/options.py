"""Options of commands that study a group, the group that they name, and what is not known of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.cli._cluster.completion import complete_group
from groupwright.cli._command_line.connection import connection_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.text import harmless
from groupwright.cli._study.weights_option import WeightsOption

if TYPE_CHECKING:
    from groupwright.cli._study.model import OpenedGroup

GroupName = Annotated[
    str | None,
    typer.Argument(
        metavar="GROUP", autocompletion=complete_group, help="Name of the group, unless it is in a --file."
    ),
]
GroupFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Study the group in this file, not one of a cluster.",
        show_default=False,
    ),
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
    group: str | None,
    file: Path | None,
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
        found = OpenedGroup(read_study(file), ())
    elif group is None or file is not None:
        raise CommandError(
            "name either a group of the cluster, or a file with one by --file FILE", ExitStatus.USAGE
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
