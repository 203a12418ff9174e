"""The command `groupwright completion`: a shell's script that completes the command line."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined] # typer imports it there

_PROGRAM = "groupwright"


class Shell(StrEnum):
    """A shell whose command line can be completed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a script that completes commands, options, their values, and the names of groups.

    Names of groups come from the cluster that the command line or the environment names.

    Examples:
    - source <(groupwright completion bash)
    - source <(groupwright completion zsh)
    - groupwright completion fish | source
    """
    script = get_completion_script(
        prog_name=_PROGRAM, complete_var=f"_{_PROGRAM.upper()}_COMPLETE", shell=shell.value
    )
    typer.echo(script)
