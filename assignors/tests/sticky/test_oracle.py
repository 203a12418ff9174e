"""The sticky assignors against an optimum that a library finds: the assignment of partitions to seats.

Balance, racks and moves must equal the optimum in every group. Point 5 of the priorities, the spread, is a
heuristic, and not looked at here.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import Group, Member, PartitionsByTopic, StickyAssignor, Topic, assign, unassigned
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.sticky.conftest import CooperativeGroup, Reference

pytestmark = pytest.mark.slow

Seeded = Callable[[int], random.Random]


@pytest.mark.parametrize("block", first_of(4, 1))
def test_whatever_members_claim_nothing_better_is_possible(
    seeded: Seeded,
    reference: "type[Reference]",
    eagerly: Callable[[Group], Group],
    arbitrary_group: Callable[[random.Random], Group],
    block: int,
) -> None:
    worth = 0
    for seed in range(800):
        group = arbitrary_group(seeded(1000 * block + seed))
        assignment = assign(StickyAssignor(), eagerly(group))
        assert unassigned(group, assignment) == PartitionsByTopic()
        best = reference.optimum(group)
        assert reference.score(group, assignment) == best, (block, seed)
        worth += best.rack_mismatches > 0 and best.moved > 0
    assert worth > 50, "groups in which racks cannot all match and something has to move"


@pytest.mark.parametrize("events", [1, 2, 3, 4, 5])
def test_whatever_happens_to_a_group_at_rest_nothing_better_is_possible(
    seeded: Seeded,
    reference: "type[Reference]",
    eagerly: Callable[[Group], Group],
    eventful_group: Callable[[random.Random, int], Group],
    events: int,
) -> None:
    moved = 0
    for seed in range(450):
        group = eventful_group(seeded(5000 * events + seed), events)
        assignment = assign(StickyAssignor(), eagerly(group))
        best = reference.optimum(group)
        assert reference.score(group, assignment) == best, (events, seed)
        moved += best.moved
    assert moved > 450


@pytest.mark.parametrize("block", first_of(4, 1))
def test_the_second_round_of_a_cooperative_rebalance_ends_at_the_optimum(
    seeded: Seeded,
    reference: "type[Reference]",
    cooperative: "CooperativeGroup",
    arbitrary_group: Callable[[random.Random], Group],
    eventful_group: Callable[[random.Random, int], Group],
    block: int,
) -> None:
    for seed in range(125 * block, 125 * (block + 1)):
        rng = seeded(70_000 + seed)
        group = arbitrary_group(rng) if seed % 2 else eventful_group(rng, 1 + seed % 5)
        assert reference.score(group, cooperative.settle(group)) == reference.optimum(group), seed


def test_nothing_better_is_possible_in_larger_groups_either(
    seeded: Seeded, reference: "type[Reference]", eagerly: Callable[[Group], Group]
) -> None:
    for seed in range(40):
        rng = seeded(90_000 + seed)
        names = [f"topic-{number:02}" for number in range(rng.randint(5, 14))]
        racks = ["a", "b", "c"] if seed % 2 else []
        topics = {}
        for name in names:
            size = rng.randint(1, 24)
            replicas = rng.randint(1, 2)
            topics[name] = Topic(size, [rng.sample(racks, replicas) for _ in range(size)] if racks else None)
        owned: list[dict[str, list[int]]] = [{} for _ in range(rng.randint(6, 16))]
        crowded = rng.choice((1, 3))  # the higher, the more of what there is is with few members
        for name, topic in topics.items():
            for partition in range(topic.partitions):
                member = int(len(owned) * rng.random() ** crowded)
                owned[member].setdefault(name, []).append(partition)
        members = [
            Member(
                f"member-{number:02}",
                rng.sample(names, rng.randint(1, 5)),
                owned=share,
                generation=1,
                rack=rng.choice([*racks, None]),
            )
            for number, share in enumerate(owned)
        ]
        group = Group(members, topics)
        assert reference.score(group, assign(StickyAssignor(), eagerly(group))) == reference.optimum(group), (
            seed
        )
