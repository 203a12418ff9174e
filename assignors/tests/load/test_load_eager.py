"""Eager groups: members revoke all partitions before they join, and send what they were assigned last."""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Group,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    Topic,
    assign,
    evaluate_load,
    simulate,
    unassigned,
)
from groupwright.assignors._wire.load_data import MemberLoadData, encode_load_data

if TYPE_CHECKING:
    from assignors.tests.load.conftest import Load

Seeded = Callable[[int], random.Random]

T = ["topic"]
WEIGHTS = [8, 7, 5, 4, 3, 3]


def had(id_: str, *partitions: int, generation: int = 3, capacity: float = 1.0) -> Member:
    """Return a member that joins without partitions, and sends those that it was assigned last."""
    previous = PartitionsByTopic({"topic": partitions}) if partitions else PartitionsByTopic()
    sent = encode_load_data(MemberLoadData(generation, capacity, previous_assignment=previous))
    return Member(id_, T, user_data=sent)


def planned(*members: Member, weights: list[float] | None = None) -> dict[str, list[int]]:
    topics = {"topic": Topic(6, weights=weights or WEIGHTS)}
    assignment = assign(LoadAwareAssignor(), Group(members, topics))
    return {id_: list(share.get("topic", ())) for id_, share in assignment.items()}


@pytest.mark.slow
def test_while_loads_are_within_the_tolerance_nothing_moves(load: "type[Load]", seeded: Seeded) -> None:
    """The weights drift after each rebalance; all members join again, and may have other capacities."""
    kept = 0
    for seed in range(50):
        rng = seeded(400_000 + seed)

        def drift(group: Group, rng: random.Random = rng) -> Group:
            return load.drifted(rng, group, 0.04)

        events = load.eagerly(load.fresh_group(rng), drift, drift)
        for last, event in pairwise(events):
            owned = {each.id: each.owned for each in event.before.members}
            (rebalance,) = event.rebalances
            assert all(not each.owned for each in rebalance.group.members), "they have revoked everything"
            report = evaluate_load(rebalance.group, owned)
            if all(report.loads.values()) and report.peak_over_bound <= 1.1:
                assert event.assignment == last.assignment, seed
                kept += 1
    assert kept > 50


@pytest.mark.slow
def test_an_eager_group_moves_what_a_cooperative_one_moves(load: "type[Load]", seeded: Seeded) -> None:
    """The number of the fewest is in `test_load_oracle`; the next rebalance moves nothing."""
    moves = {"eager": 0, "cooperative": 0}
    for seed in range(60):
        group = load.owning_group(seeded(500_000 + seed))
        eager, again = load.eagerly(group, lambda settled: settled)
        assert unassigned(eager.group, eager.assignment) == PartitionsByTopic()
        assert again.assignment == eager.assignment, seed
        moves["eager"] += eager.moved.count
        (cooperative,) = simulate(group, LoadAwareAssignor())
        moves["cooperative"] += cooperative.moved.count
    assert moves["cooperative"] > 40
    assert moves["eager"] <= 1.02 * moves["cooperative"]


def test_a_new_eager_group_is_assigned_as_any_new_group(load: "type[Load]", seeded: Seeded) -> None:
    for seed in range(10):
        group = load.fresh_group(seeded(800 + seed))
        (played,) = load.eagerly(group)
        assert played.assignment == assign(LoadAwareAssignor(), group)


def test_a_partition_that_moves_is_assigned_at_once() -> None:
    """Its owner has revoked it: there is nothing to wait for."""
    assert planned(had("a", 0, 1, 2, 3), had("b", 4, 5)) == {"a": [0, 1], "b": [2, 3, 4, 5]}


@pytest.mark.parametrize(("newer", "older"), [("a", "b"), ("b", "a")])
def test_of_two_members_that_claim_a_partition_the_higher_generation_keeps_it(newer: str, older: str) -> None:
    """The older one was expelled, and its partitions were assigned to the newer one meanwhile."""
    members = had(newer, 0, 1, 2, generation=4), had(older, 0, 1, 2, generation=3)
    assert planned(*members, weights=[5] * 6) == {newer: [0, 1, 2], older: [3, 4, 5]}


def test_what_two_members_claim_in_one_generation_belongs_to_neither() -> None:
    assert planned(had("a", 0, 3, 4), had("b", 1, 2, 5)) == {"a": [0, 3, 4], "b": [1, 2, 5]}
    contested = planned(had("a", 0, 3, 4, 5), had("b", 1, 2, 5))
    assert (contested["a"], contested["b"]) == ([0, 3, 4], [1, 2, 5])


def test_a_member_that_sends_no_previous_assignment_is_filled_by_the_others() -> None:
    """It runs an earlier release, or is new; no other partitions move."""
    earlier = Member("b", T, user_data=encode_load_data(MemberLoadData(3, 1.0)))
    assert planned(had("a", 0, 3, 4), earlier) == {"a": [0, 3, 4], "b": [1, 2, 5]}


def test_claims_in_a_subscription_come_first() -> None:
    """A cooperative member still owns them, whatever another member claims in a higher generation."""
    owner = Member("a", T, owned={"topic": [0, 3, 4]}, generation=3)
    liar = had("b", 0, 1, 2, 5, generation=2**31 - 1)
    group = Group([owner, liar], {"topic": Topic(6, weights=WEIGHTS)})
    assignment = assign(LoadAwareAssignor(), group, cooperative=True)
    assert assignment == {"a": {"topic": [0, 3, 4]}, "b": {"topic": [1, 2, 5]}}


@pytest.mark.parametrize("protocol", [RebalanceProtocol.EAGER, None])
def test_a_member_sends_its_last_assignment_unless_it_is_cooperative(
    protocol: RebalanceProtocol | None,
) -> None:
    """Without the protocol, it does not know that its subscription has the partitions."""
    assignor = LoadAwareAssignor()
    assignor.rebalance_protocol = protocol
    assert assignor.user_data(frozenset(T)) == encode_load_data(MemberLoadData())
    assignor.on_assignment(PartitionsByTopic({"topic": [4, 1]}), 7)
    previous = PartitionsByTopic({"topic": [1, 4]})
    assert assignor.user_data(frozenset(T)) == encode_load_data(
        MemberLoadData(7, previous_assignment=previous)
    )
    assignor.rebalance_protocol = RebalanceProtocol.COOPERATIVE
    assert assignor.user_data(frozenset(T)) == encode_load_data(MemberLoadData(7))
    assignor.rebalance_protocol = protocol
    assignor.on_assignment(PartitionsByTopic(), 8)
    assert assignor.user_data(frozenset(T)) == encode_load_data(MemberLoadData(8))
