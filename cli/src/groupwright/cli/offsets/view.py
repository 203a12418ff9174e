"""Output of `groupwright offsets`: rows, the JSON document, and sentences about members."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import DescribedGroup
from groupwright.cli._command_line.output import Column
from groupwright.cli.offsets.plan import PlannedPartition
from groupwright.core import TopicPartitionKey

SHOWN_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", is_number=True),
    Column("begin", "BEGIN", is_number=True, is_optional=True),
    Column("committed", "COMMITTED", is_number=True),
    Column("end", "END", is_number=True),
    Column("lag", "LAG", is_number=True),
    Column("leader_epoch", "EPOCH", is_number=True, is_optional=True),
    Column("metadata", "METADATA"),
)
PLAN_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", is_number=True),
    Column("committed", "BEFORE", is_number=True),
    Column("after", "AFTER", is_number=True),
    Column("lag_after", "LAG AFTER", is_number=True),
    Column("outcome", "OUTCOME"),
    Column("note", "NOTE"),
)
_MOST_NAMES = 5


class Action(StrEnum):
    """Action of the command."""

    SHOW = "show"
    RESET = "reset"
    DELETE = "delete"


class Outcome(StrEnum):
    """Outcome of the plan for a partition."""

    SHOWN = "shown"
    PLANNED = "planned"
    UNCHANGED = "unchanged"
    DONE = "done"
    FAILED = "failed"


def rows(
    plan: Sequence[PlannedPartition],
    action: Action,
    *,
    is_executed: bool = False,
    failures: Mapping[TopicPartitionKey, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a table, with the keys of the JSON document."""
    made = []
    for each in plan:
        failure = each.error or (failures or {}).get(each.key, "")
        if failure:
            outcome = Outcome.FAILED
        elif action is Action.SHOW:
            outcome = Outcome.SHOWN
        elif not each.is_change:
            outcome = Outcome.UNCHANGED
        else:
            outcome = Outcome.DONE if is_executed else Outcome.PLANNED
        made.append(
            {
                "topic": each.topic,
                "partition": each.partition,
                "begin": each.begin,
                "end": each.end,
                "committed": each.before,
                "leader_epoch": None if each.committed is None else each.committed.leader_epoch,
                "metadata": _metadata(each),
                "lag": each.lag,
                "after": each.after,
                "lag_after": each.lag_after,
                "outcome": outcome.value,
                "note": failure or each.note or None,
            }
        )
    return made


def _metadata(row: PlannedPartition) -> str | None:
    """Return the metadata without the NUL that confluent-kafka appends; None if it is empty."""
    return None if row.committed is None else row.committed.metadata.rstrip("\0") or None


def printable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a terminal: control characters in the metadata, which may be any text, are escaped."""
    text = row["metadata"] or ""
    escaped = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return {**row, "metadata": escaped or None}


def document(
    group: DescribedGroup, action: Action, partitions: Sequence[Mapping[str, Any]], *, is_executed: bool
) -> dict[str, Any]:
    """Return the JSON document; see `offsets.schema.json`."""
    return {
        "group": group.id,
        "type": group.type.value,
        "state": group.state,
        "members": len(group.members),
        "action": action.value,
        "executed": is_executed,
        "partitions": list(partitions),
    }


def members_sentence(group: DescribedGroup) -> str:
    """Return a sentence that names a group's members, such as `'billing' has 2 members (a, b)`."""
    names = sorted(member_names(group.members).values())
    if not names:
        return f"the group {group.id!r} is in the state {group.state}"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    noun = "member" if len(names) == 1 else "members"
    return f"the group {group.id!r} has {len(names)} {noun} ({', '.join(names[:_MOST_NAMES])}{more})"


def static_note(group: DescribedGroup) -> str:
    """Return the end of a sentence that advises to stop members: static ones do not leave when they stop."""
    if all(each.instance_id is None for each in group.members):
        return ""
    return "; static members (group.instance.id) stay until their session times out"


def is_active(group: DescribedGroup) -> bool:
    """Return whether a group has members, or is about to."""
    return bool(group.members) or group.state not in ("Empty", "Dead")


def subscribes(group: DescribedGroup, topics: set[str]) -> bool:
    """Return whether a member subscribes to one of the topics, or may."""
    if not group.members:
        return is_active(group)
    may_have_others = any(not each.topics and each.topic_regex is None for each in group.members)
    return may_have_others or any(group.subscribes(topic) is not False for topic in topics)
