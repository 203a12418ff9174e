"""librdkafka's statistics, completed by what the membership knows."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from groupwright.consumer._membership.librdkafka_stats import with_group_state
from groupwright.consumer._protocol.transitions import State
from groupwright.core import TopicPartitionKey

NONE = -1001
NOTHING: Mapping[TopicPartitionKey, int] = {}


def statistics(**partition: int) -> str:
    """Return librdkafka's statistics of one partition, whose log ends at 100, and at 110 uncommitted."""
    fields = {
        "partition": 0,
        "app_offset": NONE,
        "stored_offset": NONE,
        "committed_offset": NONE,
        "commited_offset": NONE,
        "hi_offset": 110,
        "ls_offset": 100,
        "consumer_lag": -1,
        "consumer_lag_stored": -1,
    }
    return json.dumps(
        {
            "name": "c",
            "topics": {"t": {"topic": "t", "partitions": {"0": fields | partition}}},
            "cgrp": {"state": "up", "join_state": "init", "assignment_size": 0},
        }
    )


def completed(
    text: str,
    state: State = State.STABLE,
    owned: int = 1,
    *,
    committed: Mapping[TopicPartitionKey, int] = NOTHING,
    prefetched: Mapping[TopicPartitionKey, int] = NOTHING,
    read_uncommitted: bool = False,
) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        with_group_state(text, state, owned, committed, prefetched, read_uncommitted=read_uncommitted)
    )
    return found


def partition_of(text: str, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = completed(text, **given)["topics"]["t"]["partitions"]["0"]
    return found


@pytest.mark.parametrize(("read_uncommitted", "lag"), [(False, 60), (True, 70)])
def test_the_lag_is_counted_from_the_committed_offset(*, read_uncommitted: bool, lag: int) -> None:
    found = partition_of(statistics(), committed={("t", 0): 40}, read_uncommitted=read_uncommitted)

    assert (found["committed_offset"], found["commited_offset"], found["consumer_lag"]) == (40, 40, lag)


@pytest.mark.parametrize("end", [NONE, 39])
def test_without_an_end_beyond_the_committed_offset_there_is_no_lag(end: int) -> None:
    assert partition_of(statistics(ls_offset=end), committed={("t", 0): 40})["consumer_lag"] == -1


def test_nothing_is_said_of_a_partition_without_a_committed_offset() -> None:
    text = statistics(app_offset=7, stored_offset=7, consumer_lag_stored=93)

    assert (
        partition_of(text, committed={("t", 1): 40}, prefetched={("u", 0): 3})
        == json.loads(text)["topics"]["t"]["partitions"]["0"]
    )


def test_what_was_prefetched_is_not_taken() -> None:
    text = statistics(app_offset=65, stored_offset=65, consumer_lag_stored=35)

    found = partition_of(text, prefetched={("t", 0): 5})

    assert (found["app_offset"], found["stored_offset"], found["consumer_lag_stored"]) == (5, 5, 95)


def test_what_is_stored_by_hand_is_not_set_back() -> None:
    found = partition_of(statistics(app_offset=65), prefetched={("t", 0): 5})

    assert (found["app_offset"], found["stored_offset"], found["consumer_lag_stored"]) == (5, NONE, -1)


@pytest.mark.parametrize(
    ("state", "join_state"),
    [
        (State.UNJOINED, "init"),
        (State.PREPARING_REBALANCE, "wait-join"),
        (State.COMPLETING_REBALANCE, "wait-sync"),
        (State.STABLE, "steady"),
    ],
)
def test_the_group_s_state_is_the_membership_s(state: State, join_state: str) -> None:
    found = completed(statistics(), state, 3)["cgrp"]

    assert found == {"state": "up", "join_state": join_state, "assignment_size": 3}


def test_statistics_of_a_handle_without_a_group_have_none() -> None:
    assert "cgrp" not in completed('{"topics": {}}')
