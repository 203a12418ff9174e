"""Small histories whose answers were worked out by hand."""

from typing import Any

import pytest

from groupwright.pipeline._what_if.history import TopicMetadata


def test_sticky_moves_less_than_range_when_a_member_joins_and_another_leaves(past: Any, column: Any) -> None:
    # range cuts 6 partitions in 0-2 and 3-5, then in 0-1, 2-3 and 4-5: 2 leaves a, 4 and 5 leave b; then,
    # without a, in 0-2 and 3-5: 3 leaves b. sticky gives c one of each, and in the end gives out what a had,
    # no more.
    past.generation(1, {"a": {"orders": range(6)}})
    past.generation(2, {"a": {"orders": [0, 1, 2]}, "b": {"orders": [3, 4, 5]}})
    past.generation(3, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}, "c": {"orders": [4, 5]}})
    past.generation(4, {"b": {"orders": [0, 1, 2]}, "c": {"orders": [3, 4, 5]}})
    played = past.play("range", "sticky", "cooperative-sticky")
    assert column(played["actual"], "moved") == [0, 3, 3, 1]
    assert column(played["range"], "moved") == [0, 3, 3, 1]
    assert column(played["sticky"], "moved") == [0, 3, 2, 0]
    assert column(played["cooperative-sticky"], "moved") == [0, 3, 2, 0]
    assert column(played["range"], "min_moves") == [0, 3, 2, 0]
    assert column(played["sticky"], "rounds") == [1, 1, 1, 1]
    assert column(played["cooperative-sticky"], "rounds") == [1, 2, 2, 1], "a move takes a second rebalance"


def test_a_conversion_to_kip_848_and_back_is_no_generation(past: Any, column: Any) -> None:
    """The tombstone and the first record of the converted group are written at the same time."""
    two = {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}
    past.generation(1, {"a": {"orders": [0, 1, 2, 3]}}).generation(2, two)
    past.generation(None, {}).generation(2, two)
    converted = past.rows[-4:]
    for row in converted:
        row["time"] = converted[0]["time"]
    past.generation(3, {"a": {"orders": [0, 1, 2, 3]}})
    played = past.play("range")
    for name in ("actual", "range"):
        assert column(played[name], "generation") == [1, 2, 3]
        assert column(played[name], "stopped") == [0, 4, 4]


def test_each_assignor_plays_its_own_history(past: Any, column: Any) -> None:
    # roundrobin had a: 0 2 4, b: 1 3 5; with c it deals a: 0 3, b: 1 4, c: 2 5, so 2 and 4 leave a, 3 and 5
    # leave b.
    past.generation(1, {"a": {"orders": [0, 1, 2]}, "b": {"orders": [3, 4, 5]}})
    past.generation(2, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}, "c": {"orders": [4, 5]}})
    played = past.play("roundrobin")
    assert column(played["roundrobin"], "moved") == [0, 4]
    assert column(played["actual"], "moved") == [0, 3]


def test_range_leaves_idle_members_where_sticky_balances_over_all_topics(past: Any, column: Any) -> None:
    # Two topics of one partition each: range gives both to a, sticky one to each.
    past.generation(1, {"a": {"audit": [0], "orders": [0]}, "b": {}}, subscribed={"b": ["audit", "orders"]})
    played = past.play("range", "sticky")
    assert column(played["range"], "imbalance") == [2]
    assert column(played["sticky"], "imbalance") == [0]
    assert column(played["range"], "topic_spread") == [1.0]


def test_co_partitioned_topics_stay_together_and_move_less_than_with_range(past: Any, column: Any) -> None:
    # range cuts 6 partitions of both topics in 0-2 and 3-5, then in 0-1, 2-3 and 4-5: three numbers move. Two
    # are enough.
    pairs = {"a": [0, 1, 2], "b": [3, 4, 5]}
    past.generation(1, {id_: {"orders": share, "payments": share} for id_, share in pairs.items()})
    pairs = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    past.generation(2, {id_: {"orders": share, "payments": share} for id_, share in pairs.items()})
    played = past.play("range", "co-partitioned-sticky")
    assert column(played["range"], "moved") == [0, 6]
    assert column(played["co-partitioned-sticky"], "moved") == [0, 4]
    assert column(played["co-partitioned-sticky"], "imbalance") == [0, 0]
    assert column(played["co-partitioned-sticky"], "rounds") == [1, 2]


def test_a_topic_has_the_partitions_that_were_seen_until_then(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1]}})
    past.generation(2, {"a": {"orders": [0, 1, 2, 3]}})
    past.generation(3, {"a": {"orders": [0]}})
    assert column(past.play("range")["range"], "partitions") == [2, 4, 4]


def test_a_table_of_topics_wins_over_what_was_seen(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0]}})
    assert column(past.play("range", topics={"orders": TopicMetadata(8)})["range"], "partitions") == [8]


def test_partitions_with_no_replica_in_their_consumers_rack_are_far(past: Any, column: Any) -> None:
    # The even partitions are in r1, the odd ones in r2. In fact a (r1) had 0 1, b (r2) had 2 3: 1 and 2 were
    # far.
    topics = {"orders": TopicMetadata(4, (("r1",), ("r2",), ("r1",), ("r2",)))}
    past.generation(1, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}, racks={"a": "r1", "b": "r2"})
    past.generation(2, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}, racks={"a": "r1", "b": "r2"})
    played = past.play("range", "roundrobin", "sticky", topics=topics)
    assert column(played["actual"], "rack_mismatches") == [2, 2]
    assert column(played["actual"], "min_moves") == [0, 2]
    assert column(played["range"], "rack_mismatches") == [0, 0]
    assert column(played["sticky"], "rack_mismatches") == [0, 0]


def test_racks_are_null_where_nobody_told_them(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0]}}, racks={"a": "r1"})
    assert column(past.play("range")["range"], "rack_mismatches") == [None]


def test_a_static_member_keeps_its_partitions_under_a_new_member_id(past: Any, column: Any) -> None:
    past.generation(1, {"a-1": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}, instances={"a-1": "host-a"})
    past.generation(2, {"a-2": {"orders": [2, 3]}, "b": {"orders": [0, 1]}}, instances={"a-2": "host-a"})
    played = past.play("sticky")
    assert column(played["actual"], "moved") == [0, 4]
    assert column(played["sticky"], "moved") == [0, 0]


def test_who_comes_back_after_the_group_was_empty_owns_nothing(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}})
    past.generation(2, {})
    past.generation(3, {"a": {"orders": [2, 3]}, "b": {"orders": [0, 1]}})
    played = past.play("sticky")
    assert column(played["actual"], "generation") == [1, 3]
    assert column(played["actual"], "moved") == [0, 0]


def test_of_several_records_of_one_generation_the_last_counts(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1]}, "b": {"orders": [2]}})
    past.generation(1, {"a": {"orders": [0]}, "b": {"orders": [1, 2]}})
    played = past.play("range")
    assert column(played["actual"], "generation") == [1]
    assert column(played["actual"], "moved") == [0]


def test_a_partition_that_its_owner_no_longer_subscribes_to_is_not_moved_but_lost(
    past: Any, column: Any
) -> None:
    past.generation(1, {"a": {"audit": [0], "orders": [0]}, "b": {}}, subscribed={"b": ["orders"]})
    past.generation(
        2, {"a": {"audit": [0]}, "b": {"orders": [0]}}, subscribed={"a": ["audit"], "b": ["orders"]}
    )
    assert column(past.play("range")["actual"], "moved") == [0, 0]


def test_a_group_whose_rows_cannot_be_has_an_error_and_no_measures(past: Any) -> None:
    past.generation(1, {"a": {"orders": [2**31 - 1]}})
    played = past.play("range")
    assert [row["moved"] for row in played["range"]] == [None]
    assert "2147483648 partitions" in played["range"][0]["error"]


@pytest.mark.filterwarnings("error")
def test_a_group_that_is_created_again_repeats_its_generations(past: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1]}})
    past.offset += 1
    past.rows.append({"log_partition": 7, "log_offset": past.offset, "time": 2_000_000, "is_empty": False})
    past.generation(1, {"b": {"orders": [0, 1]}})
    assert [row["generation"] for row in past.play("range")["range"]] == [1, 1]
