"""Cost of rebalances: handovers belong to their rebalance, stopped partitions, and for how long."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from groupwright.assignors import (
    CooperativeStickyAssignor,
    Group,
    Member,
    SimulatedEvent,
    by_name,
    simulate,
)
from groupwright.core.assignor_traits import BROKERS
from groupwright.pipeline._what_if.history import TopicMetadata


def two_joins(past: Any) -> Any:
    """A cooperative group of 1, 2 and 3 members: each join has a handover.

    The members measured the second rebalance and its handover as one: it took 1.5 s until generation 2, which
    is written after 2 s, and the handover 1.25 s.
    """
    cooperative = {"protocol": "cooperative-sticky"}
    past.generation(1, {"a": {"t": range(6)}}, **cooperative)
    past.generation(2, {"a": {"t": [0, 1, 2]}, "b": {}}, **cooperative)
    past.generation(3, {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}}, measured=(0.5, 3.25), **cooperative)
    past.generation(4, {"a": {"t": [0, 1]}, "b": {"t": [3, 4]}, "c": {}}, **cooperative)
    past.generation(5, {"a": {"t": [0, 1]}, "b": {"t": [3, 4]}, "c": {"t": [2, 5]}}, **cooperative)
    return past


def test_handovers_belong_to_their_rebalance_in_the_record_as_in_the_simulation(
    past: Any, column: Any
) -> None:
    played = two_joins(past).play("cooperative-sticky", "range", "sticky")
    for name in ("generation", "rounds", "moved", "min_moves", "imbalance", "stopped"):
        assert column(played["actual"], name) == column(played["cooperative-sticky"], name)
    assert column(played["actual"], "generation") == [1, 2, 4]
    assert column(played["actual"], "rounds") == [1, 2, 2]
    assert column(played["actual"], "imbalance") == [0, 0, 0]
    assert column(played["range"], "rounds") == [1, 1, 1]


def test_eager_assignors_stop_everything_and_cooperative_ones_what_moves(past: Any, column: Any) -> None:
    played = two_joins(past).play("cooperative-sticky", "sticky", "range")
    assert column(played["cooperative-sticky"], "stopped") == [0, 3, 2]
    assert column(played["sticky"], "stopped") == [0, 6, 6]
    assert column(played["sticky"], "moved") == [0, 3, 2], "moves alone do not tell them apart"
    # The second join has no measured duration: the medians are those of the first.
    assert column(played["actual"], "partition_seconds") == [0.0, 3 * 1.25, 2 * 1.25]
    assert column(played["cooperative-sticky"], "partition_seconds") == [0.0, 3 * 1.25, 2 * 1.25]
    assert column(played["sticky"], "partition_seconds") == [0.0, 6 * 1.5, 6 * 1.5]


def test_the_broker_assigns_once_and_what_moves_waits_for_a_heartbeat(past: Any, column: Any) -> None:
    played = two_joins(past).play("broker:uniform", "broker:range")
    found = played["broker:uniform"]
    assert column(found, "rounds") == [1, 1, 1]
    assert column(found, "moved") == column(found, "stopped") == [0, 3, 2]
    assert column(found, "partition_seconds") == [0.0, 3 * 2.5, 2 * 2.5]
    assert column(played["broker:range"], "moved") == [0, 3, 3]


def test_the_brokers_waits_are_unknown_where_nothing_was_measured(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"t": range(6)}})
    past.generation(2, {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}})
    found = past.play("broker:uniform")["broker:uniform"]
    assert (column(found, "stopped"), column(found, "partition_seconds")) == ([0, 3], [0.0, None])


def test_partitions_of_a_member_that_left_stop_with_every_assignor(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})
    past.generation(2, {"a": {"t": [0, 1, 2, 3]}}, measured=(1.0, 5.0))
    played = past.play("cooperative-sticky", "sticky")
    assert column(played["cooperative-sticky"], "stopped") == [0, 2]
    assert column(played["cooperative-sticky"], "partition_seconds") == [0.0, 8.0]
    assert column(played["actual"], "stopped") == [0, 4], "range is eager"


def test_costs_are_null_rather_than_zero_where_they_are_unknown(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"t": [0, 1]}}, protocol="of-our-own")
    past.generation(2, {"a": {"t": [0]}, "b": {"t": [1]}}, protocol="of-our-own")
    played = past.play("range")
    assert column(played["actual"], "stopped") == [None, None], "its protocol is unknown"
    assert column(played["range"], "stopped") == [0, 2]
    assert column(played["range"], "partition_seconds") == [0.0, None], "no duration is known"


def test_generations_that_look_like_handovers_but_are_not(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"t": range(4)}, "b": {}})
    past.generation(2, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})  # moved at once: the group is eager
    past.generation(3, {"a": {"t": [0, 1]}, "b": {"t": [2, 3, 4]}})  # the topic has grown
    past.generation(4, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})  # 4 is withheld ...
    past.generation(5, {"a": {"t": [0, 1, 4]}, "b": {"t": [2, 3]}})  # ... and handed over
    assert column(past.play("range")["actual"], "generation") == [1, 2, 3, 4]
    assert column(past.play("range")["actual"], "rounds") == [1, 1, 1, 2]


def test_the_peak_load_is_known_where_weights_are(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})
    weights = {"t": TopicMetadata(0, None, (30.0, 10.0, 0.0, 0.0))}
    played = past.play("roundrobin", topics=weights)
    assert column(played["actual"], "peak_load") == [2.0]
    assert column(played["roundrobin"], "peak_load") == [1.5]
    assert column(past.play("range", topics={})["range"], "peak_load") == [None]


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(6))
def test_a_recorded_group_of_cooperative_sticky_costs_what_simulate_says(
    past: Any, joins_and_leaves: Callable[..., Any], seed: int
) -> None:
    """Random events are played by `simulate`, and every rebalance recorded as its own generation."""
    group = Group([Member("m-00", ["t"])], {"t": 12})
    played = simulate(group, CooperativeStickyAssignor(), joins_and_leaves(seed, "t", 12))
    number = 0
    for event in played:
        for rebalance in event.rebalances:
            number += 1
            shares = {id_: {"t": list(own.get("t", ()))} for id_, own in rebalance.assignment.items()}
            past.generation(number, shares, protocol="cooperative-sticky")
    rows = past.play("cooperative-sticky")
    expected = [(len(e.rebalances), _size(e.moved), _size(e.revoked) + _orphaned(e)) for e in played]
    for assignor in ("actual", "cooperative-sticky"):
        found = [(row["rounds"], row["moved"], row["stopped"]) for row in rows[assignor]]
        assert found == expected


@pytest.mark.parametrize("assignor", BROKERS)
def test_the_brokers_assignors_cost_what_simulate_says(
    past: Any, joins_and_leaves: Callable[..., Any], assignor: str
) -> None:
    group = Group([Member("m-00", ["t"])], {"t": 12})
    played = simulate(group, by_name(assignor), joins_and_leaves(7, "t", 12))
    for number, event in enumerate(played, 1):
        shares = {id_: {"t": list(own.get("t", ()))} for id_, own in event.assignment.items()}
        past.generation(number, shares)
    expected = [(_size(e.moved), _size(e.revoked) + _orphaned(e)) for e in played]
    assert [(row["moved"], row["stopped"]) for row in past.play(assignor)[assignor]] == expected
    assert sum(moved for moved, _ in expected) > 0


def _orphaned(event: SimulatedEvent) -> int:
    """Partitions that no member of the group owned when the event began, but a member that left."""
    owned = sum(_size(member.owned) for member in event.before.members)
    return 12 - owned if any(member.owned for member in event.before.members) else 0


def _size(partitions: Mapping[str, Any]) -> int:
    return sum(map(len, partitions.values()))
