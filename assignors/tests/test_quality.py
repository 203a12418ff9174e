"""The quality of an assignment, counted in plain loops, and the best quality, found by trying all."""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator

import pytest

from groupwright.assignors import (
    Assignment,
    AssignmentQuality,
    AssignorError,
    Group,
    InvalidInputError,
    Member,
    Topic,
    assign,
    builtin_assignors,
    by_name,
    evaluate,
)
from groupwright.testing.assignors import random_groups

Partition = tuple[str, int]
Owners = dict[Partition, str]

CHAIN = Group(
    [
        Member("a", ["orders"], owned={"orders": range(9)}),
        Member("b", ["orders", "audit"], owned={"orders": range(9, 15), "audit": range(4)}),
        Member("c", ["audit"], owned={"audit": range(4, 15)}),
    ],
    {"orders": 15, "audit": 15},
)


def test_a_chain_that_other_assignors_leave_as_it_is_could_be_even() -> None:
    """Loads of 9, 10 and 11: no single move helps, two of them, by way of the member in the middle, do."""
    stays = {member.id: member.owned for member in CHAIN.members}
    quality = evaluate(CHAIN, stays)
    assert quality == AssignmentQuality(
        partitions=30,
        unassigned=0,
        imbalance=2,
        min_imbalance=0,
        deviation=quality.deviation,
        sum_of_squares=302,
        min_sum_of_squares=300,
        rack_mismatches=0,
        min_rack_mismatches=0,
        moves=0,
        min_moves=2,
        spreads={"audit": 7, "orders": 3},
    )
    assert quality.deviation == pytest.approx(math.sqrt(2 / 3))
    assert quality.max_spread == 7


def test_the_best_may_have_to_be_uneven() -> None:
    group = Group([Member("a", ["t"]), Member("b", ["t", "u"]), Member("c", [])], {"t": 1, "u": 6})
    quality = evaluate(group, {"a": {"t": [0]}, "b": {"u": range(6)}})
    assert (quality.imbalance, quality.min_imbalance) == (6, 6)
    assert (quality.sum_of_squares, quality.min_sum_of_squares) == (37, 37)
    assert quality.spreads == {"t": 1, "u": 0}


def test_partitions_that_nobody_is_given_are_counted_and_moved_if_somebody_had_them() -> None:
    group = Group([Member("a", ["t"], owned={"t": [0, 1, 2]}), Member("b", ["t"])], {"t": 4})
    quality = evaluate(group, {"a": {"t": [0, 1]}})
    assert (quality.partitions, quality.unassigned) == (4, 2)
    assert (quality.moves, quality.min_moves) == (1, 1)


def test_what_leaves_a_member_that_could_not_have_kept_it_is_not_moved() -> None:
    """It no longer subscribes, or is gone, or the partition is; or another's claim is newer."""
    group = Group(
        [
            Member("a", ["t"], owned={"t": [0, 7], "u": [0], "gone": [0]}, generation=3),
            Member("b", ["t", "u"], owned={"t": [0]}, generation=2),
        ],
        {"t": 2, "u": 1},
    )
    assert evaluate(group, {"a": {"t": [0]}, "b": {"t": [1], "u": [0]}}).moves == 0
    assert evaluate(group, {"a": {"t": [1]}, "b": {"t": [0], "u": [0]}}).moves == 1


def test_what_was_before_may_be_said_instead_of_claimed() -> None:
    group = Group([Member("a", ["t"], owned={"t": [0, 1]}), Member("b", ["t"])], {"t": 2})
    now = {"a": {"t": [0]}, "b": {"t": [1]}}
    before = Assignment({"b": {"t": [1]}, "left": {"t": [0]}})
    assert evaluate(group, now).moves == 1
    assert evaluate(group, now, before).moves == 0
    assert evaluate(group, now, {}).min_moves == 0


def test_far_is_who_is_in_a_rack_without_a_replica() -> None:
    group = Group(
        [
            Member("a", ["t", "u"], rack="here"),
            Member("b", ["t", "u"], rack="there"),
            Member("c", ["t", "u"]),
        ],
        {"t": Topic(4, racks=[["here"], ["here", "there"], ["nowhere"], []]), "u": 2},
    )
    rack_mismatches = evaluate(
        group, {"a": {"t": [2], "u": [0]}, "b": {"t": [0, 3]}, "c": {"t": [1], "u": [1]}}
    )
    assert (rack_mismatches.rack_mismatches, rack_mismatches.min_rack_mismatches) == (2, 0)


def test_a_group_without_partitions_is_evaluated() -> None:
    for group in (Group([], {}), Group([Member("a", ["none"]), Member("b", [])], {"t": 3})):
        quality = evaluate(group, {})
        assert (quality.partitions, quality.sum_of_squares, quality.spreads, quality.max_spread) == (
            0,
            0,
            {},
            0,
        )


def test_an_invalid_assignment_is_not_evaluated() -> None:
    group = Group([Member("a", ["t"])], {"t": 1})
    with pytest.raises(AssignorError, match="partition 1 of 't', which has 1 partitions"):
        evaluate(group, {"a": {"t": [1]}})
    with pytest.raises(InvalidInputError, match="a plan must map"):
        evaluate(group, {"a": ["t"]})  # type: ignore[dict-item]  # what is refused here too


@pytest.mark.medium
def test_quality_equals_what_plain_loops_count(seeded: Callable[[int], random.Random]) -> None:
    rng = seeded(1)
    moves = rack_mismatches = 0
    for group in random_groups(seed=1, count=400):
        plan: dict[str, dict[str, list[int]]] = {member.id: {} for member in group.members}
        for (topic, partition), able in able_members(group).items():
            if rng.random() < 0.9:
                plan[rng.choice(able).id].setdefault(topic, []).append(partition)
        quality = evaluate(group, plan)
        assert quality == counted(group, plan, quality)
        moves += quality.moves
        rack_mismatches += quality.rack_mismatches
    assert moves > 500
    assert rack_mismatches > 500


@pytest.mark.slow
def test_the_best_is_the_best_of_all_assignments() -> None:
    tried = 0
    for group in random_groups(seed=2, count=1000):
        able = able_members(group)
        if 1 < math.prod(map(len, able.values())) <= 2000:
            best = min(score(group, owners) for owners in all_assignments(able))
            quality = evaluate(group, {})
            assert (quality.min_sum_of_squares, quality.min_rack_mismatches, quality.min_moves) == best
            tried += 1
    assert tried > 100


@pytest.mark.slow
def test_no_assignor_is_better_than_the_best() -> None:
    for group in random_groups(seed=3, count=200):
        for assignor in builtin_assignors():
            quality = evaluate(group, assign(assignor, group))
            if not quality.unassigned:
                assert (quality.sum_of_squares, quality.rack_mismatches, quality.moves) >= (
                    quality.min_sum_of_squares,
                    quality.min_rack_mismatches,
                    quality.min_moves,
                )


@pytest.mark.medium
def test_a_million_partitions_are_evaluated() -> None:
    topics = {f"topic-{number:04}": 1000 for number in range(1000)}
    group = Group([Member(f"member-{number:04}", topics) for number in range(2000)], topics)
    quality = evaluate(group, by_name("roundrobin").assign(group))
    assert (quality.sum_of_squares, quality.min_sum_of_squares) == (500_000_000, 500_000_000)
    assert quality.max_spread == 1


def able_members(group: Group) -> dict[Partition, list[Member]]:
    """Who may have each partition."""
    return {
        (topic, partition): subscribers
        for topic, subscribers in group.subscribers().items()
        for partition in range(group.topics[topic].partitions)
    }


def all_assignments(able: dict[Partition, list[Member]]) -> Iterator[Owners]:
    for owners in itertools.product(*able.values()):
        yield {place: owner.id for place, owner in zip(able, owners, strict=True)}


def owned_before(group: Group) -> Owners:
    claims: dict[Partition, list[Member]] = {}
    for member in group.members:
        for topic, partitions in member.owned.items():
            for partition in partitions.tolist():
                claims.setdefault((topic, partition), []).append(member)
    owners = {}
    for place, able in able_members(group).items():
        claimants = claims.get(place, [])
        newest = [m for m in claimants if m.generation == max(other.generation for other in claimants)]
        if len(newest) == 1 and newest[0] in able:
            owners[place] = newest[0].id
    return owners


def loads(group: Group, owners: Owners) -> list[int]:
    return [sum(owner == member.id for owner in owners.values()) for member in group.members]


def score(group: Group, owners: Owners) -> tuple[int, int, int]:
    rack_of = {member.id: member.rack for member in group.members}
    rack_mismatches = 0
    for (topic, partition), owner in owners.items():
        racks = (group.topics[topic].racks or {partition: None})[partition]
        rack_mismatches += bool(racks and rack_of[owner] and rack_of[owner] not in racks)
    moves = sum(owners.get(place) != owner for place, owner in owned_before(group).items())
    return sum(load**2 for load in loads(group, owners)), rack_mismatches, moves


def counted(
    group: Group, plan: dict[str, dict[str, list[int]]], quality: AssignmentQuality
) -> AssignmentQuality:
    owners = {
        (topic, partition): id_
        for id_, share in plan.items()
        for topic in share
        for partition in share[topic]
    }
    sum_of_squares, rack_mismatches, moves = score(group, owners)
    able = able_members(group)
    of_members = loads(group, owners)
    assert quality.deviation == pytest.approx(statistics.pstdev(of_members))
    spreads = {}
    for topic, subscribers in group.subscribers().items():
        shares = [len(plan[member.id].get(topic, [])) for member in subscribers]
        spreads[topic] = max(shares) - min(shares)
    return AssignmentQuality(
        partitions=len(able),
        unassigned=len(able) - len(owners),
        imbalance=max(of_members) - min(of_members),
        min_imbalance=quality.min_imbalance,
        deviation=quality.deviation,
        sum_of_squares=sum_of_squares,
        min_sum_of_squares=quality.min_sum_of_squares,
        rack_mismatches=rack_mismatches,
        min_rack_mismatches=quality.min_rack_mismatches,
        moves=moves,
        min_moves=quality.min_moves,
        spreads=spreads,
    )
