"""The Typer app: global options, and the commands, each from its own module or package."""

from importlib import metadata
from typing import Annotated

import typer

from groupwright.cli.demo.command import demo
from groupwright.cli.describe import describe
from groupwright.cli.doctor.command import doctor
from groupwright.cli.explain import explain
from groupwright.cli.exporter import exporter
from groupwright.cli.groups import groups
from groupwright.cli.lag import lag
from groupwright.cli.locate import locate
from groupwright.cli.offsets.command import offsets
from groupwright.cli.pipeline import app as pipeline
from groupwright.cli.simulate import simulate
from groupwright.cli.watch import watch

app = typer.Typer(
    add_completion=True,
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
    """Kafka consumer groups: pluggable assignors, and metrics of every rebalance."""


app.command()(demo)
app.command()(describe)
app.command()(doctor)
app.command()(explain)
app.command()(exporter)
app.command()(groups)
app.command()(lag)
app.command()(locate)
app.command()(offsets)
app.command()(simulate)
app.command()(watch)
app.add_typer(pipeline, name="pipeline")
