"""The same on Spark: rows of the tables in, rows of the tables out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.assignors import (
    Assignment,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    InvalidInputError,
    Member,
    PartitionsByTopic,
    simulate,
)
from groupwright.pipeline import schemas
from groupwright.pipeline._what_if.java_assignor import java_assignor
from groupwright.pipeline.what_if import (
    ACTUAL,
    JAVA_ASSIGNORS,
    WHAT_IF,
    WHAT_IF_GENERATIONS,
    compare,
    findings,
    run_what_if,
    topic_weights,
)

START = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def tables(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Three consumer groups, one with special characters, and a Connect group, two generations each."""
    generations, members = [], []

    def record(
        group: Any, generation: Any, offset: Any, shares: Any, protocol_type: Any = "consumer"
    ) -> None:
        where = {
            "group_id": group,
            "generation": generation,
            "log_partition": 3,
            "log_offset": offset,
            "log_time": START + timedelta(hours=offset),
        }
        generations.append(
            {
                **where,
                "protocol_type": protocol_type,
                "protocol": "range",
                "member_count": len(shares),
                "tombstone": False,
            }
        )
        for id_, partitions in shares.items():
            assigned = [{"topic": "orders", "partitions": partitions}]
            members.append({**where, "member_id": id_, "subscribed": ["orders"], "assigned": assigned})

    for number, group in enumerate(["billing", "käse ' \" \\ 组", "shipping"]):
        record(group, 1, number, {"a": [0, 1, 2], "b": [3, 4, 5]})
        record(group, 2, number + 10, {"a": [0, 1], "b": [2, 3], "c": [4, 5]})
    record("sink", 1, 99, {"worker-1": [0]}, protocol_type="connect")

    def frame(rows: Any, table: Any) -> Any:
        made = pa.Table.from_pylist(rows, to_arrow_schema(table.schema))
        return spark.createDataFrame(made, table.schema)

    return frame(generations, schemas.GROUP_GENERATIONS), frame(members, schemas.GROUP_MEMBERS)


def test_groups_are_played_by_workers_and_summed_up(tables: tuple[DataFrame, DataFrame]) -> None:
    played = run_what_if(
        tables[0], tables[1], ["range", "roundrobin", "sticky", "broker:uniform"], tasks=2
    ).cache()
    assert [(field.name, field.dataType) for field in played.schema] == [
        (field.name, field.dataType) for field in WHAT_IF_GENERATIONS.schema
    ]
    rows = {(r.group_id, r.assignor, r.generation): r for r in played.collect()}
    assert len(rows) == 3 * 5 * 2, "Connect's worker is no consumer"
    assert {a: rows["käse ' \" \\ 组", a, 2].moved for a in (ACTUAL, "range", "roundrobin", "sticky")} == {
        ACTUAL: 3,
        "range": 3,
        "roundrobin": 4,
        "sticky": 2,
    }
    result = compare(played)
    assert result.columns == WHAT_IF.columns
    sums = {(r.group_id, r.assignor): r for r in result.collect()}
    assert sums["billing", "sticky"].moved_actual == 3
    assert sums["billing", "sticky"].rebalances == 2
    assert sums["billing", "sticky"].errors == 0
    said = "would have stopped 18 partitions instead of 18, and moved"
    assert findings(result, span="this month's") == [
        f"with broker:uniform this month's 6 rebalances {said.replace('18', '6', 1)} 6 instead of 9",
        f"with sticky this month's 6 rebalances {said} 6 instead of 9",
        f"with range this month's 6 rebalances {said} 9 instead of 9",
        f"with roundrobin this month's 6 rebalances {said} 12 instead of 9",
    ]


def test_durations_and_weights_come_from_the_tables(
    spark: SparkSession, tables: tuple[DataFrame, DataFrame]
) -> None:
    durations = [
        {
            "group_id": "billing",
            "generation": 2,
            "completed": START + timedelta(hours=10),
            "started": START + timedelta(hours=9),
            "duration_seconds": 3.0,
        }
    ]
    samples = [
        {"topic": "orders", "partition": number, "end_offset": number * seconds, "time": at(seconds)}
        for number in range(6)
        for seconds in (0, 10)
    ]
    rebalances, end_offsets = (
        spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(table.schema)), table.schema)
        for rows, table in ((durations, schemas.REBALANCES), (samples, schemas.END_OFFSETS))
    )
    weights = topic_weights(end_offsets)
    recreated = [
        {"topic": "orders", "partition": number, "topic_id": "new", "time": at(seconds),
         "end_offset": 5 * number * (seconds - 100)}
        for number in range(6)
        for seconds in (100, 101)
    ]  # fmt: skip
    both = pa.Table.from_pylist([*samples, *recreated], to_arrow_schema(schemas.END_OFFSETS.schema))
    (row,) = topic_weights(spark.createDataFrame(both, schemas.END_OFFSETS.schema)).collect()
    assert row.weights == [5.0 * number for number in range(6)], "the old topic's offsets do not count"
    played = run_what_if(
        *tables, ["cooperative-sticky"], rebalances=rebalances, topics=weights, tasks=1
    ).cache()
    (last,) = played.where("group_id = 'billing' and generation = 2 and assignor = 'actual'").collect()
    assert (last.stopped, last.partition_seconds) == (6, 18.0)
    assert last.peak_load == pytest.approx((4 + 5) / (15 / 3)), "partition n gets n messages per second"
    sums = {(r.group_id, r.assignor): r for r in compare(played).collect()}
    assert sums["billing", "cooperative-sticky"].partition_seconds == 2 * 3.0
    assert sums["billing", "cooperative-sticky"].partition_seconds_actual == 18.0
    assert sums["shipping", "actual"].partition_seconds is None, "no rebalance of the group was measured"
    assert "for" not in findings(compare(played))[0], "unknown for a group is unknown for all"


def test_epochs_of_a_kip_848_group_have_their_durations_and_the_empty_ones_stop_nothing(
    spark: SparkSession,
) -> None:
    """Each rebalance ends a while after the record of its epoch; a static member is back with another id."""
    shares: list[dict[str, list[int]]] = [{"a": [0, 1]}, {}, {"b": [0, 1]}, {"c": [0, 1]}]
    shares.append({"c": [0], "d": [1]})
    generations, members, rebalances = [], [], []
    for number, share in enumerate(shares, 2):
        started, record, completed = (at(100 * number + seconds) for seconds in (0, 1, 5))
        where = {"group_id": "orders-sync", "generation": number, "log_partition": 3, "log_offset": number}
        where |= {"log_time": record}
        generations.append(
            {**where, "group_type": "consumer", "protocol_type": "consumer", "tombstone": False}
        )
        rebalances.append(
            {"group_id": "orders-sync", "group_type": "consumer", "generation": number, "started": started,
             "completed": completed, "duration_seconds": 5.0, "members_after": len(share)}
        )  # fmt: skip
        for id_, partitions in share.items():
            assigned = [{"topic": "orders", "partitions": partitions}]
            instance = "one" if id_ in "bc" else None
            members.append({**where, "member_id": id_, "instance_id": instance, "subscribed": ["orders"],
                            "assigned": assigned})  # fmt: skip
    frames = (
        spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(table.schema)), table.schema)
        for rows, table in (
            (generations, schemas.GROUP_GENERATIONS),
            (members, schemas.GROUP_MEMBERS),
            (rebalances, schemas.REBALANCES),
        )
    )
    played = run_what_if(next(frames), next(frames), ["broker:uniform"], rebalances=next(frames), tasks=1)
    rows = {(row.assignor, row.generation): row for row in played.collect()}
    assert [rows[ACTUAL, number].members for number in (2, 4, 5, 6)] == [1, 1, 1, 2]
    for assignor in (ACTUAL, "broker:uniform"):
        assert [rows[assignor, number].stopped for number in (2, 4, 5, 6)] == [0, 0, 0, 1]
    assert [rows[ACTUAL, number].partition_seconds for number in (2, 4, 5, 6)] == [0.0, 0.0, 0.0, 5.0]


def test_javas_assignors_are_javas_own_and_not_ours(spark: SparkSession) -> None:
    """Java's leave this group unbalanced: the move from c to a takes two steps, by way of b."""
    owned = {
        "a": {"audit": range(9)},
        "b": {"audit": range(9, 15), "orders": range(4)},
        "c": {"orders": range(4, 15)},
    }
    topics = {"a": ["audit"], "b": ["audit", "orders"], "c": ["orders"]}
    members = [
        Member(id_, topics[id_], owned=PartitionsByTopic(share), generation=3) for id_, share in owned.items()
    ]
    group = Group(members, {"audit": 15, "orders": 15})
    (java,) = simulate(group, lambda _: java_assignor("java:cooperative-sticky", spark._jvm)())
    (ours,) = simulate(group, CooperativeStickyAssignor())
    assert sizes(java.assignment) == [9, 10, 11]
    assert sizes(ours.assignment) == [10, 10, 10]


def sizes(assignment: Assignment) -> list[int]:
    return [sum(map(len, share.values())) for _, share in sorted(assignment.items())]


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def test_assignors_of_java_are_replayed_beside_ours(tables: tuple[DataFrame, DataFrame]) -> None:
    assert JAVA_ASSIGNORS == ("java:sticky", "java:cooperative-sticky")
    played = run_what_if(*tables, ["sticky", "cooperative-sticky", *JAVA_ASSIGNORS], tasks=1)
    rows = {(r.group_id, r.assignor, r.generation): r for r in played.collect()}
    assert not [row.error for row in rows.values() if row.error]
    for other in JAVA_ASSIGNORS:
        for measure in ("moved", "rounds", "stopped", "imbalance"):
            ours = rows["billing", other.partition(":")[2], 2][measure]
            assert rows["billing", other, 2][measure] == ours, "with equal subscriptions all are optimal"
    with pytest.raises(AssignorError, match="Java's assignors: java:sticky, java:cooperative-sticky"):
        run_what_if(*tables, ["java:range"])


def test_neither_the_number_of_tasks_nor_other_groups_change_anything(
    spark: SparkSession, tables: tuple[DataFrame, DataFrame]
) -> None:
    """Such as a share group, whose partitions have no owners, and its tombstone."""
    shared = [
        {"group_id": "queue", "group_type": "share", "protocol_type": "share", "generation": number,
         "tombstone": number > 1, "log_partition": 0, "log_offset": number, "log_time": at(number)}
        for number in (1, 2)
    ]  # fmt: skip
    schema = schemas.GROUP_GENERATIONS.schema
    queue = spark.createDataFrame(pa.Table.from_pylist(shared, to_arrow_schema(schema)), schema)

    def result(generations: DataFrame, tasks: int) -> list[Any]:
        rows = run_what_if(generations, tables[1], ["sticky", "cooperative-sticky"], tasks=tasks)
        return sorted(rows.drop("seconds").collect(), key=str)

    assert result(tables[0], 1) == result(tables[0].unionByName(queue), 3)


def test_racks_come_from_a_table_of_topics(spark: SparkSession, tables: tuple[DataFrame, DataFrame]) -> None:
    generations, members = tables
    placed = members.withColumn("rack", F.when(F.col("member_id") == "a", "r1").otherwise("r2"))
    racks = [["r1"], ["r1"], ["r2"], ["r2"], ["r2"], ["r2"]]
    topics = spark.createDataFrame(
        [("orders", 6, racks)], "topic string, partitions int, racks array<array<string>>"
    )
    played = run_what_if(generations, placed, ["sticky"], topics=topics, tasks=1)
    last = played.where("group_id = 'billing' and generation = 2 and assignor = 'sticky'").first()
    assert last is not None
    assert last.rack_mismatches == 0


def test_it_says_at_once_which_assignor_it_lacks(tables: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(AssignorError, match="no assignor is named 'rnage'"):
        run_what_if(tables[0], tables[1], ["range", "rnage"])
    with pytest.raises(InvalidInputError, match="no assignor is given"):
        run_what_if(tables[0], tables[1], [])
    with pytest.raises(InvalidInputError, match="more than once: range, range"):
        run_what_if(tables[0], tables[1], ["range", "range"])
