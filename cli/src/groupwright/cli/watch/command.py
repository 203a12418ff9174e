"""The command `groupwright watch`: one group, live."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._cluster.completion import GroupName
from groupwright.cli._cluster.lookup import find_group
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import errors_reported
from groupwright.cli._command_line.output import Output, OutputFormat, console, is_live

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.watch.reporters import Reporter
    from groupwright.cli.watch.watched_group import WatchedGroup


def watch(
    group: GroupName,
    *,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Time between two snapshots of the group.")
    ] = 1.0,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0, help="End after this time.", show_default="Ctrl-C"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show the group once, and end.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the group exists.")] = False,
    lag_every: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Time between two lines about the lag, if not live."),
    ] = 10.0,
    stalled_after: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Time without a commit after which a partition that lags has no progress.",
        ),
    ] = 15.0,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Watch a group live: its state, members, partitions, lag, and each rebalance as it happens.

    Any group can be watched: brokers are asked, and its members need nothing. Partitions that moved recently
    have a `*`. On a terminal, the group is drawn in place. Elsewhere there is a line for each event; with
    `--output json` a document on each line, and with `--output csv` a row with its time, kind and text.

    If brokers do not respond, the last view stays, and the command goes on when they are back. Ctrl-C ends
    it with status 130, `--for` and `--once` with 0.

    Examples:
    - groupwright watch billing --bootstrap-servers localhost:9092
    - groupwright watch billing --for 600 --output json >> billing.jsonl
    - groupwright watch billing --once
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.watch.watched_group import WatchedGroup

    with (
        errors_reported("watch"),
        _ended_by_sigterm(),
        Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster,
    ):
        watched = WatchedGroup(interval=interval, lag_seconds=lag_every, stalled_seconds=stalled_after)
        _watch(cluster, group, watched, output, interval, seconds, once=once, wait=wait)


def _watch(
    cluster: "Cluster",
    group: str,
    watched: "WatchedGroup",
    output: OutputFormat,
    interval: float,
    seconds: float | None,
    *,
    once: bool,
    wait: bool,
) -> None:
    from groupwright.cli.watch import run

    end = None if seconds is None else run.now() + seconds
    if not wait:
        find_group(cluster, group)
    elif not cluster.describe([group])[group].exists:
        typer.echo(f"groupwright watch: waiting for the group {group!r}", err=True)
        run.wait_for(cluster, group, interval=interval, end=end)
        watched.appear()
    with (
        run.Snapshots(run.GroupReader(cluster, group).take, interval) as snapshots,
        _reporter(group, output, once=once) as reporter,
    ):
        run.watch(snapshots, watched, reporter, interval=interval, end=end, once=once)


def _reporter(group: str, output: OutputFormat, *, once: bool) -> "Reporter":
    from groupwright.cli.watch import reporters as to

    out = console()
    if output is OutputFormat.JSON:
        return to.Lines(to.json_line(group))
    if output is OutputFormat.CSV:
        return to.Lines(to.csv_line(group), to.CSV_HEADER)
    if once:
        return to.Frame(out)
    return to.LiveFrame(out) if is_live(out) else to.Lines(to.line)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, so that the terminal is restored; status 143."""

    def end(number: int, _: Any) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
