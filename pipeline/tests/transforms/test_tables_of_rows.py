"""Transforms on rows: DataFrames go in, DataFrames come out."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from groupwright.pipeline import schemas
from groupwright.pipeline._decoding import DECODED
from groupwright.pipeline._jobs.ingest import _summarize
from groupwright.pipeline._transforms import base, churn, group_epochs, lag, rebalances
from groupwright.pipeline.schemas import Table

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def rows_of(spark: SparkSession, table: Table, *rows: dict[str, Any]) -> DataFrame:
    """The table with these rows; what they leave out is null."""
    dated = [{"date": START.date(), **row} for row in rows]
    made = pa.Table.from_pylist(dated, to_arrow_schema(table.schema))
    return spark.createDataFrame(made, table.schema)


def decoded(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    where = {"log_partition": 0, "log_time": START, "tombstone": False, "group_id": "billing"}
    full = [{**where, "log_offset": number, **row} for number, row in enumerate(rows)]
    return spark.createDataFrame(pa.Table.from_pylist(full, DECODED), from_arrow_schema(DECODED))


def test_each_kind_of_record_goes_to_its_tables(spark: SparkSession) -> None:
    member = {
        "member_id": "m-1",
        "client_id": "billing-1",
        "subscription": {
            "topics": ["orders"],
            "owned": [],
            "generation": -1,
            "sticky_generation": 4,
            "sticky_owned": [{"topic": "orders", "partitions": [0]}],
        },
        "assignment": {"partitions": [{"topic": "orders", "partitions": [0, 1]}]},
    }
    commit = {"topic": "orders", "partition": 3, "committed_offset": 17, "metadata": "", "topic_id": None}
    records = decoded(
        spark,
        {"record_kind": "offset_commit", "offset_commit": commit},
        {
            "record_kind": "offset_commit",
            "offset_commit": {**commit, "committed_offset": None},
            "tombstone": True,
        },
        {"record_kind": "group_metadata", "group_metadata": {"generation": 5, "members": [member]}},
        {"record_kind": "consumer_group", "consumer_group": {"epoch": 2}, "group_id": "new"},
        {"record_kind": "share_group", "consumer_group": {"epoch": 3}, "group_id": "queue"},
        {
            "record_kind": "streams_group",
            "consumer_group": {"epoch": None},
            "tombstone": True,
            "group_id": "flow",
        },
        {"record_kind": "malformed", "error": "cut off", "raw_key": b"\x00"},
    )
    commits = base.offset_commits(records).collect()
    assert [(row.partition, row.committed_offset, row.tombstone) for row in commits] == [
        (3, 17, False),
        (3, None, True),
    ]
    found = base.group_generations(records).collect()
    assert [(row.group_id, row.group_type, row.generation, row.member_count) for row in found] == [
        ("billing", "classic", 5, 1),
        ("new", "consumer", 2, None),
        ("queue", "share", 3, None),
        ("flow", "streams", None, None),
    ]
    (one,) = base.group_members(records).collect()
    assert (one.member_id, one.subscribed, one.assigned[0].partitions) == ("m-1", ["orders"], [0, 1])
    assert (one.owned[0].partitions, one.owned_generation) == ([0], 4), (
        "sticky's user data tell, before version 1"
    )
    assert [row.record_kind for row in base.consumer_group_records(records).collect()] == ["consumer_group"]
    assert [row.share_group.epoch for row in base.share_group_records(records).collect()] == [3]
    assert [row.tombstone for row in base.streams_group_records(records).collect()] == [True]
    (broken,) = base.quarantine(records).collect()
    assert (broken.error, bytes(broken.raw_key), broken.log_offset) == ("cut off", b"\x00", 6)
    for source in base.FROM_DECODED:
        assert source.rows(records).schema.simpleString() == source.table.schema.simpleString()


def test_epochs_of_share_groups_are_rows_of_their_table(spark: SparkSession) -> None:
    group = {"group_id": "queue", "log_partition": 0, "tombstone": False}
    values: list[tuple[str, dict[str, Any]]] = [
        ("share_member", {"member_id": "a", "client_id": "one", "topics": ["jobs"]}),
        ("share_group", {"epoch": 1, "metadata_hash": 7}),
        ("share_current_member", {"member_id": "a", "epoch": 1, "state": "stable",
                                  "assigned": [{"topic_id": "i", "partitions": [0]}]}),
    ]  # fmt: skip
    records = [
        {**group, "record_kind": kind, kind: value, "log_offset": number, "log_time": at(number)}
        for number, (kind, value) in enumerate(values)
    ]
    found = group_epochs.group_epochs(
        rows_of(spark, schemas.SHARE_GROUP_RECORDS, *records),
        rows_of(spark, schemas.STREAMS_GROUP_RECORDS),
        rows_of(spark, schemas.GROUP_STATES),
    )
    assert found.schema.simpleString() == schemas.GROUP_EPOCHS.schema.simpleString()
    (row,) = found.collect()
    assert (row.group_id, row.group_type, row.generation, row.duration_seconds) == ("queue", "share", 1, 1.0)
    assert row.members[0].assigned[0].topic == "i", "an id replaces a missing name"


def test_events_are_read_and_what_is_none_is_kept_aside(spark: SparkSession) -> None:
    event = {
        "version": 1,
        "id": "e-1",
        "group": "billing",
        "client_id": "billing-1",
        "ended_at": "2026-11-20T12:00:01.500000Z",
        "phases": {"join": 0.25},
        "partitions_after": {"orders": [0, 1]},
        "a key of a later version": 1,
    }
    late = [json.dumps({**event, name: 1_763_640_001_500}).encode() for name in ("started_at", "ended_at")]
    values = [json.dumps(event).encode(), b"no event", b'{"id": "e-2"}', None, *late]
    raw = spark.createDataFrame(
        [(None, value, "groupwright.rebalances", 0, number, START) for number, value in enumerate(values)],
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp",
    )
    never = [
        raw.where("offset = 0").withColumn("timestamp", F.timestamp_millis(F.lit(millis)))
        for millis in (253_402_300_799_000, 1_795_800_000_000_000)  # the end of 9999, and the year 58876
    ]
    parsed = base.parsed_events(raw.union(never[0]).union(never[1]))
    (row,) = base.client_events(parsed).collect()
    assert (row.id, row.group_id, row.ended_at.astimezone(UTC)) == ("e-1", "billing", at(1.5))
    assert (row.phases, row.partitions_after) == ({"join": 0.25}, {"orders": [0, 1]})
    invalid = base.event_quarantine(parsed).collect()
    assert [row.log_offset for row in invalid] == [1, 2, 3, 4, 5, 0, 0]
    assert [row.date.year for row in invalid] == [2026] * 5 + [1970] * 2


def test_a_batch_s_dates_are_those_of_its_records_and_of_rebalances_before_midnight(
    spark: SparkSession,
) -> None:
    """Records of 00:00:30; the third member was removed up to ten minutes before it reported its loss."""
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    events = [
        (-5.0, 20.0, "completed"),
        (20.0, 25.0, "completed"),
        (None, 25.0, "lost"),
        (-90000.0, 25.0, "failed"),
    ]
    for (started, ended, outcome), dates in zip(events, ({20, 21}, {21}, {20, 21}, {21}), strict=True):
        times = {"started_at": started, "ended_at": ended}
        value = {"id": "e", "group": "billing", "outcome": outcome} | {
            name: (midnight + timedelta(seconds=each)).isoformat()
            for name, each in times.items()
            if each is not None
        }
        raw = spark.createDataFrame(
            [(None, json.dumps(value).encode(), "events", 0, 0, midnight + timedelta(seconds=30))],
            "key binary, value binary, topic string, partition int, offset long, timestamp timestamp",
        )
        summary = _summarize(decoded(spark), base.parsed_events(raw))
        assert {day.day for day in summary.dates} == dates
        assert summary.records.total() == 1


def generation(
    number: int, seconds: float, **assigned: Sequence[int]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row of `group_generations`, and those of `group_members`."""
    key = {
        "group_id": "billing",
        "generation": number,
        "log_partition": 0,
        "log_offset": 10 * number,
        "log_time": at(seconds),
    }
    members = [
        {
            **key,
            "member_id": id_,
            "client_id": id_.partition("_")[0],
            "subscribed": ["orders"],
            "assigned": [{"topic": "orders", "partitions": list(partitions)}],
        }
        for id_, partitions in assigned.items()
    ]
    return {
        **key,
        "group_type": "classic",
        "protocol_type": "consumer",
        "protocol": "range",
        "tombstone": False,
    }, members


def test_generations_are_joined_to_events_and_to_commits_that_went_back(spark: SparkSession) -> None:
    """b's session ended while it was busy: it came back 20 s later, and found that it had lost everything."""
    generations = [
        generation(4, 0, a_1=(0, 1), b_1=(2, 3)),
        generation(5, 10, a_1=(0, 1, 2, 3)),
        generation(6, 30, a_1=(0, 1), b_2=(2, 3)),
    ]
    events = [
        {"id": "1", "client_id": "a", "member_id": "a_1", "generation": 5, "outcome": "completed",
         "started_at": at(9), "ended_at": at(10.5)},
        {"id": "2", "client_id": "a", "member_id": "a_1", "generation": 6, "outcome": "completed",
         "started_at": at(29), "ended_at": at(30)},
        {"id": "3", "client_id": "b", "member_id": "b_2", "generation": 6, "outcome": "lost",
         "started_at": at(28), "ended_at": at(31), "error": "fenced"},
    ]  # fmt: skip
    events.append(events[-1])  # delivered twice
    commits = [
        {"group_id": "billing", "topic": "orders", "partition": 2, "committed_offset": offset,
         "log_offset": log_offset, "log_time": at(seconds), "tombstone": False}
        for log_offset, seconds, offset in ((41, 1, 100), (51, 11, 60), (52, 12, 90), (61, 32, 85))
    ]  # fmt: skip
    histories = rebalances.histories(
        rows_of(spark, schemas.GROUP_GENERATIONS, *(row for row, _ in generations)),
        rows_of(spark, schemas.GROUP_MEMBERS, *(row for _, rows in generations for row in rows)),
        rows_of(spark, schemas.CONSUMER_GROUP_RECORDS),
        rows_of(spark, schemas.CLIENT_EVENTS, *({"group_id": "billing", **event} for event in events)),
        rows_of(spark, schemas.OFFSET_COMMITS, *commits),
        rows_of(spark, schemas.GROUP_STATES),
    )
    names = spark.createDataFrame([], "group_id string, topic_id string, topic string")
    found = rebalances.rebalances(histories, names)
    assert found.schema.simpleString() == schemas.REBALANCES.schema.simpleString()
    fourth, fifth, sixth = found.orderBy("generation").collect()
    assert (fourth.cause, fourth.previous_generation, fourth.duration_seconds) == ("unknown", None, None)
    assert (fifth.cause, fifth.left, fifth.duration_seconds, fifth.client_events) == (
        "expiry",
        ["b_1"],
        1.5,
        1,
    )
    assert (sixth.cause, sixth.joined, sixth.duration_seconds, sixth.client_events) == (
        "join",
        ["b_2"],
        3.0,
        2,
    )
    assert (sixth.moved, sixth.min_moves, sixth.error) == (2, 2, "fenced")
    assert [row.messages_reprocessed for row in (fourth, fifth, sixth)] == [0, 40, 5]


def test_members_of_kip_848_groups_have_their_instance_ids(spark: SparkSession) -> None:
    current = {"member_id": "a", "epoch": 2, "state": "stable", "assigned": []}
    values: list[tuple[str, dict[str, Any]]] = [
        ("consumer_member", {"member_id": "a", "instance_id": "one", "client_id": "c", "topics": ["orders"]}),
        ("consumer_group", {"epoch": 2, "metadata_hash": 7}),
        ("current_member", current),
    ]
    records = [
        {"group_id": "billing", "log_partition": 0, "tombstone": False, "record_kind": kind, kind: value}
        | {"log_offset": number, "log_time": at(number)}
        for number, (kind, value) in enumerate(values)
    ]
    names = spark.createDataFrame([], "group_id string, topic_id string, topic string")
    (row,) = rebalances.consumer_members(
        rows_of(spark, schemas.CONSUMER_GROUP_RECORDS, *records), names
    ).collect()
    assert (row.member_id, row.instance_id, row.generation, row.log_offset) == ("a", "one", 2, 1)


def test_a_history_of_rows_without_a_wanted_column_is_an_error(spark: SparkSession) -> None:
    tables = (
        schemas.GROUP_GENERATIONS,
        schemas.GROUP_MEMBERS,
        schemas.CONSUMER_GROUP_RECORDS,
        schemas.CLIENT_EVENTS,
        schemas.OFFSET_COMMITS,
        schemas.GROUP_STATES,
    )
    frames = [rows_of(spark, table) for table in tables]
    frames[3] = frames[3].drop("error")
    with pytest.raises(AnalysisException, match="`error`"):
        rebalances.histories(*frames)


def test_lag_is_what_was_not_committed_when_the_log_was_sampled(spark: SparkSession) -> None:
    """The log grows by 10 messages a second; the group is 30 behind, so the first of these came 3 s ago."""
    ends = [
        {"topic": "orders", "partition": 0, "end_offset": 10 * second, "time": at(second)}
        for second in (0, 10, 20)
    ]
    commits = [
        {"group_id": "billing", "topic": "orders", "partition": 0, "committed_offset": offset,
         "tombstone": gone, "log_offset": number, "log_time": at(seconds)}
        for number, (seconds, offset, gone) in enumerate(((5, 70, False), (12, 100, False), (25, None, True)))
    ]  # fmt: skip
    ends.append({"topic": "orders", "partition": 0, "end_offset": 200, "time": at(30)})
    found = lag.lag(
        rows_of(spark, schemas.OFFSET_COMMITS, *commits), rows_of(spark, schemas.END_OFFSETS, *ends)
    )
    assert found.schema.simpleString() == schemas.LAG.schema.simpleString()
    ten, twenty = found.orderBy("time").collect()
    assert (ten.lag_messages, ten.committed_offset, ten.end_offset) == (30, 70, 100)
    assert ten.lag_seconds == 2.9  # the message at 70 came as the end went from 70 to 71
    assert (twenty.lag_messages, twenty.lag_seconds) == (100, 9.9)


def test_messages_that_were_deleted_are_no_lag(spark: SparkSession) -> None:
    """The group has committed 70; then the log begins at 150, and then at its end."""
    place = {"topic": "orders", "partition": 0}
    commit = {"group_id": "billing", "committed_offset": 70, "tombstone": False, "log_offset": 0}
    sampled = ((0, 0, 0), (10, 0, 100), (20, 150, 200), (30, 200, 200))
    ends = [
        {**place, "time": at(second), "start_offset": start, "end_offset": end}
        for second, start, end in sampled
    ]
    found = lag.lag(
        rows_of(spark, schemas.OFFSET_COMMITS, {**place, **commit, "log_time": at(5)}),
        rows_of(spark, schemas.END_OFFSETS, *ends),
    )
    rows = found.orderBy("time").collect()
    assert [(row.committed_offset, row.start_offset, row.lag_messages, row.lag_seconds) for row in rows] == [
        (70, 0, 30, 2.9),
        (70, 150, 50, 4.9),  # the message at 150 came as the end went from 150 to 151
        (70, 200, 0, 0.0),
    ]
    last = lag.last_commits(found, rows_of(spark, schemas.OFFSET_COMMITS))
    assert [row.committed_offset for row in last.collect()] == [70]


@pytest.mark.parametrize("has_tombstone", [True, False])
def test_a_topic_that_is_created_again_has_neither_the_lag_nor_the_commits_of_the_former_one(
    spark: SparkSession, *, has_tombstone: bool
) -> None:
    place = {"group_id": "billing", "topic": "orders", "partition": 0}
    recorded = [(5, 1, "old"), (1000, 2, "old"), (None, 3, None), (4, 5, "new"), (8, 6, "new")]
    commits = [
        {**place, "committed_offset": offset, "tombstone": offset is None, "topic_id": id_}
        | {"log_offset": number, "log_time": at(seconds)}
        for number, (offset, seconds, id_) in enumerate(recorded)
        if offset is not None or has_tombstone
    ]
    sampled = [
        (5, 1, "old"),
        (900, 1.5, "old"),
        (1000, 2, "old"),
        (0, 4, "new"),
        (10, 5.5, "new"),
        (12, 6.5, "new"),
    ]
    ends = [
        {"topic": "orders", "partition": 0, "end_offset": end, "time": at(seconds), "topic_id": id_}
        for end, seconds, id_ in sampled
    ]
    rows = rows_of(spark, schemas.OFFSET_COMMITS, *commits)
    assert rebalances.rewinds(rows).collect() == []
    found = lag.lag(rows, rows_of(spark, schemas.END_OFFSETS, *ends)).orderBy("time").collect()
    assert [(row.lag_messages, round(row.lag_seconds, 3)) for row in found] == [
        (0, 0.0),
        (895, 0.499),
        (0, 0.0),
        (6, 0.75),
        (4, 1.15),
    ]


def test_a_group_that_is_not_behind_has_no_lag_and_one_from_before_the_samples_no_seconds(
    spark: SparkSession,
) -> None:
    ends = [{"topic": "orders", "partition": 0, "end_offset": 50, "time": at(second)} for second in (10, 20)]
    commits = [
        {"group_id": group, "topic": "orders", "partition": 0, "committed_offset": offset, "tombstone": False,
         "log_offset": offset, "log_time": at(1)}
        for group, offset in (("ahead", 50), ("behind", 20))
    ]  # fmt: skip
    found = lag.lag(
        rows_of(spark, schemas.OFFSET_COMMITS, *commits), rows_of(spark, schemas.END_OFFSETS, *ends)
    )
    assert [
        (row.group_id, row.lag_messages, row.lag_seconds)
        for row in found.orderBy("group_id", "time").collect()
    ] == [
        ("ahead", 0, 0.0),
        ("ahead", 0, 0.0),
        ("behind", 30, None),
        ("behind", 30, None),
    ]


def test_churn_names_storms_and_the_member_that_flaps(spark: SparkSession) -> None:
    """b comes and goes three times within five minutes; each time it has another member id."""
    changes = [
        {"group_id": "billing", "completed": at(60 * number), "generation": number, "moved": 2,
         "min_moves": 1, "duration_seconds": 0.5, "joined": [f"b_{number}"] if number % 2 == 0 else [],
         "left": [f"b_{number - 1}"] if number % 2 else []}
        for number in range(6)
    ]  # fmt: skip
    members = [
        {"group_id": "billing", "member_id": id_, "client_id": id_[0], "generation": 1}
        for id_ in ("a_0", "b_0", "b_2", "b_4")
    ]
    events = [
        {
            "id": str(number),
            "group_id": "billing",
            "member_id": "a_0",
            "ended_at": at(60 * number),
            "duration_seconds": 0.25,
        }
        for number in range(6)
    ]
    found = churn.churn(
        rows_of(spark, schemas.REBALANCES, *changes),
        rows_of(spark, schemas.CLIENT_EVENTS, *events),
        rows_of(spark, schemas.GROUP_MEMBERS, *members),
    )
    assert found.schema.simpleString() == schemas.CHURN.schema.simpleString()
    rows = {row.member_id: row for row in found.collect()}
    whole = rows[None]
    assert (whole.rebalances, whole.moved, whole.min_moves, whole.seconds_not_consuming) == (6, 12, 6, 3.0)
    assert (whole.storm, whole.flapping) == (True, True)
    assert (rows["a_0"].rebalances, rows["a_0"].seconds_not_consuming, rows["a_0"].flapping) == (
        0,
        1.5,
        False,
    )
    assert [rows[id_].flapping for id_ in ("b_0", "b_2", "b_4")] == [True] * 3
    assert [row.date for row in rows.values()] == [date(2026, 11, 20)] * len(rows)
