"""Histories: weights drift, members come, go and lie, and a group settles within two rebalances."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Group,
    LoadAwareAssignor,
    Member,
    Topic,
    assign,
    evaluate_load,
)
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.load.conftest import Load

Seeded = Callable[[int], random.Random]


def test_noise_below_the_tolerance_never_moves_a_partition(load: "type[Load]", seeded: Seeded) -> None:
    rng = seeded(1)
    weights = {f"t{number}": [rng.paretovariate(2) for _ in range(40)] for number in range(5)}
    names = sorted(weights)
    group = Group(
        [Member(f"c{number}", names) for number in range(8)],
        {n: Topic(40, weights=weights[n]) for n in names},
    )
    assignor = LoadAwareAssignor()
    group = load.settle(assignor, group)
    for generation in range(60):
        noisy = {
            name: Topic(40, weights=[weight * rng.uniform(0.9, 1.1) for weight in weights[name]])
            for name in names
        }
        assignment = assign(assignor, Group(group.members, noisy), cooperative=True)
        assert assignment == {member.id: member.owned for member in group.members}, generation


@pytest.mark.medium
def test_drift_moves_little_at_a_time_and_the_loads_stay_within_the_tolerance(
    load: "type[Load]", seeded: Seeded
) -> None:
    rng = seeded(2)
    names = [f"t{number}" for number in range(5)]
    topics = {name: Topic(40, weights=[rng.uniform(1, 5) for _ in range(40)]) for name in names}
    assignor = LoadAwareAssignor()
    group = load.settle(assignor, Group([Member(f"c{number}", names) for number in range(8)], topics))
    rebalances = moves = 0
    for _ in range(50):
        group = load.drifted(rng, group, 0.05)
        settled = load.settle(assignor, group)
        before = {member.id: member.owned for member in group.members}
        report = evaluate_load(settled, {member.id: member.owned for member in settled.members}, before)
        assert report.peak_over_bound <= 1.1001
        rebalances += report.moves > 0
        moves += report.moves
    assert 0 < rebalances < 25, "weights have to drift for some time until partitions move"
    assert moves < 10 * rebalances, "of 200"


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
def test_the_second_rebalance_moves_nothing_else(load: "type[Load]", seeded: Seeded, block: int) -> None:
    for seed in range(20 * block, 20 * (block + 1)):
        rng = seeded(9000 + seed)
        group = load.owning_group(rng)
        assignor = LoadAwareAssignor(
            tolerance=rng.choice([0.0, 0.02, 0.1, 0.3]), max_skew=rng.choice([None, None, 1, 3])
        )
        settled = load.settle(assignor, group)
        assert assign(assignor, settled) == {member.id: member.owned for member in settled.members}


@pytest.mark.slow
@pytest.mark.parametrize("history", first_of(20, 6))
def test_in_a_long_history_no_partition_has_two_owners_or_none(
    load: "type[Load]", seeded: Seeded, history: int
) -> None:
    """Members join, leave, resubscribe and claim partitions falsely; topics grow; weights drift."""
    rng = seeded(history)
    names = [f"t{number}" for number in range(rng.randint(2, 5))]

    def some_topics() -> list[str]:
        return rng.sample(names, rng.randint(1, len(names)))

    def topic(partitions: int) -> Topic:
        return Topic(
            partitions, weights=[rng.choice([0, 1, rng.paretovariate(1)]) for _ in range(partitions)]
        )

    assignor = LoadAwareAssignor(max_skew=rng.choice([None, 2]))
    group = Group(
        [load.member(f"c{number}", some_topics(), capacity=rng.choice([1, 1, 3])) for number in range(3)],
        {name: topic(rng.randint(1, 9)) for name in names},
    )
    for event in range(25):
        members, topics = list(group.members), dict(group.topics)
        at = rng.randrange(len(members))
        chosen = members[at]
        match rng.randrange(6):
            case 0:
                members.append(load.member(f"n{event}", some_topics(), capacity=rng.choice([0.5, 1, 2])))
            case 1 if len(members) > 1:
                members.pop(at)
            case 2:
                members[at] = Member(
                    chosen.id,
                    some_topics(),
                    owned=chosen.owned,
                    generation=chosen.generation,
                    user_data=b"\0\1lies",
                )
            case 3:
                claims = {name: rng.sample(range(12), 3) for name in some_topics()}
                members[at] = Member(
                    chosen.id, chosen.topics, owned=claims, generation=rng.choice([-1, 0, chosen.generation])
                )
            case 4:
                name = rng.choice(names)
                topics[name] = topic(topics[name].partitions + rng.randint(0, 3))
            case _:
                name = rng.choice(names)
                topics[name] = topic(topics[name].partitions)
        group = load.settle(assignor, Group(members, topics))


@pytest.mark.slow
@pytest.mark.parametrize("block", first_of(4, 1))
def test_the_result_depends_on_the_content_alone(load: "type[Load]", seeded: Seeded, block: int) -> None:
    for seed in range(25 * block, 25 * (block + 1)):
        rng = seeded(300 + seed)
        group = load.owning_group(rng)
        members = [
            Member(
                each.id,
                rng.sample(each.topics, len(each.topics)),
                owned=each.owned,
                generation=each.generation,
                user_data=each.user_data,
            )
            for each in rng.sample(group.members, len(group.members))
        ]
        topics = dict(rng.sample(sorted(group.topics.items(), key=str), len(group.topics)))
        assert assign(LoadAwareAssignor(), Group(members, topics)) == assign(LoadAwareAssignor(), group)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [2.0**-60, 2.0**10, 2.0**40])
def test_weights_in_another_unit_change_nothing(load: "type[Load]", seeded: Seeded, unit: float) -> None:
    for seed in range(40):
        group = load.owning_group(seeded(600 + seed))
        scaled = {
            name: Topic(topic.partitions, weights=topic.weights * unit)
            for name, topic in group.topics.items()
            if topic.weights is not None
        }
        assert assign(LoadAwareAssignor(), Group(group.members, scaled)) == assign(LoadAwareAssignor(), group)
