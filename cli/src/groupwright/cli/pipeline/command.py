"""The commands `groupwright pipeline ...`, which start Spark on this machine.

On a cluster, `spark-submit` runs the same jobs with `groupwright.pipeline.main`.
"""

import logging
import socket
import tempfile
import time
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.help import Command, CommandGroup
from groupwright.core import GroupwrightError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from groupwright.pipeline.jobs import Progress, Settings

pipeline = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Tables of every consumer group's rebalances, lag and churn, on Spark.",
)


class Client(StrEnum):
    """The client libraries that are simulated."""

    LIBRDKAFKA = "librdkafka"
    JAVA = "java"


_NO_CLUSTER = "bootstrap_servers=none"
"""Placeholder of a required setting, for commands that read the tables alone."""

_CONNECT_SECONDS = 4.0
"""Time within which a broker accepts a connection."""

_EXTRA = {"jgo", "jinja2", "numpy", "pandas", "py4j", "pyarrow", "pyspark"}
"""Packages of the extra `pipeline`."""

Values = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Settings, which override the file's; see the README of pipeline."
    ),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", exists=True, dir_okay=False, help="TOML file with settings.")
]


@pipeline.command(cls=Command)
def stream(values: Values = None, *, config: Config = None) -> None:
    """Keep the tables up to date with a cluster, until Ctrl-C or SIGTERM.

    groupwright pipeline stream bootstrap_servers=localhost:9092 tables=./tables
    """
    with _pipeline("stream", values, config, needs_broker=True, ends=False) as (spark, settings):
        from groupwright.pipeline.jobs import run_stream
        from groupwright.pipeline.main import stop_on_signals

        run_stream(spark, settings, stop_on_signals(), typer.echo)


@pipeline.command(cls=Command)
def batch(values: Values = None, *, config: Config = None) -> None:
    """Bring the tables up to a time or to offsets, starting where they end.

    groupwright pipeline batch bootstrap_servers=localhost:9092 tables=./tables end=2026-11-21T08:00:00Z
    """
    with _pipeline("batch", values, config, needs_broker=True) as (spark, settings):
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        from groupwright.pipeline.jobs import run_batch

        columns = (BarColumn(), MofNCompleteColumn(), "offsets", TimeRemainingColumn())
        with Bar(*columns) as bar:
            task = bar.add_task("", total=None)

            def show(progress: "Progress") -> None:
                bar.update(task, completed=progress.done, total=progress.total)

            added = run_batch(spark, settings, show)
        typer.echo(f"{added:,} records added")


@pipeline.command("what-if", cls=Command)
def what_if(
    values: Values = None,
    *,
    assignor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A built-in assignor, `broker:uniform`, `broker:range`, `java:sticky`, "
            "`java:cooperative-sticky`, or `package.module:Class`; repeatable. By default those of "
            "Kafka's clients, and `broker:uniform` and Java's if the history is small.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the what-if tables to this folder, as Parquet."),
    ] = None,
    config: Config = None,
) -> None:
    """Replay the groups' history with other assignors, and print what they would have stopped and moved.

    groupwright pipeline what-if tables=./tables --assignor range --assignor cooperative-sticky
    """
    with _pipeline("what-if", [_NO_CLUSTER, *(values or ())], config) as (spark, settings):
        from groupwright.cli.pipeline.reading import print_what_if

        print_what_if(spark, settings, assignor, out)


@pipeline.command("deploys", cls=Command)
def deploys(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")],
    values: Values = None,
    *,
    client: Annotated[
        Client, typer.Option(help="The consumers' client library, whose behaviour differs.")
    ] = Client.LIBRDKAFKA,
    config: Config = None,
) -> None:
    """Simulate deploys and crashes of a group, with its present settings and with others.

    The settings are static membership, other session timeouts, and cooperative-sticky. The group's size,
    assignor and timeouts are those of its last generation in the tables.

    groupwright pipeline deploys billing tables=./tables
    """
    with _pipeline("deploys", [_NO_CLUSTER, *(values or ())], config) as (spark, settings):
        from groupwright.cli.pipeline.deploys import print_deploys
        from groupwright.pipeline.jobs import read_history

        with read_history(spark, settings) as tables:
            print_deploys(tables, group, client.value)


@pipeline.command(cls=Command)
def report(
    values: Values = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the page.")] = Path("report.html"),
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Group with a section of its own; repeatable; by default the 5 with the most rebalances.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start of the range to show, as an ISO 8601 time.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the range to show, exclusive.")
    ] = None,
    deploy: Annotated[
        str | None, typer.Option(metavar="TIME", help="Compare the hours before and after a deploy.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, metavar="N", help="Hours on each side of the deploy.")
    ] = 24.0,
    before: Annotated[
        str | None, typer.Option(metavar="TIME/TIME", help="First range of a comparison, with --after.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME/TIME", help="Second range of a comparison, with --before.")
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="Add simulated deploys of this group, as `deploys` prints them."),
    ] = None,
    assignor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Assignor of the what-if section; repeatable; `none` leaves the section out."
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Write a self-contained HTML report of the tables.

    groupwright pipeline report tables=./tables --out report.html

    groupwright pipeline report tables=./tables --deploy 2026-11-21T08:00Z --hours 12
    """
    with _errors_in_one_line("report"):
        from groupwright.cli.pipeline.reading import ReportOptions, make_report

        options = ReportOptions.of(
            groups=group or (),
            since=since,
            until=until,
            deploy=deploy,
            hours=hours,
            before=before,
            after=after,
            simulate=simulate,
            assignors=assignor,
        )
    with _pipeline("report", [_NO_CLUSTER, *(values or ())], config) as (spark, settings):
        typer.echo(f"{make_report(spark, settings, options, out)}")


@pipeline.command(cls=Command)
def export(
    values: Values = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files, one folder a table.")],
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Table to write; repeatable; by default all."),
    ] = None,
    config: Config = None,
) -> None:
    """Write tables as plain Parquet, for readers of neither Delta nor Iceberg.

    groupwright pipeline export tables=./tables --table rebalances --out exported
    """
    with _errors_in_one_line("export"):
        from groupwright.cli.pipeline.reading import export_tables, known_tables

        names = known_tables(table)
    with _pipeline("export", [_NO_CLUSTER, *(values or ())], config) as (spark, settings):
        export_tables(spark, settings, names, out)


@pipeline.command(cls=Command)
def demo(
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New or empty folder for the tables and the page; by default a temporary one.",
        ),
    ] = None,
    messages_per_second: Annotated[
        int, typer.Option(min=1, max=5_000, metavar="N", help="Messages per second and topic.")
    ] = 100,
    flaps: Annotated[int, typer.Option(hidden=True, min=0)] = 5,
) -> None:
    """Run rebalancing groups on a real Kafka and write their tables and a report (1-2 minutes).

    Kafka and Spark run on this machine, bound to 127.0.0.1, without containers or an installed Java. The
    first run downloads Kafka and Spark's connectors (100 MB).
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"{out} is not an empty folder: choose another one with --out")
    with _errors_in_one_line("demo"):
        from rich.console import Console

        from groupwright.cli.pipeline.demo.run import Options, run

        folder = out or Path(tempfile.mkdtemp(prefix="groupwright-demo-"))
        found = run(Options(folder, flaps, messages_per_second), Console(highlight=False))
    raise typer.Exit(0 if found else 1)


@contextmanager
def _pipeline(
    job: str,
    values: list[str] | None,
    config: Path | None,
    *,
    needs_broker: bool = False,
    ends: bool = True,
) -> "Iterator[tuple[SparkSession, Settings]]":
    """Read the settings and start Spark, for a job that ends by itself or one that does not."""
    with _errors_in_one_line(job):
        from groupwright.pipeline import jobs

        settings = jobs.settings_from(values or (), config)
        if needs_broker:
            _require_broker(settings.bootstrap_servers)
        chosen = {**(jobs.settings_for(settings) if ends else {}), **settings.spark}
        session = jobs.local_session(f"groupwright {job}", format_=settings.format, settings=chosen)
        with session as spark:
            yield spark, settings


@contextmanager
def _errors_in_one_line(job: str) -> "Iterator[None]":
    """Print errors in one line, and exit with their status; with 2 if packages are missing."""
    logging.basicConfig(level=logging.WARNING, format="groupwright pipeline: %(message)s")
    try:
        yield
    except ImportError as error:
        package = (getattr(error.__cause__ or error, "name", None) or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        typer.echo(
            f"groupwright pipeline: {package} is missing: pip install 'groupwright[pipeline]'", err=True
        )
        raise typer.Exit(ExitStatus.USAGE) from None
    except GroupwrightError as error:
        typer.echo(f"groupwright pipeline {job}: {error}", err=True)
        raise typer.Exit(status_of(error)) from None


def status_of(error: GroupwrightError) -> ExitStatus:
    """Return the exit status of an error."""
    from groupwright.assignors import AssignorError, InvalidInputError
    from groupwright.pipeline.errors import SettingsError, UnreachableError

    match error:
        case CommandError():
            return error.status
        case AssignorError() | InvalidInputError() | SettingsError():
            return ExitStatus.USAGE
        case UnreachableError():
            return ExitStatus.UNREACHABLE
    return ExitStatus.FINDINGS


def _require_broker(bootstrap_servers: str) -> None:
    """Check that a broker accepts connections before Spark starts, whose Kafka client tries for a minute.

    Raises:
        CommandError: None does.
    """
    deadline = time.monotonic() + _CONNECT_SECONDS
    failures = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition("//")[2].rpartition(":")
        left = max(deadline - time.monotonic(), 0.1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), left).close()
        except (OverflowError, ValueError):
            return  # Kafka's client says what is wrong with the address
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
        else:
            return
    raise CommandError(
        f"no broker can be reached ({'; '.join(failures)}). Check bootstrap_servers, and that a broker runs "
        "there",
        ExitStatus.UNREACHABLE,
    )
