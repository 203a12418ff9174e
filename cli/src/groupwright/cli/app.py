"""The Typer app: global options, and the commands, each from the package of its name.

A command imports what it needs when it runs: `groupwright --help` and completion stay fast, and a missing
extra concerns only the commands that need it.
"""

from importlib import metadata
from typing import Annotated

import typer

from groupwright.cli._command_line.help import Command, CommandGroup
from groupwright.cli.completion.command import completion, enable_completion
from groupwright.cli.demo.command import demo
from groupwright.cli.describe.command import describe
from groupwright.cli.doctor.command import doctor
from groupwright.cli.explain.command import explain
from groupwright.cli.exporter.command import exporter
from groupwright.cli.groups.command import groups
from groupwright.cli.lag.command import lag
from groupwright.cli.locate.command import locate
from groupwright.cli.offsets.command import offsets
from groupwright.cli.pipeline.command import app as pipeline
from groupwright.cli.simulate.command import simulate
from groupwright.cli.watch.command import watch

app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,  # the command `completion` names the shell
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - an option's callback
    if wanted:
        typer.echo(f"groupwright {metadata.version('groupwright')}")
        raise typer.Exit


@app.callback()
def groupwright(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """See, explain and repair the consumer groups of a Kafka cluster.

    Commands on a cluster take its address and security from --bootstrap-servers or --config, or else from the
    environment variables GROUPWRIGHT_BOOTSTRAP_SERVERS and GROUPWRIGHT_CONFIG.

    Exit status: 0 success; 1 warnings or a failed check; 2 wrong arguments or configuration; 3 no broker
    responds; 4 no such group or topic; 5 not allowed; 6 refused by the state of the group; 7 done or known in
    part; 8 the output cannot be written; 130 Ctrl-C; 141 the reader of the output closed the pipe.
    """


for _command in (
    *(groups, describe, watch, lag, locate, offsets),
    *(simulate, explain, doctor, exporter, demo),
):
    app.command(cls=Command)(_command)
app.add_typer(pipeline, name="pipeline")
app.command(cls=Command)(completion)
enable_completion()
