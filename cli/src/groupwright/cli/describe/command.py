"""The command `groupwright describe`: one group, its members and its lag."""

import time
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from groupwright.cli._cluster.completion import GroupName
from groupwright.cli._cluster.lookup import find_group, member_names
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import ExitStatus, errors_reported
from groupwright.cli._command_line.output import (
    Column,
    Output,
    OutputFormat,
    console,
    print_json,
    print_notes,
    print_rows,
    ranges_by_topic,
    table,
)
from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from groupwright.cli._cluster.lag import GroupLag
    from groupwright.cli._cluster.model import DescribedGroup, GroupMember, Partitions

PARTITION_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", is_number=True),
    Column("committed", "COMMITTED", is_number=True),
    Column("end", "END", is_number=True),
    Column("lag", "LAG", is_number=True),
    Column("held", "HELD", is_number=True),
    Column("unreadable", "UNREADABLE", is_number=True),
    Column("member", "MEMBER", is_name=True),
)
_IF_ANY = frozenset({"held", "unreadable"})
"""Columns of partitions that a table has only if one of them is not 0."""
_NAME = Column("name", "MEMBER", is_name=True)
_HOST = Column("host", "HOST", is_name=True)
_OPTIONAL_COLUMNS = (
    Column("client_id", "CLIENT ID", is_optional=True, is_name=True),
    Column("rack", "RACK", is_name=True),
    Column("version", "VERSION", is_number=True, is_optional=True),
    Column("epoch", "EPOCH", is_number=True),
    Column("subscription", "SUBSCRIBES TO"),
)
"""Columns of members that are shown if a member has a value."""
_LAG = Column("lag", "LAG", is_number=True)
_ASSIGNED = Column("assigned", "ASSIGNED")


def describe(
    group: GroupName,
    *,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Describe a group: its findings first, then its coordinator, its members, and the lag of each partition.

    Subscriptions and assignments of a classic group are known only while it is stable. Lag counts to the last
    stable offset; HELD are the messages after it, behind an open transaction, and UNREADABLE the offsets
    after the committed one that have no message to read. CSV has the partitions alone. If the offsets of a
    log are not known, such as without a leader, the exit status is 7.

    Examples:
    - groupwright describe billing --bootstrap-servers localhost:9092
    - groupwright describe billing --output json
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.drained import uncommitted, with_messages
    from groupwright.cli._cluster.findings import findings, unknown_notes
    from groupwright.cli._cluster.lag import lag_of_groups

    with (
        errors_reported("describe"),
        Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster,
    ):
        described = find_group(cluster, group)
        lags = lag_of_groups(cluster, {group: described})
        read = cluster.first_messages(uncommitted(lags), timeout)
        lag = with_messages(lags, read.has_message)[group]
        transactions = cluster.open_transactions() if lag.held else []
        offsets_topic = cluster.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        topics = cluster.topics(
            {topic for member in described.members for topic in member.topics}
            | {each.topic for each in lag.partitions}
        )
        found = findings(lag, topics, transactions, time.time())
        partitions = None if offsets_topic is None else offsets_topic.partitions
        match output:
            case OutputFormat.JSON:
                print_json(document(lag, found, partitions))
            case OutputFormat.CSV:
                print_rows(partition_rows(lag), PARTITION_COLUMNS, output)
            case OutputFormat.TABLE:
                _print(lag, found, partitions)
    if output is OutputFormat.CSV:  # the others have the findings
        print_notes("describe", unknown_notes([lag]))
    raise typer.Exit(ExitStatus.INCOMPLETE if lag.is_incomplete else ExitStatus.OK)


def partition_rows(lag: "GroupLag") -> list[dict[str, Any]]:
    """Return a row for each partition."""
    names = member_names(lag.group.members)
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "committed": each.committed,
            "end": each.end,
            "lag": each.lag,
            "held": each.held,
            "unreadable": each.unreadable,
            "member": None if each.owner is None else names[each.owner.id],
        }
        for each in lag.partitions
    ]


def document(lag: "GroupLag", found: Sequence[str], offsets_partitions: int | None) -> dict[str, Any]:
    """Return the group as a document; see `describe.schema.json`."""
    group = lag.group
    return {
        "group": group.id,
        "type": group.type.value,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "epoch": group.epoch,
        "findings": list(found),
        "coordinator": {
            "broker": group.coordinator.id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
            "offsets_partition": _offsets_partition(group.id, offsets_partitions),
        },
        "members": [
            {
                "id": member.id,
                "client_id": member.client_id,
                "host": member.host,
                "instance_id": member.instance_id,
                "rack": member.rack,
                "subscription_version": member.subscription_version,
                "epoch": member.epoch,
                "topics": list(member.topics),
                "topic_regex": member.topic_regex,
                "assigned": _assigned(group, member),
                "target": None if member.target is None else _lists(member.target),
                "undecodable": member.undecodable,
            }
            for member in group.members
        ],
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": each.committed,
                "begin": each.begin,
                "stable": each.stable,
                "end": each.end,
                "lag": each.lag,
                "held": each.held,
                "unreadable": each.unreadable,
                "member": None if each.owner is None else each.owner.id,
                "error": each.error or None,
            }
            for each in lag.partitions
        ],
        "lag": lag.total,
    }


def _assigned(group: "DescribedGroup", member: "GroupMember") -> dict[str, list[int]] | None:
    is_unknown = member.undecodable is not None and not member.assigned
    return None if is_unknown or not group.is_assignment_known else _lists(member.assigned)


def _lists(partitions: "Partitions") -> dict[str, list[int]]:
    return {topic: list(numbers) for topic, numbers in partitions.items()}


def _offsets_partition(group: str, partitions: int | None) -> int | None:
    return None if partitions is None else partition_for(group, partitions)


def _member_rows(lag: "GroupLag") -> list[dict[str, Any]]:
    names = member_names(lag.group.members)
    lags: dict[str, int] = {}
    for each in lag.partitions:
        if each.owner is not None and each.lag is not None:
            lags[each.owner.id] = lags.get(each.owner.id, 0) + each.lag
    is_common = len({_subscription(member) for member in lag.group.members}) == 1
    return [
        {
            "name": names[member.id],
            "client_id": None if names[member.id].startswith(member.client_id) else member.client_id,
            "host": member.host,
            "rack": member.rack,
            "version": member.subscription_version,
            "epoch": member.epoch,
            "subscription": None if is_common else _subscription(member),
            "lag": lags.get(member.id),
            "assigned": ranges_by_topic(member.assigned),
        }
        for member in sorted(lag.group.members, key=lambda member: names[member.id])
    ]


def _subscription(member: "GroupMember") -> str:
    return ", ".join([*member.topics, *([member.topic_regex] if member.topic_regex else [])])


def _print(lag: "GroupLag", found: Sequence[str], offsets_partitions: int | None) -> None:
    group, out = lag.group, console()
    for sentence in found:
        out.print(fill(sentence, out.width, initial_indent="! ", subsequent_indent="  "), style="yellow")
    if found:
        out.print()
    partition = _offsets_partition(group.id, offsets_partitions)
    place = "" if partition is None else f", by {OFFSETS_TOPIC}-{partition}"
    epoch = "" if group.epoch is None else f", epoch {group.epoch}"
    out.print(f"group        {group.id}")
    out.print(f"state        {group.state} ({group.type.value}{epoch})")
    out.print(f"assignor     {group.assignor or '-'}")
    out.print(f"coordinator  broker {group.coordinator}{place}")
    subscriptions = {_subscription(member) for member in group.members}
    if len(subscriptions) == 1 and (common := subscriptions.pop()):
        out.print(f"subscribes   {common}")
    out.print(f"lag          {'-' if lag.total is None else lag.total}")
    if group.members:
        rows = _member_rows(lag)
        optional = [each for each in _OPTIONAL_COLUMNS if any(row[each.key] is not None for row in rows)]
        out.print()
        out.print(table(rows, [_NAME, _HOST, *optional, _LAG, _ASSIGNED], out.width), crop=False)
    if lag.partitions:
        out.print()
        rows = partition_rows(lag)
        shown = [
            each
            for each in PARTITION_COLUMNS
            if each.key not in _IF_ANY or any(row[each.key] for row in rows)
        ]
        out.print(table(rows, shown, out.width), crop=False)
