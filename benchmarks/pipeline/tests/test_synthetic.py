"""A synthetic history is one that a broker could have written, and is reproducible."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.pipeline.synthetic import (
    Event,
    Fleet,
    GroupTimeline,
    HistoryKind,
    group_generations,
    group_members,
    history,
)
from benchmarks.pipeline.synthetic.commits import commit_batch
from benchmarks.pipeline.synthetic.generations import generation_batch
from benchmarks.pipeline.synthetic.rows import generation_rows, member_rows
from groupwright.pipeline._decoding import decode_batch

_FLEET = Fleet(groups=12, members=3, topics=2, partitions=5, days=0.5, generations=8, commits=10_000, seed=7)


def _java_hash(text: str) -> int:
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def test_every_record_is_decoded_and_is_where_the_group_belongs() -> None:
    batches = [commit_batch(_FLEET, np.arange(_FLEET.commits))]
    batches += [generation_batch(_FLEET, group) for group in range(_FLEET.groups)]
    raw = pa.Table.from_batches(batches).combine_chunks()
    decoded = decode_batch(raw.to_batches()[0]).to_pylist()
    kinds = {row["record_kind"] for row in decoded}
    assert kinds == {
        "offset_commit",
        "group_metadata",
        "consumer_group",
        "consumer_member",
        "target_assignment",
        "target_member",
        "current_member",
    }
    assert {row["log_partition"] for row in decoded} <= set(range(50))
    assert all(row["log_partition"] == abs(_java_hash(row["group_id"])) % 50 for row in decoded)
    assert len({(row["log_partition"], row["log_offset"]) for row in decoded}) == len(decoded)
    in_order = sorted(decoded, key=lambda row: row["log_offset"])
    times = [row["log_time"].timestamp() for row in in_order]
    assert all(later >= earlier - 1 for earlier, later in pairwise(times))
    commits = [row for row in decoded if row["record_kind"] == "offset_commit"]
    assert 50 < sum(row["tombstone"] for row in commits) < 200
    members = [m for row in decoded if row["group_metadata"] for m in row["group_metadata"]["members"]]
    assert all(member["subscription"]["error"] is member["assignment"]["error"] is None for member in members)


def test_a_generation_gives_every_partition_that_is_wanted_to_one_member() -> None:
    for group in range(_FLEET.groups):
        timeline = GroupTimeline.of(_FLEET, group)
        for generation in range(_FLEET.generations):
            for topic in range(_FLEET.topics):
                given = [
                    partition
                    for member in np.flatnonzero(timeline.subscribed[generation, :, topic]).tolist()
                    for partition in range(
                        timeline.starts[generation, member, topic], timeline.ends[generation, member, topic]
                    )
                ]
                assert (
                    given == list(range(_FLEET.partitions))
                    or not timeline.subscribed[generation, :, topic].any()
                )


def test_groups_have_joins_leaves_crashes_and_changed_subscriptions() -> None:
    timelines = [GroupTimeline.of(_FLEET, group) for group in range(_FLEET.groups)]
    assert {event for timeline in timelines for event in timeline.events} == set(Event)
    assert any((timeline.alive[:, :, None] > timeline.subscribed).any() for timeline in timelines)


def test_rows_are_what_the_records_decode_to() -> None:
    for group in (0, 1, 5):
        decoded = decode_batch(generation_batch(_FLEET, group)).to_pylist()
        generations, members = (
            generation_rows(_FLEET, group).to_pylist(),
            member_rows(_FLEET, group).to_pylist(),
        )
        for row, generation in zip(decoded, generations, strict=True):
            says = row["group_metadata"]
            assert generation["group_id"] == row["group_id"]
            assert (generation["generation"], generation["leader"]) == (says["generation"], says["leader"])
            assert generation["member_count"] == len(says["members"])
            assert generation["log_time"] == row["log_time"]
            there = [member for member in members if member["generation"] == says["generation"]]
            for member, said in zip(there, says["members"], strict=True):
                assert (member["member_id"], member["client_id"]) == (said["member_id"], said["client_id"])
                assert member["subscribed"] == said["subscription"]["topics"]
                assert member["assigned"] == said["assignment"]["partitions"]


def test_spark_makes_the_same_history_in_any_number_of_slices(spark: SparkSession) -> None:
    few, many = (history(spark, _FLEET, slices=slices).toArrow() for slices in (1, 5))
    by_place = [("partition", "ascending"), ("offset", "ascending")]
    assert few.sort_by(by_place).equals(many.sort_by(by_place))
    assert history(spark, _FLEET, [HistoryKind.COMMITS]).count() == _FLEET.commits
    assert group_generations(spark, _FLEET).count() == _FLEET.groups * _FLEET.generations
    members = sum(int(GroupTimeline.of(_FLEET, group).alive.sum()) for group in range(_FLEET.groups))
    assert group_members(spark, _FLEET).count() == members


def test_a_fleet_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="groups must be 1 or more, not 0"):
        Fleet(groups=0)
