"""The command `groupwright exporter`: metrics of every group of a cluster, for Prometheus."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported

if TYPE_CHECKING:
    from groupwright.cli.exporter.limits import Patterns


class SourceName(StrEnum):
    """Source of committed offsets."""

    ADMIN = "admin"
    OFFSETS_TOPIC = "offsets-topic"


def exporter(
    *,
    source: Annotated[
        SourceName,
        typer.Option(
            help="Where committed offsets come from: requests to brokers, or the records of "
            "`__consumer_offsets`, which also have the generations of classic groups (needs the extra "
            "`pipeline`)."
        ),
    ] = SourceName.ADMIN,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Time between two refreshes.")
    ] = 30.0,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any.")
    ] = 9095,
    by_partition: Annotated[
        bool, typer.Option("--by-partition", help="Also show the lag of each partition.")
    ] = False,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="REGEX", help="Groups to show, by whole names; may be repeated."),
    ] = None,
    exclude_groups: Annotated[
        list[str] | None,
        typer.Option("--exclude-group", metavar="REGEX", help="Groups to leave out; may be repeated."),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="REGEX", help="Topics to show, by whole names; may be repeated."),
    ] = None,
    exclude_topics: Annotated[
        list[str] | None,
        typer.Option("--exclude-topic", metavar="REGEX", help="Topics to leave out; may be repeated."),
    ] = None,
    max_groups: Annotated[int, typer.Option(metavar="N", min=1, help="The most groups to show.")] = 2000,
    max_series: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most series of groups, topics and partitions.")
    ] = 100_000,
    stuck_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Time without the end of a rebalance, or without a commit, after which a group is stuck.",
        ),
    ] = 300.0,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
) -> None:
    """Serve metrics of every group of a cluster to Prometheus, without instrumented clients.

    The path is /metrics; /ready responds with 200 once a refresh has succeeded, and /healthy always.

    Examples:
    - groupwright exporter --bootstrap-servers localhost:9092
    - groupwright exporter --group 'billing-.*' --exclude-topic '__.*' --by-partition
    """
    from groupwright.cli.exporter.limits import GroupLimit
    from groupwright.cli.exporter.run import run
    from groupwright.cli.exporter.state import Options

    with errors_reported("exporter"):
        settings = connection_settings(bootstrap_servers, config)
        run(
            settings,
            source,
            GroupLimit(_patterns("group", groups, exclude_groups), max_groups),
            Options(
                topics=_patterns("topic", topics, exclude_topics),
                by_partition=by_partition,
                max_series=max_series,
                stuck_seconds=stuck_seconds,
            ),
            interval=interval,
            address=(host, port),
            timeout=timeout,
        )


def _patterns(of: str, include: list[str] | None, exclude: list[str] | None) -> "Patterns":
    from groupwright.cli.exporter.limits import Patterns

    try:
        return Patterns.of(include or (), exclude or ())
    except re.error as error:
        raise CommandError(
            f"--{of} or --exclude-{of}: {error.pattern!r} is not a regular expression: {error}",
            ExitStatus.USAGE,
        ) from None
