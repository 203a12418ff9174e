"""The command `groupwright groups`: all groups of a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Column, Output, OutputFormat, print_notes, print_rows
from groupwright.core.spelling import did_you_mean

if TYPE_CHECKING:
    from groupwright.cli._cluster.lag import GroupLag
    from groupwright.cli._cluster.model import ListedGroup

COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("type", "TYPE", is_optional=True),
    Column("state", "STATE"),
    Column("assignor", "ASSIGNOR", is_name=True),
    Column("members", "MEMBERS", is_number=True),
    Column("partitions", "PARTITIONS", is_number=True, is_optional=True),
    Column("lag", "LAG", is_number=True),
    Column("coordinator", "COORDINATOR", is_number=True, is_optional=True),
)

_TYPES = ("classic", "consumer", "share", "streams")
_STATES = (
    *("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance"),
    *("Assigning", "Reconciling", "NotReady", "Unknown"),
)
"""States of all types of groups, as Kafka names them."""


class Order(StrEnum):
    """Column by which the groups are sorted."""

    GROUP = "group"
    LAG = "lag"
    MEMBERS = "members"
    STATE = "state"


def groups(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Only groups whose name matches, such as 'orders-*'.")
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

    The lag is the sum over all partitions with a committed offset. Offsets beyond the end of a log are named
    below the table, and so are logs whose offsets are not known, such as those without a leader (exit status
    7). Brokers list only the groups that these credentials may describe; with Describe on the cluster all, of
    which the others have dashes.

    Examples:
    - groupwright groups --bootstrap-servers localhost:9092
    - groupwright groups 'billing-*' --state Stable --sort lag --output csv
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.findings import left_out, offset_notes, unknown_notes
    from groupwright.cli._cluster.lag import lag_of_groups

    with (
        errors_reported("groups"),
        Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster,
    ):
        check_known("state", state or [], _STATES)
        check_known("type", type_ or [], _TYPES)
        listed, silent = cluster.groups()
        chosen = select(listed, pattern, state or [], type_ or [])
        described = cluster.describe([each.id for each in chosen], skip_forbidden=True)
        lags = lag_of_groups(cluster, described)
        print_rows(sorted_rows(chosen, lags, sort), COLUMNS, output)
    hidden = [each.id for each in chosen if each.id not in lags]
    print_notes("groups", offset_notes(each for each in lags.values() if each.is_beyond_end))
    print_notes("groups", unknown_notes(each for each in lags.values() if not each.is_beyond_end))
    print_notes("groups", left_out(silent, hidden))
    if not chosen and not silent:
        print_notes("groups", [none_chosen(pattern, [each.id for each in listed])])
    is_incomplete = silent or hidden or any(each.is_incomplete for each in lags.values())
    raise typer.Exit(ExitStatus.INCOMPLETE if is_incomplete else ExitStatus.OK)


def check_known(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Check the values of a filter, without case.

    Raises:
        CommandError: Kafka has no such state or type.
    """
    by_lower = {each.lower(): each for each in known}
    for value in given:
        if value.lower() not in by_lower:
            hint = did_you_mean(value.capitalize() if what == "state" else value.lower(), known)
            advice = f": write one of {', '.join(known)}"
            raise CommandError(f"there is no {what} {value!r}{hint or advice}", ExitStatus.USAGE)


def none_chosen(pattern: str, known: Sequence[str]) -> str:
    """Return the sentence for an empty table."""
    if not known:
        return "the cluster has no groups, or these credentials may not describe them"
    return f"none of {len(known)} groups matches{did_you_mean(pattern, known)}"


def select(
    listed: Iterable["ListedGroup"], pattern: str, states: Sequence[str], types: Sequence[str]
) -> list["ListedGroup"]:
    """Return the groups that match; states and types are compared without case."""
    wanted_states, wanted_types = {each.lower() for each in states}, {each.lower() for each in types}
    return [
        group
        for group in listed
        if (group.id == pattern or fnmatchcase(group.id, pattern))
        and (not wanted_states or group.state.lower() in wanted_states)
        and (not wanted_types or group.type.value in wanted_types)
    ]


def sorted_rows(
    chosen: Iterable["ListedGroup"], lags: Mapping[str, "GroupLag"], order: Order
) -> list[dict[str, Any]]:
    """Return the rows of the table. Groups whose number is not known come last.

    Args:
        chosen: The groups.
        lags: Those that may be described, by their names.
        order: The column.
    """
    rows = [_row(lags[each.id]) if each.id in lags else _listed_row(each) for each in chosen]
    if order in (Order.LAG, Order.MEMBERS):
        known = order.value
        return sorted(rows, key=lambda row: (row[known] is None, -(row[known] or 0), row["group"]))
    return sorted(rows, key=lambda row: (row[order.value], row["group"]))


def _listed_row(group: "ListedGroup") -> dict[str, Any]:
    return {
        "group": group.id,
        "type": group.type.value,
        "state": group.state,
        "members": None,
        "lag": None,
        "coordinator": group.coordinator,
    }


def _row(lag: "GroupLag") -> dict[str, Any]:
    group = lag.group
    return {
        "group": group.id,
        "type": group.type.value,
        "state": group.state,
        "assignor": group.assignor or None,
        "members": len(group.members),
        "partitions": sum(each.is_read for each in lag.partitions),
        "lag": lag.total,
        "coordinator": group.coordinator.id,
    }
