"""The command `groupwright locate`: the coordinator of a group."""

from typing import Annotated, Any

import typer

from groupwright.cli._cluster.completion import complete_group
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Column, Output, OutputFormat, print_rows
from groupwright.core.hash_order import java_hash
from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for

COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("hash", "HASH", is_number=True),
    Column("partition", "PARTITION", is_number=True),
    Column("partitions", "OF", is_number=True),
    Column("broker", "BROKER", is_number=True),
    Column("host", "HOST", is_name=True),
    Column("port", "PORT", is_number=True),
)

_COMPUTED = 4
"""Columns that need no broker."""


def locate(
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP", autocompletion=complete_group, help="Names of groups; they need not exist."
        ),
    ],
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Partitions of {OFFSETS_TOPIC}, to compute without a broker.",
            show_default=False,
        ),
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Find the partition of `__consumer_offsets` that holds a group, and its coordinator.

    The partition is the hash of the group's name (Java's String.hashCode), modulo the number of partitions of
    `__consumer_offsets`. The coordinator is the leader of this partition.

    Examples:
    - groupwright locate billing --bootstrap-servers localhost:9092
    - groupwright locate billing orders --partitions 50
    """
    with errors_reported("locate"):
        if partitions is not None:
            rows = [located(group, partitions) for group in groups]
        else:
            rows = _ask(groups, connection_settings(bootstrap_servers, config), timeout)
        is_short = partitions is not None and output is OutputFormat.TABLE
        print_rows(rows, COLUMNS[:_COMPUTED] if is_short else COLUMNS, output)


def located(group: str, partitions: int) -> dict[str, Any]:
    """Return the row of a group, without the broker."""
    return {
        "group": group,
        "hash": java_hash(group),
        "partition": partition_for(group, partitions),
        "partitions": partitions,
    }


def _ask(groups: list[str], settings: dict[str, Any], timeout: float) -> list[dict[str, Any]]:
    from groupwright.cli._cluster.client import Cluster

    with Cluster(settings, timeout=timeout) as cluster:
        topic = cluster.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if topic is None:
            raise CommandError(
                f"the cluster has no topic {OFFSETS_TOPIC} yet, or these credentials may not see it: brokers "
                "create it when the first group is used. Pass --partitions to compute without it",
                ExitStatus.NOT_FOUND,
            )
        brokers = cluster.brokers()
        rows = []
        for group in groups:
            row = located(group, topic.partitions)
            broker = brokers.get(topic.leaders[row["partition"]])
            if broker is not None:
                row |= {"broker": broker.id, "host": broker.host, "port": broker.port}
            rows.append(row)
    return rows
