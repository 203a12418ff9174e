"""The command `groupwright migrate`: how a group goes over to KIP-848, and back."""

from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.cli._cluster.completion import complete_group
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Output, OutputFormat
from groupwright.cli._study.weights_option import WeightsOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.migrate.plan import Brokers


def migrate(
    group: Annotated[
        str, typer.Argument(metavar="GROUP", autocompletion=complete_group, help="Name of the group.")
    ],
    *,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Say how a group goes over to the protocol of KIP-848 (group.protocol=consumer), and back.

    Looks at what the coordinator checks when the first member of KIP-848 joins, computes what the broker's
    assignors would do with the group, and lists the steps. While members of both protocols are in the group,
    it says which have gone over. Changes nothing and joins no group.

    Examples:
    - groupwright migrate billing --bootstrap-servers localhost:9092
    - groupwright migrate billing --output json

    The exit status is 0 also if only a full stop is possible (`way` in JSON), 1 if the group cannot go over
    before something has changed, and 7 if the broker's settings may not be read.
    """
    from groupwright.cli._study.live import read_live
    from groupwright.cli._study.options import warn
    from groupwright.cli.migrate.plan import Way, make_plan
    from groupwright.cli.migrate.report import print_plan

    with errors_reported("migrate"):
        settings = connection_settings(bootstrap_servers, config)
        from groupwright.cli._cluster.client import Cluster

        with Cluster(settings, timeout=timeout) as cluster:
            live = read_live(cluster, group, WeightsOption.NONE, patience=timeout)
            brokers, missing = _ask(cluster, group)
        plan = make_plan(live.study, brokers)
        print_plan(live.study, plan, output)
        status = warn("migrate", [*live.warnings, *missing])
    raise typer.Exit(ExitStatus.FINDINGS if plan.way is Way.NONE else status)


def _ask(cluster: "Cluster", group: str) -> "tuple[Brokers, list[tuple[str, ExitStatus]]]":
    from groupwright.cli._cluster.lookup import find_group
    from groupwright.cli.migrate.plan import Brokers

    serves = cluster.serves_consumer_protocol(group)
    coordinator = find_group(cluster, group).coordinator.id
    missing: list[tuple[str, ExitStatus]] = []

    def settings(ask: "Callable[[], dict[str, str]]") -> dict[str, str] | None:
        try:
            return ask()
        except CommandError as error:
            if error.status is not ExitStatus.FORBIDDEN:
                raise
            missing.append((str(error), ExitStatus.INCOMPLETE))
            return None

    of_broker = settings(lambda: cluster.broker_settings(coordinator))
    of_group = settings(lambda: cluster.group_settings(group)) if serves else None
    return Brokers(serves, of_broker, of_group), missing
