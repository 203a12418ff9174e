"""The command `groupwright groups`: all groups of a cluster."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._connection import BootstrapServers, ConfigFile, Timeout, connection_settings
from groupwright.cli._exit import ExitStatus, errors_reported
from groupwright.cli._output import Column, Output, OutputFormat, print_rows

if TYPE_CHECKING:
    from groupwright.cli._cluster.lag import GroupLag
    from groupwright.cli._cluster.model import ListedGroup

COLUMNS = (
    Column("group", "GROUP"),
    Column("type", "TYPE"),
    Column("state", "STATE"),
    Column("assignor", "ASSIGNOR"),
    Column("members", "MEMBERS", is_number=True),
    Column("partitions", "PARTITIONS", is_number=True),
    Column("lag", "LAG", is_number=True),
    Column("coordinator", "COORDINATOR", is_number=True),
)


class Order(StrEnum):
    """Column by which the groups are sorted."""

    GROUP = "group"
    LAG = "lag"
    MEMBERS = "members"
    STATE = "state"


def groups(
    pattern: Annotated[
        str, typer.Argument(metavar="[PATTERN]", help="Only groups whose name matches, such as 'orders-*'.")
    ] = "*",
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="Only groups in this state, such as Stable; repeatable."),
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only groups of this type: classic, consumer, share or streams; repeatable.",
        ),
    ] = None,
    sort: Annotated[Order, typer.Option(help="Column to sort by; numbers descend.")] = Order.GROUP,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the groups of a cluster: state, assignor, members and lag.

    The lag is the sum over all partitions with a committed offset. Groups that these credentials may not
    describe are not listed by the brokers.

    Examples:
    groupwright groups --bootstrap-servers localhost:9092

    groupwright groups 'billing-*' --state Stable --sort lag --output csv
    """
    from groupwright.cli._cluster.client import Cluster  # noqa: PLC0415 - `groupwright --help` needs none
    from groupwright.cli._cluster.lag import lag_of_groups  # noqa: PLC0415 - as above

    with (
        errors_reported("groups"),
        Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster,
    ):
        listed, silent = cluster.groups()
        chosen = select(listed, pattern, state or [], type_ or [])
        lags = lag_of_groups(cluster, cluster.describe([each.id for each in chosen]))
        print_rows(sorted_rows(lags.values(), sort), COLUMNS, output)
    for broker, reason in silent.items():
        typer.echo(f"groupwright groups: broker {broker} did not list its groups: {reason}", err=True)
    raise typer.Exit(ExitStatus.INCOMPLETE if silent else ExitStatus.OK)


def select(
    listed: Iterable["ListedGroup"], pattern: str, states: Sequence[str], types: Sequence[str]
) -> list["ListedGroup"]:
    """Return the groups that match; states and types are compared without case."""
    wanted_states, wanted_types = {each.lower() for each in states}, {each.lower() for each in types}
    return [
        group
        for group in listed
        if fnmatchcase(group.id, pattern)
        and (not wanted_states or group.state.lower() in wanted_states)
        and (not wanted_types or group.type.value in wanted_types)
    ]


def sorted_rows(lags: Iterable["GroupLag"], order: Order) -> list[dict[str, Any]]:
    """Return the rows of the table. Groups whose number is not known come last."""
    rows = [_row(each) for each in lags]
    if order in (Order.LAG, Order.MEMBERS):
        known = order.value
        return sorted(rows, key=lambda row: (row[known] is None, -(row[known] or 0), row["group"]))
    return sorted(rows, key=lambda row: (row[order.value], row["group"]))


def _row(lag: "GroupLag") -> dict[str, Any]:
    group = lag.group
    return {
        "group": group.id,
        "type": group.type.value,
        "state": group.state,
        "assignor": group.assignor or None,
        "members": len(group.members),
        "partitions": sum(each.owner is not None for each in lag.partitions),
        "lag": lag.total,
        "coordinator": group.coordinator.id,
    }
