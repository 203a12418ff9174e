"""`rebalances`: a group's generations, joined with its members' events and with rewinds of committed offsets.

One task processes all rows of a group in log order, in a single pass (`generations`, `consumer_groups`): the
minimum of moves is an optimization problem, which SQL cannot express.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.types import StructType

from groupwright.pipeline import schemas
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline._transforms.base import MAX_LOSS_DELAY
from groupwright.pipeline._transforms.consumer_groups import ConsumerGroup
from groupwright.pipeline._transforms.generations import Change, Generation, GroupMember, change, changes

Row = Mapping[str, Any]

_MAX_EVENT_DISTANCE = timedelta(hours=1)
"""Maximum time between an event and its generation: a recreated group numbers generations from 1 again."""
_ROWS = {
    "generation": ("generation", "protocol", "protocol_type", "state_time", "tombstone", "members"),
    "record": (
        "log_time",
        "record_kind",
        "tombstone",
        *(
            each.name
            for each in schemas.CONSUMER_GROUP_RECORDS.schema
            if isinstance(each.dataType, StructType)
        ),
    ),
    "event": ("client_id", "member_id", "generation", "outcome", "started_at", "ended_at", "error"),
    "rewind": ("messages",),
    "state": ("state",),
}
"""The kinds of rows in a history, each with its columns."""
_GENERATIONS_BEFORE = 3
"""Generations of a group before a date that are read: a partition that a cooperative handover has revoked
and not assigned yet is not in the last one."""
_MAX_SYNC_TIME = timedelta(days=1)
"""Maximum time from a group's last change of state to the record of its new generation."""


def topic_names(records: DataFrame, commits: DataFrame, end_offsets: DataFrame) -> DataFrame:
    """Return `topic_id` and `topic` from all sources: KIP-848's records, commits, and sampled topics.

    Args:
        records: `consumer_group_records`.
        commits: `offset_commits`.
        end_offsets: `end_offsets`.
    """
    from_records = records.select(F.explode("consumer_partition_metadata.topics").alias("t")).select(
        "t.topic_id", "t.topic"
    )
    others = [table.select("topic_id", "topic") for table in (commits, end_offsets)]
    return (
        from_records.union(others[0])
        .union(others[1])
        .where("topic_id is not null")
        .groupBy("topic_id")
        .agg(F.max("topic").alias("topic"))
    )


def histories(
    generations: DataFrame,
    members: DataFrame,
    records: DataFrame,
    events: DataFrame,
    commits: DataFrame,
    states: DataFrame,
) -> DataFrame:
    """Return all records and events of groups: one row each, with only the struct of its kind set.

    Args:
        generations: Classic generations of `group_generations`. The deletion of a KIP-848 group is among its
            own records (`consumer_group_records`).
        members: `group_members`, also of other generations.
        records: `consumer_group_records` after the states.
        events: `client_events`.
        commits: `offset_commits`.
        states: `group_states` of one date, with which the history of KIP-848 groups begins.
    """
    kinds = {
        "generation": _with_members(generations, members),
        "record": records.withColumn("time", F.col("log_time")),
        "event": _distinct(events).withColumn("time", F.col("ended_at")).withColumn("log_offset", F.lit(0)),
        "rewind": rewinds(commits),
        "state": states.where("group_type = 'consumer'").withColumns(
            {"time": F.lit(None).cast("timestamp"), "log_offset": F.lit(None).cast("bigint")}
        ),
    }
    parts = [
        rows.select("group_id", "time", "log_offset", F.struct(*_ROWS[kind]).alias(kind))
        for kind, rows in kinds.items()
    ]
    combined = parts[0]
    for rows in parts[1:]:
        combined = combined.unionByName(rows, allowMissingColumns=True)
    return combined


def recent_generations(generations: DataFrame, first: date) -> DataFrame:
    """Return the classic generations since a date, and the last few before it of the same groups.

    Groups without generations since that date are left out.

    Args:
        generations: `group_generations`, of all dates to look back.
        first: The first date whose rebalances are wanted.
    """
    classic = generations.where("group_type = 'classic'")
    recent = classic.where(F.col("date") >= F.lit(first))
    newest_first = Window.partitionBy("group_id").orderBy(F.desc("log_offset"))
    before = (
        classic.where(F.col("date") < F.lit(first))
        .join(recent.select("group_id").distinct(), "group_id", "left_semi")
        .withColumn("rank", F.row_number().over(newest_first))
        .where(F.col("rank") <= _GENERATIONS_BEFORE)
        .drop("rank")
    )
    return recent.unionByName(before)


def only_of_groups(rows: DataFrame, *others: DataFrame) -> DataFrame:
    """Return the rows of the groups that have rows in any of the other DataFrames."""
    groups = others[0].select("group_id")
    for other in others[1:]:
        groups = groups.union(other.select("group_id"))
    return rows.join(groups.distinct(), "group_id", "left_semi")


def names_by_group(records: DataFrame, names: DataFrame, states: DataFrame | None = None) -> DataFrame:
    """Return `group_id`, `topic_id` and `topic` of the topics that are assigned in groups.

    Args:
        records: `consumer_group_records`.
        names: `topic_id` and `topic`.
        states: `group_states` of one date, whose topic ids may have had no names.
    """
    assigned = records.select(
        # Without the alias, Spark takes this column for the one of `records` when `_by_group` cogroups both.
        F.col("group_id").alias("group_id"),
        F.explode("current_member.assigned.topic_id").alias("topic_id"),
    )
    if states is not None:
        members = F.from_json("state", "members map<string, struct<assigned: map<string, array<int>>>>")
        assigned = assigned.union(
            states.where("group_type = 'consumer'")
            .select("group_id", F.explode(F.map_values(members.members)).alias("member"))
            .select("group_id", F.explode(F.map_keys("member.assigned")).alias("topic_id"))
        )
    return assigned.distinct().join(names, "topic_id").select("group_id", "topic_id", "topic")


def rebalances(histories: DataFrame, names: DataFrame, *, begins: bool = True) -> DataFrame:
    """Return the rows of `rebalances`.

    Args:
        histories: The result of `histories`.
        names: The result of `names_by_group`; a topic's id replaces a missing name.
        begins: Whether the first generation of a classic group in `histories` may be the group's first.
    """
    return _by_group(histories, names, partial(_rebalances, begins=begins), schemas.REBALANCES)


def consumer_members(records: DataFrame, names: DataFrame) -> DataFrame:
    """Return KIP-848 members with the columns of `group_members`: one row per member and stable epoch.

    The log position is that of the epoch's record: a group that is deleted and created again repeats epochs.

    Args:
        records: `consumer_group_records`.
        names: As in `rebalances`.
    """
    return _by_group(records, names, _consumer_members, schemas.GROUP_MEMBERS)


def _by_group(
    rows: DataFrame,
    names: DataFrame,
    process: Callable[[pa.Table, Mapping[str, str]], pa.Table],
    table: schemas.Table,
) -> DataFrame:
    """Apply a function to the rows and topic names of each group, in as many tasks as a shuffle has.

    The number of tasks is explicit, because Spark would merge them by the size of their rows, and processing
    a group takes far longer than reading it.
    """
    tasks = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)

    def process_group(group: pa.Table, topics: pa.Table) -> pa.Table:
        ids, topic_names = (topics.column(name).to_pylist() for name in ("topic_id", "topic"))
        return process(group, dict(zip(ids, topic_names, strict=True)))

    grouped = rows.repartition(tasks, "group_id").groupBy("group_id")
    return grouped.cogroup(names.repartition(tasks, "group_id").groupBy("group_id")).applyInArrow(
        process_group, table.schema
    )


def rewinds(commits: DataFrame) -> DataFrame:
    """Return the rewinds: commits below the previous one, as `group_id`, `time`, `log_offset`, `messages`.

    A topic that is created again begins at offset 0, which is no rewind.
    """
    in_partition = Window.partitionBy("group_id", "topic", "partition").orderBy("log_offset")
    # A tombstone has no offset, so a commit after it is no rewind. Most clients commit without a topic id.
    is_other_topic = F.coalesce(
        F.lag("topic_id").over(in_partition) != F.col("topic_id"),
        F.lit(False),  # noqa: FBT003 - a value of the query
    )
    last = F.when(~is_other_topic, F.lag("committed_offset").over(in_partition))
    messages = last - F.col("committed_offset")
    return commits.select(
        "group_id", F.col("log_time").alias("time"), "log_offset", messages.alias("messages")
    ).where("messages > 0")


def _with_members(generations: DataFrame, members: DataFrame) -> DataFrame:
    """Return classic generations with their `members`."""
    key = ["group_id", "generation", "log_partition", "log_offset"]
    of_these = members.join(generations.select(*key), key, "left_semi")
    listed = of_these.groupBy(*key).agg(
        F.collect_list(F.struct("member_id", "client_id", "subscribed", "assigned")).alias("members")
    )
    return generations.withColumn("time", F.col("log_time")).join(listed, key, "left")


def _distinct(events: DataFrame) -> DataFrame:
    """Return each event once: producers may deliver an event more than once, with the same id."""
    return events.dropDuplicates(["id"])


def _rebalances(table: pa.Table, names: Mapping[str, str], *, begins: bool) -> pa.Table:
    """Process one group's history."""
    group_id = table.column("group_id")[0].as_py()
    by_kind = _by_kind(table)
    conversions = _conversions(by_kind)
    events = _MemberEvents(by_kind["event"], _deletions(by_kind, conversions))
    states = by_kind["state"]
    group = ConsumerGroup.from_json(states[0]["state"]["state"] if states else None)
    group.learn_names(names)
    incarnations = _split_at_deletions(by_kind["generation"])
    repeated = _repeated(by_kind["generation"])
    before_consumer = {end: listed[-1][1] for end, listed in incarnations if listed and end in conversions}
    consumer, before_classic = _consumer_changes(by_kind["record"], group, before_consumer, conversions)
    rows = [(log_offset, _row(group_id, "consumer", each, events)) for log_offset, each in consumer]
    for number, (_, incarnation) in enumerate(incarnations):
        before = before_classic.get(incarnation[0][0] - 1) if incarnation else None
        if incarnation and incarnation[0][0] in repeated:
            before = incarnation[0][1]
        generations = incarnation[1:] if before else incarnation
        of_incarnation = changes((each for _, each in generations), before, begins=begins or number > 0)
        rows += [
            (log_offset, _row(group_id, "classic", each, events))
            for (log_offset, _), each in zip(generations, of_incarnation, strict=True)
        ]
    rows.sort(key=_log_offset)
    _add_rewinds(rows, by_kind["rewind"])
    return to_arrow([row for _, row in rows], schemas.REBALANCES)


def _consumer_changes(
    records: Sequence[Row],
    group: ConsumerGroup,
    before_consumer: Mapping[int, Generation],
    conversions: Collection[int],
) -> tuple[list[tuple[int, Change]], dict[int, Generation]]:
    """Return a group's KIP-848 rebalances with their offsets, and its last one before each conversion.

    A converted group has the same generation as before, which is no rebalance.

    Args:
        records: The records, in log order.
        group: The group's state before them.
        before_consumer: The classic generation before each conversion, by the offset of the tombstone.
        conversions: The result of `_conversions`.
    """
    before_classic: dict[int, Generation] = {}
    found: list[tuple[int, Change]] = []
    converted: Generation | None = None
    for row in records:
        log_offset = row["log_offset"]
        if _is_deletion(row):
            converted = None
            if group.last and log_offset in conversions:
                before_classic[log_offset] = group.last
        converted = before_consumer.get(log_offset - 1, converted)
        for after in group.generations([row["record"]]):
            if converted is None:
                found.append((log_offset, change(group.last, after)))
            elif converted.number != after.number:
                # The records do not tell the cause of a group's first epoch, but the difference does.
                found += [(log_offset, each) for each in changes([replace(after, cause=None)], converted)]
            converted = None
    return found, before_classic


def _by_kind(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each kind, in log order; events, which are of another log, in order of time."""
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table.sort_by([("log_offset", "ascending"), ("time", "ascending")]).to_pylist():
        kind = next(kind for kind in _ROWS if row[kind] is not None)
        by_kind[kind].append(row)
    # States are those at the end of a date, so the records of a date come after those of the date before.
    by_kind["record"].sort(key=lambda row: _time(row).date())
    return by_kind


def _conversions(by_kind: Mapping[str, Sequence[Row]]) -> set[int]:
    """Return the offsets of the tombstones of a group that was converted, from classic to KIP-848 or back.

    The coordinator writes the group's new records together with the tombstone: they follow it, with its time.
    """
    found = set[int]()
    for kind, other in (("generation", "record"), ("record", "generation")):
        times = {row["log_offset"]: row["time"] for row in by_kind[other]}
        found |= {
            row["log_offset"]
            for row in by_kind[kind]
            if _is_deletion(row) and times.get(row["log_offset"] + 1) == row["time"]
        }
    return found


def _deletions(by_kind: Mapping[str, Sequence[Row]], conversions: Collection[int]) -> list[datetime]:
    """Return the times at which the group was deleted, not converted, ascending."""
    return sorted(
        row["time"]
        for kind in ("generation", "record")
        for row in by_kind[kind]
        if _is_deletion(row) and row["log_offset"] not in conversions
    )


def _is_deletion(row: Row) -> bool:
    """Return whether a row is a group's tombstone."""
    if row["record"]:
        return row["record"]["record_kind"] == "consumer_group" and bool(row["record"]["tombstone"])
    return bool(row["generation"]["tombstone"])


_Incarnation = tuple[int | None, list[tuple[int, Generation]]]
"""The offset of the tombstone that ends a classic group, if any, and its generations with their offsets."""


def _split_at_deletions(rows: Sequence[Row]) -> list[_Incarnation]:
    """Return the classic generations, split where the group was deleted: a later one is new.

    If a generation was written more than once, as when a static member restarts, the last record counts.
    """
    incarnations: list[_Incarnation] = []
    incarnation: list[tuple[int, Generation]] = []
    for row in rows:
        value = row["generation"]
        if value["tombstone"]:
            incarnations.append((row["log_offset"], incarnation))
            incarnation = []
            continue
        if value["members"] is None and not value["protocol_type"]:
            continue  # a group that only commits has no generations
        generation = _generation(value, row["time"])
        if incarnation and incarnation[-1][1].number == generation.number:
            log_offset, first = incarnation[-1]
            incarnation[-1] = (log_offset, replace(generation, completed=first.completed))
        else:
            incarnation.append((row["log_offset"], generation))
    return [*incarnations, (None, incarnation)]


def _repeated(rows: Sequence[Row]) -> set[int]:
    """Return the offsets of records that repeat an older generation, as when a static member restarts.

    The coordinator writes these without a change of the group's state, whose time is that of the generation.
    """
    return {
        row["log_offset"]
        for row in rows
        if (changed := row["generation"]["state_time"]) and row["time"] - changed > _MAX_SYNC_TIME
    }


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


def _row(group_id: str, group_type: str, change: Change, events: "_MemberEvents") -> dict[str, Any]:
    before, after = change.before, change.after
    member_events = events.of(after)
    started, ended = _span(after, member_events)
    return {
        "group_id": group_id,
        "group_type": group_type,
        "generation": after.number,
        "previous_generation": before and before.number,
        "protocol": after.protocol or (before and before.protocol),
        "started": started,
        "completed": after.completed,
        "duration_seconds": started and (ended - started).total_seconds(),
        "cause": "expiry" if events.show_expiry(change) else change.cause,
        "members_before": len(before.members) if before else None if change.joined is None else 0,
        "members_after": len(after.members),
        "joined": None if change.joined is None else list(change.joined),
        "left": None if change.left is None else list(change.left),
        "partitions": change.partitions,
        "moved": change.moved,
        "min_moves": change.min_moves,
        "imbalance_before": change.imbalance_before,
        "imbalance_after": change.imbalance_after,
        "messages_reprocessed": 0,
        "client_events": len(member_events),
        "error": change.error or next((event["error"] for event in member_events if event["error"]), None),
        "date": after.completed.date(),
    }


def _span(after: Generation, member_events: Sequence[Row]) -> tuple[datetime | None, datetime]:
    """Return the start and end of a rebalance, from KIP-848's records or else from member events.

    Times are those of different clocks, so one that contradicts the generation's record is not used: no
    rebalance starts after its generation was written.
    """
    starts = [after.started] if after.started else [event["started_at"] for event in member_events]
    starts = [start for start in starts if start and start <= after.completed]
    ends = [] if after.started else [event["ended_at"] for event in member_events]
    return min(starts, default=None), max([*ends, after.completed])


class _MemberEvents:
    """A group's member events, indexed so that the events of a generation are found without a scan."""

    def __init__(self, rows: Iterable[Row], deletions: Sequence[datetime] = ()) -> None:
        """Index the rows, which are in order of time.

        Args:
            rows: The events.
            deletions: The times at which the group was deleted, ascending.
        """
        self._deletions = deletions
        self._by_generation: dict[int, list[Row]] = defaultdict(list)
        self._losses: dict[str | None, list[datetime]] = defaultdict(list)
        for row in rows:
            event = row["event"]
            if event["generation"] is not None:
                self._by_generation[event["generation"]].append(row)
            if event["outcome"] == "lost":
                self._losses[event["client_id"]].append(row["time"])

    def of(self, generation: Generation) -> list[Row]:
        """Return the events of a generation that are near it in time, without a deletion between."""
        rows, completed = self._by_generation.get(generation.number, []), generation.completed
        since, until = completed - _MAX_EVENT_DISTANCE, completed + _MAX_EVENT_DISTANCE
        deletion = bisect_right(self._deletions, completed)
        if deletion:
            since = max(since, self._deletions[deletion - 1])
        if deletion < len(self._deletions):
            until = min(until, self._deletions[deletion])
        first = bisect_right(rows, since, key=_time)
        end = bisect_left(rows, until, key=_time)
        return [row["event"] for row in rows[first:end]]

    def show_expiry(self, change: Change) -> bool:
        """Return whether a member that left reported later that its partitions were lost.

        The member rejoins with a new member id, so it is recognized by its client id.
        """
        if change.before is None or not change.left:
            return False
        completed = change.after.completed
        for client in {change.before.members[id_].client_id for id_ in change.left}:
            times = self._losses.get(client, [])
            next_loss = bisect_left(times, completed)
            if next_loss < len(times) and times[next_loss] < completed + MAX_LOSS_DELAY:
                return True
        return False


def _time(row: Row) -> datetime:
    time: datetime = row["time"]
    return time


def _log_offset(row: tuple[int, Any]) -> int:
    return row[0]


def _add_rewinds(rows: Sequence[tuple[int, dict[str, Any]]], found: Sequence[Row]) -> None:
    """Attribute each rewind to the last rebalance before it; rewinds before the first one are ignored.

    Args:
        rows: Rows of `rebalances` with their offsets, in log order.
        found: The rewinds.
    """
    for rewind in found:
        index = bisect_right(rows, rewind["log_offset"], key=_log_offset) - 1
        if index >= 0:
            rows[index][1]["messages_reprocessed"] += rewind["rewind"]["messages"]


def _consumer_members(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    group, epochs = ConsumerGroup(names=dict(names)), dict[int, Row]()
    rows: list[dict[str, Any]] = []
    for record in table.sort_by("log_offset").to_pylist():
        epoch = (record["consumer_group"] or {}).get("epoch")
        if record["record_kind"] == "consumer_group" and epoch is not None:
            epochs[epoch] = record
        rows += [
            row
            for each in group.generations([record])
            for row in _member_rows(each, group, epochs[each.number])
        ]
    return to_arrow(rows, schemas.GROUP_MEMBERS)


def _member_rows(generation: Generation, group: ConsumerGroup, epoch: Row) -> list[dict[str, Any]]:
    """Return the rows of `group_members` of a group's stable epoch, with the position of its record."""
    without = dict.fromkeys(schemas.GROUP_MEMBERS.schema.names)  # the other columns are of classic groups
    return [
        {
            **without,
            "group_id": epoch["group_id"],
            "generation": generation.number,
            "member_id": member.id,
            "instance_id": group.members[member.id].instance_id,
            "client_id": member.client_id,
            "subscribed": list(member.subscribed),
            "assigned": [
                {"topic": topic, "partitions": list(numbers)} for topic, numbers in member.assigned.items()
            ],
            **{name: epoch[name] for name in ("log_partition", "log_offset", "log_time", "date")},
        }
        for member in generation.members.values()
    ]
