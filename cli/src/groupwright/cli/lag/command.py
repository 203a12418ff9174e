"""The command `groupwright lag`: how far groups are behind, in messages and in seconds."""

import time
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._cluster.completion import complete_group
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import ExitStatus, errors_reported
from groupwright.cli._command_line.output import Column, Output, OutputFormat, few, print_notes, print_rows
from groupwright.cli._command_line.suggest import unknown_group
from groupwright.cli._command_line.text import harmless

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.lag import GroupLag, PartitionLag
    from groupwright.cli._cluster.record_times import RecordKey

_CLOCK_SKEW = 10.0
"""Seconds by which the clocks of producers, brokers and this machine may differ."""
_GROUP = Column("group", "GROUP")
_TOPIC = Column("topic", "TOPIC")
_NUMBERS = (Column("messages", "MESSAGES", is_number=True), Column("seconds", "SECONDS", is_number=True))


class By(StrEnum):
    """Subject of a row."""

    GROUP = "group"
    TOPIC = "topic"
    PARTITION = "partition"


COLUMNS = {
    By.GROUP: (_GROUP, *_NUMBERS),
    By.TOPIC: (_GROUP, _TOPIC, *_NUMBERS),
    By.PARTITION: (
        *(_GROUP, _TOPIC, Column("partition", "PARTITION", is_number=True), *_NUMBERS),
        Column("member", "MEMBER"),
    ),
}


def lag(
    groups: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GROUP", autocompletion=complete_group, help="Names of groups; all by default."
        ),
    ] = None,
    *,
    by: Annotated[By, typer.Option(help="What a row stands for.")] = By.GROUP,
    seconds: Annotated[
        bool,
        typer.Option(help="Read one message of each partition that lags, for its timestamp."),
    ] = True,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show how far groups are behind, in messages and in seconds, the largest lag first.

    Seconds are the age of the oldest message that is not committed yet; 0 without any. What is not known is a
    dash, and null in JSON. Partitions without a committed offset, or with one beyond the end of the log,
    count for nothing; where the others make a number, they are named below the table. With --by partition,
    each row also has the member that is assigned the partition.

    Examples:
    - groupwright lag --bootstrap-servers localhost:9092
    - groupwright lag billing --by partition --output csv
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.findings import offset_notes
    from groupwright.cli._cluster.lag import lag_of_groups
    from groupwright.cli._cluster.record_times import record_times

    with errors_reported("lag"):
        settings = connection_settings(bootstrap_servers, config)
        with Cluster(settings, timeout=timeout) as cluster:
            listed, silent = cluster.groups()
            _check_exist(groups or [], cluster, [each.id for each in listed])
            if groups:
                described = cluster.describe(groups)
            else:
                described = cluster.describe([each.id for each in listed], skip_forbidden=True)
            lags = lag_of_groups(cluster, described)
            times = record_times(settings, _first_unread(lags.values()), timeout) if seconds else {}
        now = time.time()
        print_rows(rows(lags.values(), times, now, by), COLUMNS[by], output)
    print_notes("lag", [*offset_notes(lags.values()), *future_notes(lags.values(), times, now)])
    for broker, reason in silent.items():
        typer.echo(f"groupwright lag: broker {broker} did not list its groups: {reason}", err=True)
    hidden = [] if groups else [each.id for each in listed if each.id not in lags]
    if hidden:
        typer.echo(f"groupwright lag: these credentials may not describe {harmless(few(hidden))}", err=True)
    raise typer.Exit(ExitStatus.INCOMPLETE if silent or hidden else ExitStatus.OK)


def _check_exist(wanted: Iterable[str], cluster: "Cluster", known: list[str]) -> None:
    for group in wanted:
        if group not in known and not cluster.describe([group])[group].exists:
            raise unknown_group(group, known)


def _first_unread(lags: Iterable["GroupLag"]) -> set["RecordKey"]:
    return {_unread(each) for lag in lags for each in lag.partitions if each.lag}


def _unread(lag: "PartitionLag") -> "RecordKey":
    """Return the first offset of a partition that is not committed and still in the log."""
    return lag.topic, lag.partition, max(lag.committed or 0, lag.begin or 0)


def rows(
    lags: Iterable["GroupLag"], times: Mapping["RecordKey", float], now: float, by: By
) -> list[dict[str, Any]]:
    """Return the rows of the table, the largest lag first.

    Args:
        lags: The groups.
        times: Timestamps of the first messages that are not committed, as far as they are known.
        now: The time in seconds since the epoch.
        by: What a row stands for.
    """
    sums: dict[tuple[Any, ...], tuple[int | None, float | None]] = {}
    owners: dict[tuple[Any, ...], str] = {}
    unknown: set[tuple[Any, ...]] = set()
    for lag in lags:
        names = member_names(lag.group.members)
        if by is By.GROUP:
            sums[(lag.group.id,)] = None, None
        for each in lag.partitions:
            key = {
                By.GROUP: (lag.group.id,),
                By.TOPIC: (lag.group.id, each.topic),
                By.PARTITION: (lag.group.id, each.topic, each.partition),
            }[by]
            messages, seconds = sums.get(key, (None, None))
            of_partition = _seconds(each, times, now)
            sums[key] = _sum(messages, each.lag), _max(seconds, of_partition)
            if of_partition is None and each.may_lag:
                unknown.add(key)
            if by is By.PARTITION and each.owner is not None:
                owners[key] = names[each.owner.id]
    for key in unknown:
        messages, seconds = sums[key]
        sums[key] = messages, seconds or None  # 0 would say that there is no lag
    columns = [column.key for column in COLUMNS[by]]
    ordered = sorted(
        sums.items(), key=lambda item: (-(item[1][0] if item[1][0] is not None else -1), item[0])
    )
    rows = [dict(zip(columns, (*key, *values), strict=False)) for key, values in ordered]
    if by is By.PARTITION:
        rows = [row | {"member": owners.get(key)} for row, (key, _) in zip(rows, ordered, strict=True)]
    return rows


def _seconds(lag: "PartitionLag", times: Mapping["RecordKey", float], now: float) -> float | None:
    if lag.lag is None:
        return None
    if not lag.lag:
        return 0.0
    time_of_first = times.get(_unread(lag))
    if time_of_first is None or time_of_first > now + _CLOCK_SKEW:
        return None
    return max(0.0, round(now - time_of_first, 3))


def future_notes(lags: Iterable["GroupLag"], times: Mapping["RecordKey", float], now: float) -> Iterator[str]:
    """Yield of which groups a message that is not committed has a timestamp in the future."""
    for lag in lags:
        ahead = [each.name for each in lag.partitions if times.get(_unread(each), now) > now + _CLOCK_SKEW]
        if ahead:
            yield (
                f"{lag.group.id}: The first message of {few(ahead)} that is not committed has a timestamp "
                "in the future, so its age is not known."
            )


def _sum(total: int | None, value: int | None) -> int | None:
    return total if value is None else value + (total or 0)


def _max(largest: float | None, value: float | None) -> float | None:
    return largest if value is None else max(value, largest or 0.0)
