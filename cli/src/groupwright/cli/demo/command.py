"""The command `groupwright demo`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from groupwright.assignors import check_member_assignor
from groupwright.cli._command_line.assignors import ASSIGNOR_NAMES, load_assignor
from groupwright.cli._command_line.connection import client_settings, read_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Output, OutputFormat, console, print_json, print_rows
from groupwright.core import GroupwrightError


def _loadable(assignor: str) -> str:
    try:
        check_member_assignor(load_assignor(assignor))
    except GroupwrightError as error:
        raise typer.BadParameter(str(error)) from None
    return assignor


def demo(
    *,
    assignor: Annotated[
        str,
        typer.Option(
            callback=_loadable,
            metavar="NAME|MODULE:CLASS",
            help=f"The members' assignor: {', '.join(sorted(ASSIGNOR_NAMES))}, or the import path of your "
            "own.",
        ),
    ] = "cooperative-sticky",
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Your own Kafka instead of a local one. The demo's topic is deleted afterwards.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings of the connections to your own Kafka, such as security: .properties, "
            ".json or .toml.",
            show_default=False,
        ),
    ] = None,
    messages_per_second: Annotated[
        int, typer.Option(min=1, max=20_000, metavar="N", help="Messages per second, over all partitions.")
    ] = 300,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep running after the last step, until Ctrl-C.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    pause: Annotated[float, typer.Option(hidden=True, min=0)] = 9.0,
) -> None:
    """Watch a consumer group rebalance on a real Kafka (about a minute, without setup).

    Three consumers share the 12 partitions of a topic, while messages are produced to it. A fourth consumer
    joins, one is killed, one leaves. After each change, every partition must have exactly one owner. No
    message may be lost, and only messages that the killed member had not committed may be consumed twice.
    Otherwise the exit status is 1. With a cooperative assignor, members go on consuming during rebalances:
    the table shows the partitions that they kept, and what they consumed meanwhile.

    With --output json or csv, standard output has the result alone; CSV has a row for each step.

    Examples:
    - groupwright demo
    - groupwright demo --assignor range
    - groupwright demo --assignor mypackage.assignors:MyAssignor --config admin.properties

    Kafka runs on this machine, without containers or an installed Java. The first run downloads it (50 MB).
    Each consumer serves its metrics on 127.0.0.1.
    """
    with errors_reported("demo"):
        connection = _connection(bootstrap_servers, config)
        if connection is None:
            _check_extra()
    from groupwright.cli.demo.interrupts import InterruptedDemo, Interrupts
    from groupwright.cli.demo.runner import Options, run
    from groupwright.cli.demo.view import PlainView, view_for

    options = Options(
        assignor=assignor,
        connection=connection,
        messages_per_second=messages_per_second,
        keep=keep,
        pause=pause,
    )
    is_table = output is OutputFormat.TABLE
    out = console(stderr=not is_table)
    view = view_for(out) if is_table else PlainView(out)
    try:
        with Interrupts() as interrupts, view:
            summary = run(options, view, interrupts)
    except InterruptedDemo as interrupt:
        typer.echo("groupwright demo: stopped; nothing is left running", err=True)
        raise typer.Exit(interrupt.exit_status) from None
    except GroupwrightError as error:
        typer.echo(f"groupwright demo: {error}", err=True)
        raise typer.Exit(error.status if isinstance(error, CommandError) else ExitStatus.FINDINGS) from None
    if is_table:
        view.conclude(summary)
    elif output is OutputFormat.JSON:
        print_json(summary.document())
    else:
        from groupwright.cli.demo.summary import CHANGE_COLUMNS

        print_rows(summary.rows(), CHANGE_COLUMNS, output)
    raise typer.Exit(0 if summary.passed else 1)


def _connection(bootstrap_servers: str | None, config: Path | None) -> dict[str, Any] | None:
    """Return the settings of the connections to the user's own Kafka; None without one.

    Variables of the environment do not count: the demo creates a topic.
    """
    if bootstrap_servers is None and config is None:
        return None
    settings = read_settings(config) if config is not None else {}
    if bootstrap_servers is not None:
        settings["bootstrap.servers"] = bootstrap_servers
    if not settings.get("bootstrap.servers"):
        raise CommandError(
            f"{config} has no bootstrap.servers: add it, or pass --bootstrap-servers HOST:PORT",
            ExitStatus.USAGE,
        )
    return client_settings(settings)


def _check_extra() -> None:
    """Check that the packages which run Kafka are installed.

    Raises:
        CommandError: The extra `demo` is not installed.
    """
    try:
        from groupwright.testing import LocalKafka  # noqa: F401 - it needs the extra
    except ImportError as error:
        missing = (getattr(error.__cause__ or error, "name", None) or str(error)).partition(".")[0]
        raise CommandError(
            f"its Kafka needs {missing}, which is not installed: pip install 'groupwright[demo]'",
            ExitStatus.USAGE,
        ) from None
