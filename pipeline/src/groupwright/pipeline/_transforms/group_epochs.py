"""`group_epochs`: epochs of share and streams groups with their members.

The coordinator keeps these groups in records that mean the same as those of KIP-848: the group's epoch, its
members, and the epoch that each has reached. They are translated, and then processed in the same way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import schemas
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline._transforms.consumer_groups import ConsumerGroup
from groupwright.pipeline._transforms.generations import difference

Record = Mapping[str, Any]

_GROUP_KINDS = {"share_group": "share", "streams_group": "streams"}
_MEMBER_KINDS = {"share_member", "streams_member"}
_CURRENT_KINDS = {"share_current_member", "streams_current_member"}


def group_epochs(share: DataFrame, streams: DataFrame, states: DataFrame) -> DataFrame:
    """Return the rows of `group_epochs`.

    Args:
        share: `share_group_records` of later dates than the states.
        streams: `streams_group_records` of later dates than the states.
        states: `group_states` of one date.
    """
    records = all_records(share, streams).unionByName(
        states.where("group_type <> 'consumer'").select("group_id", "group_type", "state"),
        allowMissingColumns=True,
    )
    return records.groupBy("group_id", "group_type").applyInArrow(_epochs, schemas.GROUP_EPOCHS.schema)


def all_records(share: DataFrame, streams: DataFrame) -> DataFrame:
    """Return records of share and streams groups with their `group_type`."""
    return share.withColumn("group_type", F.lit("share")).unionByName(
        streams.withColumn("group_type", F.lit("streams")), allowMissingColumns=True
    )


def rows_in_log_order(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a group by date and offset: states are those at the end of a date."""
    rows: list[dict[str, Any]] = table.sort_by("log_offset").to_pylist()
    rows.sort(key=lambda row: row["log_time"].date() if row["log_time"] else date.max)
    return rows


def translated(records: Sequence[Record]) -> tuple[list[Record], dict[str, str]]:
    """Return the records of KIP-848 that mean the same, and the topics' names by id."""
    return [each for each in map(_translated, records) if each], _topic_names(records)


def _epochs(table: pa.Table) -> pa.Table:
    rows = rows_in_log_order(table)
    group = {name: rows[0][name] for name in ("group_id", "group_type")}
    state = next((row["state"] for row in rows if row["state"]), None)
    records = [row for row in rows if row["record_kind"]]
    epochs = [{**group, **row} for row in epoch_rows(records, ConsumerGroup.from_json(state))]
    return to_arrow(epochs, schemas.GROUP_EPOCHS)


def epoch_rows(records: Iterable[Record], group: ConsumerGroup | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of one group, without the group's columns.

    Args:
        records: The group's records, in log order.
        group: Its state before them; None for the first.
    """
    group = group or ConsumerGroup()
    listed, names = translated(list(records))
    group.learn_names(names)
    for after in group.generations(listed):
        before = group.last
        is_unknown = before is None and after.cause == "unknown"
        started = after.started if after.started and after.started <= after.completed else None
        yield {
            "generation": after.number,
            "previous_generation": before and before.number,
            "started": started,
            "completed": after.completed,
            "duration_seconds": started and (after.completed - started).total_seconds(),
            "cause": after.cause,
            "members_before": len(before.members) if before else None if is_unknown else 0,
            "members_after": len(after.members),
            "joined": None if is_unknown else difference(after, before),
            "left": None if is_unknown else difference(before, after),
            "partitions": len(after.partitions),
            "members": [
                {
                    "member_id": member.id,
                    "client_id": member.client_id,
                    "subscribed": member.subscribed,
                    "assigned": [
                        {"topic": topic, "partitions": list(numbers)}
                        for topic, numbers in sorted(member.assigned.items())
                    ],
                }
                for _, member in sorted(after.members.items())
            ],
            "date": after.completed.date(),
        }


def _topic_names(records: Iterable[Record]) -> dict[str, str]:
    """Return the topics' names by id, from the partitions with a delivery state."""
    return {
        topic["topic_id"]: topic["topic"]
        for record in records
        if record["record_kind"] == "share_state_partitions" and not record["tombstone"]
        for listed in record["share_state_partitions"].values()
        for topic in listed or ()
    }


def _translated(record: Record) -> Record | None:
    """Return the record of KIP-848 that means the same; None if there is none."""
    kind = record["record_kind"]
    value = record[kind] or {}
    if kind in _GROUP_KINDS:
        return _record("consumer_group", value, record)
    if kind in _MEMBER_KINDS:
        # The topology determines the topics of a streams member. Its epoch stands in for the regular
        # expression, so a new epoch is a change of the subscription.
        topology = value.get("topology_epoch")
        subscription = {} if topology is None else {"regex": f"topology {topology}"}
        return _record("consumer_member", {**value, **subscription}, record)
    if kind in _CURRENT_KINDS:
        active = [
            {"topic_id": each["subtopology"], "partitions": each["partitions"]}
            for each in value.get("active") or ()
        ]
        return _record("current_member", {"assigned": active, **value}, record)
    return None


def _record(kind: str, value: Mapping[str, Any], record: Record) -> Record:
    return {
        "record_kind": kind,
        kind: value,
        "tombstone": record["tombstone"],
        "log_time": record["log_time"],
    }
