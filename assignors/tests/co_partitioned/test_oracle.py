"""The assignor against an optimum that a library finds: the assignment of bundles to seats."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    CoPartitionedStickyAssignor,
    Group,
    Member,
    assign,
    by_name,
)
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.co_partitioned.conftest import CooperativeGroup, Joined, Reference

Seeded = Callable[[int], random.Random]
MakeGroup = Callable[[random.Random], Group]
MakeLists = Callable[[random.Random, Group], list[list[str]]]


@pytest.fixture
def settled(
    reference: "type[Reference]", cooperative: "type[CooperativeGroup]"
) -> Callable[[Group, "Joined"], tuple["Reference", Assignment]]:
    """A function that returns what a group settles in, after comparing it with the optimum."""

    def settle(group: Group, joined: "Joined") -> tuple["Reference", Assignment]:
        known = reference(group, joined)
        assignor = CoPartitionedStickyAssignor(joined, allow_unequal=True)
        assignment = cooperative(assignor, joined).settle(group)
        assert known.score(assignment) == known.optimum()
        return known, assignment

    return settle


Settled = Callable[[Group, "Joined"], tuple["Reference", Assignment]]


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(3, 1))
def test_with_topics_joined_as_range_joins_them_nothing_better_is_possible(
    seeded: Seeded, arbitrary_group: MakeGroup, settled: Settled, block: int
) -> None:
    worth = 0
    for seed in range(300):
        known, _ = settled(arbitrary_group(seeded(1000 * block + seed)), None)
        worth += any(len(bundle.partitions) > 1 for bundle in known.bundles) and known.optimum().moved > 0
    assert worth > 30, "groups with joined topics in which something has to move"


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(3, 1))
def test_with_lists_of_topics_nothing_better_is_possible(
    seeded: Seeded, arbitrary_group: MakeGroup, some_lists: MakeLists, settled: Settled, block: int
) -> None:
    worth = 0
    for seed in range(300):
        rng = seeded(10_000 + 1000 * block + seed)
        group = arbitrary_group(rng)
        known, _ = settled(group, some_lists(rng, group))
        worth += any(len(bundle.partitions) > 1 for bundle in known.bundles) and known.optimum().moved > 0
    assert worth > 30


@pytest.mark.slow
def test_bundles_of_one_size_that_are_not_split_move_the_fewest_partitions(
    seeded: Seeded, settled: Settled
) -> None:
    moved = 0
    for seed in range(150):
        rng = seeded(20_000 + seed)
        group, topics = group_of_alike_members(rng)
        _, assignment = settled(group, [topics])
        changed = Group(
            [
                *(
                    Member(member.id, topics, owned=assignment[member.id], generation=1)
                    for member in group.members
                    if rng.random() < 0.7
                ),
                *(Member(f"new-{number}", topics) for number in range(rng.randint(1, 3))),
            ],
            group.topics,
        )
        known, assignment = settled(changed, [topics])
        fewest = known.optimum(in_partitions=True).moved
        assert known.moved_partitions(assignment) == fewest
        moved += fewest
    assert moved > 200


@pytest.mark.slow
@pytest.mark.parametrize("before", ["roundrobin", "cooperative-sticky"])
def test_a_change_from_an_assignor_that_splits_bundles_moves_the_fewest_partitions(
    seeded: Seeded, settled: Settled, before: str
) -> None:
    moved = 0
    for seed in range(100):
        group, topics = group_of_alike_members(seeded(30_000 + seed))
        assignment = assign(by_name(before), group)
        members = [
            Member(member.id, topics, owned=assignment[member.id], generation=1) for member in group.members
        ]
        known, assignment = settled(Group(members, group.topics), [topics])
        fewest = known.optimum(in_partitions=True).moved
        assert known.moved_partitions(assignment) == fewest
        moved += fewest
    assert moved > 300


@pytest.mark.slow
def test_bundles_that_are_split_at_random_move_few_partitions_more_than_needed(
    seeded: Seeded, settled: Settled
) -> None:
    """The choice between members that own equally many partitions of a bundle is a heuristic."""
    moved = fewest = 0
    for seed in range(100):
        rng = seeded(35_000 + seed)
        group, topics = group_of_alike_members(rng)
        owned: list[dict[str, list[int]]] = [{} for _ in group.members]
        for name, topic in group.topics.items():
            for number in range(topic.partitions):
                rng.choice(owned).setdefault(name, []).append(number)
        members = [
            Member(member.id, topics, owned=claims, generation=1)
            for member, claims in zip(group.members, owned, strict=True)
        ]
        known, assignment = settled(Group(members, group.topics), [topics])
        moved += known.moved_partitions(assignment)
        fewest += known.optimum(in_partitions=True).moved
    assert fewest < moved < 1.05 * fewest, (moved, fewest)


def group_of_alike_members(rng: random.Random) -> tuple[Group, list[str]]:
    """Return members that own nothing and subscribe to two or three topics of one size, and these."""
    topics = rng.sample(["audit", "orders", "payments"], rng.randint(2, 3))
    members = [Member(f"c{number}", topics) for number in range(rng.randint(2, 7))]
    return Group(members, dict.fromkeys(topics, rng.randint(4, 14))), topics


@pytest.mark.medium
def test_without_joined_topics_it_is_cooperative_sticky(seeded: Seeded, arbitrary_group: MakeGroup) -> None:
    for seed in range(200):
        group = arbitrary_group(seeded(40_000 + seed))
        assignment = assign(CoPartitionedStickyAssignor([]), group)
        assert assignment == assign(CooperativeStickyAssignor(), group)
