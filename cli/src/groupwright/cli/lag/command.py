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

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.first_messages import FirstMessages, RecordKey
    from groupwright.cli._cluster.lag import GroupLag, PartitionLag

_CLOCK_SKEW = 10.0
"""Seconds by which the clocks of producers, brokers and this machine may differ."""
_GROUP = Column("group", "GROUP", is_name=True)
_TOPIC = Column("topic", "TOPIC", is_name=True)
_HELD = Column("held", "HELD", is_number=True)
_NUMBERS = (
    Column("messages", "MESSAGES", is_number=True),
    Column("seconds", "SECONDS", is_number=True),
    _HELD,
)


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
        Column("member", "MEMBER", is_name=True),
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

    Messages count to the last stable offset, as a consumer with isolation.level=read_committed reads them.
    Those after it, behind open transactions, are HELD. Seconds are the age of the oldest message that is not
    committed yet; 0 without any. What is not known is a dash, and null in JSON. Seconds are not known if a
    partition of the row lags, and the age of its message is not known. Partitions without a committed offset,
    or with one beyond the end of the log, count for nothing; where the others make a number, they are named
    below the table. With --by partition, each row also has the member that is assigned the partition.

    The exit status is 7 if a broker does not respond, a log's offsets are not known, such as without a
    leader, or a message is not read within the timeout. Standard error names them.

    A partition without a message to read has no lag, though markers of transactions and aborted messages may
    follow the committed offset. With --no-seconds nothing is read, so that these offsets count.

    Examples:
    - groupwright lag --bootstrap-servers localhost:9092
    - groupwright lag billing --by partition --output csv
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.drained import uncommitted, with_messages
    from groupwright.cli._cluster.findings import left_out, offset_notes
    from groupwright.cli._cluster.lag import lag_of_groups

    with errors_reported("lag"):
        with Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster:
            listed, silent = cluster.groups()
            _check_exist(groups or [], cluster, [each.id for each in listed])
            if groups:
                described = cluster.describe(groups)
            else:
                described = cluster.describe([each.id for each in listed], skip_forbidden=True)
            lags = lag_of_groups(cluster, described)
            read = cluster.first_messages(uncommitted(lags) if seconds else (), timeout)
            times, lags = read.times, with_messages(lags, read.has_message)
        now = time.time()
        found_rows = rows(lags.values(), times, now, by)
        columns = [
            each for each in COLUMNS[by] if each is not _HELD or any(row["held"] for row in found_rows)
        ]
        print_rows(found_rows, columns if output is OutputFormat.TABLE else COLUMNS[by], output)
    print_notes("lag", [*offset_notes(lags.values()), *future_notes(lags.values(), times, now)])
    if seconds:
        print_notes("lag", unread_notes(lags.values(), read, timeout))
    hidden = [] if groups else [each.id for each in listed if each.id not in lags]
    print_notes("lag", left_out(silent, hidden))
    is_incomplete = silent or hidden or read.late or any(each.is_incomplete for each in lags.values())
    raise typer.Exit(ExitStatus.INCOMPLETE if is_incomplete else ExitStatus.OK)


def _check_exist(wanted: Iterable[str], cluster: "Cluster", known: list[str]) -> None:
    for group in wanted:
        if group not in known and not cluster.describe([group])[group].exists:
            raise unknown_group(group, known)


def rows(
    lags: Iterable["GroupLag"], times: Mapping["RecordKey", float | None], now: float, by: By
) -> list[dict[str, Any]]:
    """Return the rows of the table, the largest lag first.

    Args:
        lags: The groups.
        times: Timestamps of the first messages that are not committed, as far as they are known.
        now: The time in seconds since the epoch.
        by: What a row stands for.
    """
    from groupwright.cli._cluster.lag import total

    sums: dict[tuple[Any, ...], tuple[int | None, float | None, int | None]] = {}
    owners: dict[tuple[Any, ...], str] = {}
    unknown: set[tuple[Any, ...]] = set()
    ageless: set[tuple[Any, ...]] = set()
    for lag in lags:
        names = member_names(lag.group.members)
        if by is By.GROUP:
            sums[(lag.group.id,)] = None, None, None
        for each in lag.partitions:
            key = {
                By.GROUP: (lag.group.id,),
                By.TOPIC: (lag.group.id, each.topic),
                By.PARTITION: (lag.group.id, each.topic, each.partition),
            }[by]
            messages, seconds, held = sums.get(key, (None, None, None))
            of_partition = _seconds(each, times, now)
            sums[key] = total((messages, each.lag)), _max(seconds, of_partition), total((held, each.held))
            if of_partition is None and each.may_lag:
                (ageless if each.lag else unknown).add(key)
            if by is By.PARTITION and each.owner is not None:
                owners[key] = names[each.owner.id]
    for key in unknown | ageless:
        messages, seconds, held = sums[key]
        # The message of unknown age may be the oldest; 0 would say that there is no lag.
        sums[key] = messages, None if key in ageless else seconds or None, held
    columns = [column.key for column in COLUMNS[by]]
    ordered = sorted(
        sums.items(), key=lambda item: (-(item[1][0] if item[1][0] is not None else -1), item[0])
    )
    rows = [dict(zip(columns, (*key, *values), strict=False)) for key, values in ordered]
    if by is By.PARTITION:
        rows = [row | {"member": owners.get(key)} for row, (key, _) in zip(rows, ordered, strict=True)]
    return rows


def _seconds(lag: "PartitionLag", times: Mapping["RecordKey", float | None], now: float) -> float | None:
    if lag.lag is None:
        return None
    if not lag.lag:
        return 0.0
    time_of_first = times.get(lag.first_uncommitted)
    if time_of_first is None or time_of_first > now + _CLOCK_SKEW:
        return None
    return max(0.0, round(now - time_of_first, 3))


def future_notes(
    lags: Iterable["GroupLag"], times: Mapping["RecordKey", float | None], now: float
) -> Iterator[str]:
    """Yield of which groups a message that is not committed has a timestamp in the future."""
    for lag in lags:
        ahead = [
            each.name
            for each in lag.partitions
            if (times.get(each.first_uncommitted) or now) > now + _CLOCK_SKEW
        ]
        if ahead:
            yield (
                f"{lag.group.id}: The first message of {few(ahead)} that is not committed has a timestamp "
                "in the future, so its age is not known."
            )


def unread_notes(lags: Iterable["GroupLag"], read: "FirstMessages", timeout: float) -> Iterator[str]:
    """Yield of which groups a message that is not committed was not read, or has no timestamp.

    Args:
        lags: The groups.
        read: What was read.
        timeout: The time for it, in seconds.
    """
    for lag in lags:
        firsts = {each.first_uncommitted: each.name for each in lag.partitions if each.lag}
        ageless = {first: name for first, name in firsts.items() if read.times.get(first) is None}
        late = [name for first, name in ageless.items() if first in read.late]
        others = [name for first, name in ageless.items() if first not in read.late]
        reasons = {f"was not read within {timeout:g} s": late, "cannot be read, or has no timestamp": others}
        for reason, names in reasons.items():
            if names:
                message = f"The first message of {few(names)} that is not committed {reason}"
                yield f"{lag.group.id}: {message}, so its age is not known."


def _max(largest: float | None, value: float | None) -> float | None:
    return largest if value is None else max(value, largest or 0.0)
