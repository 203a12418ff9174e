"""Joined topics, balanced by load."""

import random
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Assignment,
    CoPartitionedStickyAssignor,
    Group,
    InvalidInputError,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    RoundRobinAssignor,
    Throughput,
    Topic,
    assign,
    check_load,
    simulate,
    unassigned,
)
from groupwright.assignors._wire.load_data import MemberLoadData, encode_load_data
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assignors.tests.co_partitioned.conftest import CooperativeGroup

PAIR = ["orders", "payments"]


def by_load(tolerance: float = 0.1) -> CoPartitionedStickyAssignor:
    return CoPartitionedStickyAssignor([PAIR], by_load=LoadAwareAssignor(tolerance=tolerance))


def member(id_: str, owned: dict[str, list[int]] | None = None, capacity: float = 1) -> Member:
    sent = encode_load_data(MemberLoadData(1, capacity))
    return Member(id_, PAIR, owned=owned or {}, generation=1 if owned else -1, user_data=sent)


def weighted(orders: "Sequence[float]", payments: "Sequence[float]") -> dict[str, Topic]:
    return {
        "orders": Topic(len(orders), weights=list(orders)),
        "payments": Topic(len(payments), weights=list(payments)),
    }


def both(*numbers: int) -> dict[str, list[int]]:
    return {topic: list(numbers) for topic in PAIR}


def test_a_bundle_weighs_what_its_partitions_weigh_together() -> None:
    """Each topic by itself is even in other ways: only the sums 6, 2, 2, 2 have one half in bundle 0."""
    topics = weighted([5, 1, 1, 0], [1, 1, 1, 2])
    assert by_load().assign(Group([member("a"), member("b")], topics)) == {"a": both(0), "b": both(1, 2, 3)}


def test_a_member_of_twice_the_capacity_owns_twice_the_load() -> None:
    topics = weighted([1] * 6, [2] * 6)
    planned = by_load().assign(Group([member("a", capacity=2), member("b")], topics))
    assert [planned[id_].count for id_ in "ab"] == [8, 4]


def test_user_data_and_weights_are_those_of_the_load_aware_assignor() -> None:
    source = Throughput(window=60)
    inner = LoadAwareAssignor(weights=source, capacity=3)
    assignor = CoPartitionedStickyAssignor([PAIR], by_load=inner)
    assert assignor.weights is source
    assignor.processing_times = {"orders": {0: 0.5}}
    assignor.on_assignment(PartitionsByTopic(both(0)), 7)
    expected = LoadAwareAssignor(capacity=3)
    expected.processing_times = {"orders": {0: 0.5}}
    expected.on_assignment(PartitionsByTopic(both(0)), 7)
    assert assignor.user_data(frozenset(PAIR)) == expected.user_data(frozenset(PAIR))


def test_what_is_no_load_aware_assignor_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="by_load must be a LoadAwareAssignor or None"):
        CoPartitionedStickyAssignor(by_load=RoundRobinAssignor())  # type: ignore[arg-type]


def test_a_load_check_counts_the_partitions_of_bundles_that_would_move() -> None:
    group = Group([member("a"), member("b")], weighted([9, 4, 4, 1], [9, 6, 2, 1]))
    found = check_load(by_load(), group, Assignment({"a": both(0, 1), "b": both(2, 3)}))
    assert str(found) == "busiest member at 1.56 of average, 2 of 8 partitions move, expected 1.00"


class Eager(CoPartitionedStickyAssignor):
    """Rebalances eagerly, as a member does that offers an eager assignor beside this one."""

    protocols = frozenset({RebalanceProtocol.EAGER})


def test_an_eager_group_keeps_its_bundles_within_the_tolerance() -> None:
    """From scratch, bundles 2 and 3 would have one owner, when the weights have changed."""

    def drift(group: Group) -> Group:
        return Group(group.members, weighted([5, 5, 6, 4.3], [5, 5, 6, 4.3]))

    group = Group([Member("a", PAIR), Member("b", PAIR)], weighted([6, 5, 5, 4], [6, 5, 5, 4]))
    start, later = simulate(group, Eager([PAIR], by_load=LoadAwareAssignor()), [drift])
    assert start.assignment == later.assignment == {"a": both(0, 3), "b": both(1, 2)}


def stands_for_bundles(group: Group) -> Group:
    """Return the group with one topic, of which each partition stands for one of each of the pair."""
    weights = [
        sum(pair)
        for pair in zip(*(group.topics[name].weights.tolist() for name in PAIR), strict=True)  # type: ignore[union-attr]
    ]
    members = [
        Member(
            each.id,
            ["bundles"],
            owned={"bundles": each.owned["orders"]} if "orders" in each.owned else {},
            generation=each.generation,
            user_data=each.user_data,
        )
        for each in group.members
    ]
    return Group(members, {"bundles": Topic(len(weights), weights=weights)})


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(40, 10))
def test_bundles_are_balanced_as_partitions_of_their_weight(seed: int) -> None:
    """The oracle is `load-aware` itself, on a topic whose partitions stand for the bundles."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    count = rng.randint(1, 30)
    members = [member(f"m{number}", capacity=rng.choice([1, 1, 2])) for number in range(rng.randint(1, 6))]
    tolerance = rng.choice([0, 0.1, 0.3])
    for generation in range(3, 6):
        topics = weighted(*([rng.paretovariate(1.2) for _ in range(count)] for _ in PAIR))
        group = Group(members, topics)
        ours = assign(by_load(tolerance), group, cooperative=True)
        theirs = assign(LoadAwareAssignor(tolerance=tolerance), stands_for_bundles(group), cooperative=True)
        for each in members:
            numbers = theirs[each.id].as_tuples().get("bundles", ())
            assert ours[each.id].as_tuples() == (dict.fromkeys(PAIR, numbers) if numbers else {})
        (played,) = simulate(group, by_load(tolerance), max_rebalances=3)
        assert unassigned(played.group, played.assignment) == PartitionsByTopic()
        members = [
            Member(
                each.id,
                PAIR,
                owned=played.assignment[each.id],
                generation=generation,
                user_data=each.user_data,
            )
            for each in members
        ]


@pytest.mark.parametrize("seed", range(40))
def test_any_group_settles_with_whole_bundles(
    seed: int,
    arbitrary_group: "Callable[[random.Random], Group]",
    some_lists: "Callable[[random.Random, Group], list[list[str]]]",
    cooperative: "type[CooperativeGroup]",
) -> None:
    """Any subscriptions and claims, also of parts of bundles."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    group = arbitrary_group(rng)
    topics = {
        name: Topic(
            topic.partitions, weights=[rng.choice([0, 1, rng.random() * 9]) for _ in range(topic.partitions)]
        )
        for name, topic in group.topics.items()
    }
    lists = some_lists(rng, group)
    assignor = CoPartitionedStickyAssignor(lists, allow_unequal=True, by_load=LoadAwareAssignor())
    cooperative(assignor, lists).settle(Group(group.members, topics))
