"""`rebalances`: a group's generations, joined with its members' events and with commits that went back.

Each group's rows are gathered on one worker in log order and processed in a single pass (`generations`,
`consumer_protocol`): the minimum of moves is an optimization problem, which no query can express.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from groupwright.pipeline import schemas
from groupwright.pipeline._transforms.consumer_protocol import consumer_generations
from groupwright.pipeline._transforms.generations import Change, Generation, GroupMember, changes

Row = Mapping[str, Any]

_NEAR = timedelta(hours=1)
"""Maximum distance of an event from its generation: a recreated group counts from 1 again."""
_EXPIRED_WITHIN = timedelta(minutes=10)
"""Maximum time until an expired member finds that its partitions were lost."""


def topic_names(records: DataFrame, commits: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return `topic_id` and `topic` from all sources: KIP-848's records, commits, and sampled topics.

    Args:
        records: `consumer_group_records`.
        commits: `offset_commits`.
        end_offsets: `end_offsets`.
    """
    told = records.select(F.explode("consumer_partition_metadata.topics").alias("t")).select(
        "t.topic_id", "t.topic"
    )
    others = [table.select("topic_id", "topic") for table in (commits, end_offsets)]
    return (
        told.union(others[0])
        .union(others[1])
        .where("topic_id is not null")
        .groupBy("topic_id")
        .agg(F.max("topic").alias("topic"))
    )


def histories(
    generations: DataFrame, members: DataFrame, records: DataFrame, events: DataFrame, commits: DataFrame
) -> DataFrame:
    """Return all records and events of groups: one row each, with the struct of its kind set.

    Args:
        generations: `group_generations`.
        members: `group_members`.
        records: `consumer_group_records`.
        events: `client_events`.
        commits: `offset_commits`.
    """
    kinds = {
        "generation": _with_members(generations, members),
        "record": records.withColumn("time", F.col("log_time")),
        "event": _once(events).withColumn("time", F.col("ended_at")).withColumn("log_offset", F.lit(0)),
        "step_back": steps_back(commits),
    }
    happenings = [
        rows.select("group_id", "time", "log_offset", F.struct(_columns_of(kind, rows)).alias(kind))
        for kind, rows in kinds.items()
    ]
    everything = happenings[0]
    for rows in happenings[1:]:
        everything = everything.unionByName(rows, allowMissingColumns=True)
    return everything


def rebalances(histories: DataFrame, names: DataFrame) -> DataFrame:
    """Return the rows of `rebalances`.

    Args:
        histories: What `histories` returns.
        names: `topic_id` and `topic`; one that is missing shows by its id.
    """
    by_id = {row.topic_id: row.topic for row in names.collect()}
    walk = partial(_rebalances, names=by_id)
    return histories.groupBy("group_id").applyInArrow(walk, schemas.REBALANCES.schema)


def consumer_members(records: DataFrame, names: DataFrame) -> DataFrame:
    """Return KIP-848 members with the columns of `group_members`: one row per member and stable epoch."""
    by_id = {row.topic_id: row.topic for row in names.collect()}
    walk = partial(_consumer_members, names=by_id)
    return records.groupBy("group_id").applyInArrow(walk, schemas.GROUP_MEMBERS.schema)


def steps_back(commits: DataFrame) -> DataFrame:
    """Return commits below the previous one: `group_id`, `time`, `log_offset`, `messages`."""
    last = F.lag("committed_offset").over(
        Window.partitionBy("group_id", "topic", "partition").orderBy("log_time", "log_offset")
    )
    messages = F.col("last") - F.col("committed_offset")
    return (
        commits.where("committed_offset is not null")
        .select(
            "group_id", F.col("log_time").alias("time"), "log_offset", "committed_offset", last.alias("last")
        )
        .where(messages > 0)
        .select("group_id", "time", "log_offset", messages.alias("messages"))
    )


def _with_members(generations: DataFrame, members: DataFrame) -> DataFrame:
    """Return classic generations with their `members`."""
    key = ["group_id", "generation", "log_partition", "log_offset"]
    listed = members.groupBy(*key).agg(
        F.collect_list(F.struct("member_id", "client_id", "subscribed", "assigned")).alias("members")
    )
    # KIP-848's deletions tell of their group by its own records.
    classic = generations.where("group_type = 'classic'").withColumn("time", F.col("log_time"))
    return classic.join(listed, key, "left")


def _once(events: DataFrame) -> DataFrame:
    """Return events without duplicates."""
    return events.dropDuplicates(["id"])


def _columns_of(kind: str, rows: DataFrame) -> list[str]:
    wanted = {
        "generation": ["generation", "protocol", "protocol_type", "tombstone", "members"],
        "record": ["log_time", "record_kind", "tombstone", *_RECORD_KINDS],
        "event": ["client_id", "member_id", "generation", "outcome", "started_at", "ended_at", "error"],
        "step_back": ["messages"],
    }[kind]
    return [name for name in wanted if name in rows.columns]


_RECORD_KINDS = [
    field.name for field in schemas.CONSUMER_GROUP_RECORDS.schema if isinstance(field.dataType, StructType)
]


def _rebalances(table: pa.Table, *, names: Mapping[str, str]) -> pa.Table:
    """Process one group's history."""
    group_id = table.column("group_id")[0].as_py()
    by_kind = _by_kind(table)
    events = by_kind["event"]
    rows: list[dict[str, Any]] = []
    incarnations = {
        "classic": _split_at_deletions(by_kind["generation"]),
        "consumer": [list(consumer_generations((row["record"] for row in by_kind["record"]), names))],
    }
    for group_type, several in incarnations.items():
        for incarnation in several:
            found = list(changes(incarnation))
            rows += [_row(group_id, group_type, change, events) for change in found]
    rows.sort(key=lambda row: row["completed"])
    _add_steps_back(rows, by_kind["step_back"])
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(schemas.REBALANCES.schema))


def _by_kind(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each kind, in log order."""
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.sort_by([("time", "ascending"), ("log_offset", "ascending")]).to_pylist():
        kind = next(kind for kind in ("generation", "record", "event", "step_back") if row[kind] is not None)
        by_kind[kind].append(row)
    return by_kind


def _split_at_deletions(rows: Sequence[Row]) -> list[list[Generation]]:
    """Return the generations of a group, and of each of the same name after it was deleted.

    A generation that was written more than once, as when a static member comes back, counts as it was last.
    """
    incarnations: list[list[Generation]] = [[]]
    for row in rows:
        value = row["generation"]
        if value["tombstone"]:
            incarnations.append([])
            continue
        if value["members"] is None and not value["protocol_type"]:
            continue  # a group that only commits has no generations
        generation = _generation(value, row["time"])
        incarnation = incarnations[-1]
        if incarnation and incarnation[-1].number == generation.number:
            incarnation[-1] = Generation(
                generation.number, incarnation[-1].completed, generation.members, generation.protocol
            )
        else:
            incarnation.append(generation)
    return incarnations


def _generation(value: Row, time: datetime) -> Generation:
    members = (
        GroupMember(
            id=member["member_id"],
            client_id=member["client_id"],
            subscribed=tuple(member["subscribed"] or ()),
            assigned={each["topic"]: tuple(each["partitions"]) for each in member["assigned"] or ()},
        )
        for member in value["members"] or ()
    )
    return Generation(value["generation"], time, {member.id: member for member in members}, value["protocol"])


def _row(group_id: str, group_type: str, change: Change, events: Sequence[Row]) -> dict[str, Any]:
    before, after = change.before, change.after
    told = [event["event"] for event in _events_of(change, events)]
    started, ended = _span(after, told)
    return {
        "group_id": group_id,
        "group_type": group_type,
        "generation": after.number,
        "previous_generation": before and before.number,
        "protocol": after.protocol or (before and before.protocol),
        "started": started,
        "completed": after.completed,
        "duration_seconds": started and (ended - started).total_seconds(),
        "trigger": "expiry" if _expired(change, events) else change.trigger,
        "members_before": len(before.members) if before else 0,
        "members_after": len(after.members),
        "joined": list(change.joined),
        "left": list(change.left),
        "partitions": change.partitions,
        "moved": change.moved,
        "fewest_moves": change.fewest_moves,
        "imbalance_before": change.imbalance_before,
        "imbalance_after": change.imbalance_after,
        "messages_reprocessed": 0,
        "client_events": len(told),
        "error": change.error or next((event["error"] for event in told if event["error"]), None),
        "date": after.completed.date(),
    }


def _span(after: Generation, told: Sequence[Row]) -> tuple[datetime | None, datetime]:
    """Return the start and end of a rebalance, from KIP-848's records or else from member events."""
    if after.started:
        return after.started, after.completed
    starts = [event["started_at"] for event in told if event["started_at"]]
    ends = [event["ended_at"] for event in told]
    return min(starts, default=None), max([*ends, after.completed])


def _events_of(change: Change, events: Sequence[Row]) -> Iterator[Row]:
    generation, completed = change.after.number, change.after.completed
    return (
        event
        for event in events
        if event["event"]["generation"] == generation and abs(event["time"] - completed) < _NEAR
    )


def _expired(change: Change, events: Sequence[Row]) -> bool:
    """Return whether a member that left reported later that its partitions were lost.

    It comes back by another member id, but with its client's.
    """
    if change.before is None or not change.left:
        return False
    gone = {change.before.members[id_].client_id for id_ in change.left}
    completed = change.after.completed
    return any(
        event["event"]["outcome"] == "lost"
        and event["event"]["client_id"] in gone
        and completed <= event["time"] < completed + _EXPIRED_WITHIN
        for event in events
    )


def _add_steps_back(rows: Sequence[dict[str, Any]], steps: Sequence[Row]) -> None:
    """Attribute each step back to the last rebalance before it; those before the first are ignored."""
    completed = [row["completed"] for row in rows]
    for step in steps:
        place = bisect_right(completed, step["time"]) - 1
        if place >= 0:
            rows[place]["messages_reprocessed"] += step["step_back"]["messages"]


def _consumer_members(table: pa.Table, *, names: Mapping[str, str]) -> pa.Table:
    group_id = table.column("group_id")[0].as_py()
    records = table.sort_by([("log_time", "ascending"), ("log_offset", "ascending")]).to_pylist()
    rows = [
        {
            "group_id": group_id,
            "generation": generation.number,
            "member_id": member.id,
            "client_id": member.client_id,
            "subscribed": list(member.subscribed),
            "assigned": [
                {"topic": topic, "partitions": list(numbers)} for topic, numbers in member.assigned.items()
            ],
            "log_time": generation.completed,
            "date": generation.completed.date(),
        }
        for generation in consumer_generations(records, names)
        for member in generation.members.values()
    ]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(schemas.GROUP_MEMBERS.schema))
