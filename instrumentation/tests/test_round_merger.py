"""The two rounds of a cooperative rebalance, which Groupwright's consumer reports one by one."""

import math
import queue
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Phase, Rebalance
from groupwright.core import Kind, Trigger
from groupwright.instrumentation import GroupLoad, Leadership, RebalanceEvent, instrument, to_callback
from groupwright.instrumentation._tracking.round_merger import RoundMerger
from integration_tests.harness.patience import PATIENCE

NewRebalance = Callable[..., Rebalance]


@pytest.fixture
def first(new_rebalance: NewRebalance) -> Rebalance:
    """A member joins, and is given nothing while others still own what it is to have."""
    return new_rebalance(
        kind=Kind.COOPERATIVE,
        reason="the consumer subscribed",
        trigger=Trigger.MEMBER,
        duration=0.5,
        phases={Phase.JOIN: 0.3, Phase.SYNC: 0.1, Phase.ASSIGN: 0.1},
        partitions_before={},
        partitions={},
        ended_at=1000.0,
        leadership=Leadership(members=2, moved=2, min_moves=2, imbalance=2),
    )


@pytest.fixture
def second(new_rebalance: NewRebalance) -> Rebalance:
    """Then it is given them."""
    return new_rebalance(
        kind=Kind.COOPERATIVE,
        generation=8,
        duration=0.25,
        phases={Phase.JOIN: 0.1, Phase.SYNC: 0.05, Phase.ASSIGN: 0.1},
        partitions_before={},
        partitions={"orders": [0, 1]},
        ended_at=1001.0,
        leadership=Leadership(members=2, moved=0, min_moves=0, imbalance=0),
    )


def test_a_second_round_belongs_to_the_rebalance_of_the_first(first: Rebalance, second: Rebalance) -> None:
    merger = RoundMerger(6.0)
    assert merger.add(first, now=50.0) == []

    (reported,) = merger.add(second, now=51.0)

    assert (reported.reason, reported.generation, reported.duration) == ("the consumer subscribed", 8, 1.5)
    assert reported.phases == pytest.approx({"join": 0.4, "sync": 0.15, "assign": 0.2})
    assert (reported.partitions_before, reported.partitions) == ({}, {"orders": [0, 1]})
    assert reported.leadership == Leadership(members=2, moved=2, min_moves=2, imbalance=0)
    assert merger.settles_at == math.inf


def test_the_loads_are_those_after_the_second_round_and_the_moves_those_of_both(
    first: Rebalance, second: Rebalance, group_load: GroupLoad
) -> None:
    """A leader that revokes nothing reports the rounds one by one."""
    withheld = GroupLoad({"m-1": 10.0, "m-2": 0.0}, "m-1", peak=2.0, bound=1.8, moved_load=6.0)
    moving = Leadership(members=2, moved=2, min_moves=2, imbalance=2, load=withheld)
    assigning = Leadership(members=2, moved=0, min_moves=0, imbalance=0, load=group_load)
    merger = RoundMerger(6.0)
    merger.add(replace(first, leadership=moving), now=50.0)

    (reported,) = merger.add(replace(second, leadership=assigning), now=51.0)

    assert reported.leadership == replace(
        assigning, moved=2, min_moves=2, load=replace(group_load, moved_load=10)
    )


def test_a_leaders_second_round_belongs_to_it_though_it_knows_more_than_that_the_group_rebalances(
    first: Rebalance, second: Rebalance
) -> None:
    merger = RoundMerger(6.0)
    merger.add(first, now=50.0)

    (reported,) = merger.add(replace(second, reason="a member joined"), now=51.0)

    assert (reported.reason, reported.generation) == ("the consumer subscribed", 8)


def test_a_round_that_no_other_follows_counts_when_it_has_settled(first: Rebalance) -> None:
    merger = RoundMerger(6.0)
    merger.add(first, now=50.0)

    assert merger.settle(now=55.9) == []
    assert [reported.generation for reported in merger.settle(now=56.0)] == [7]
    assert merger.settle(now=99.0) == []


def test_what_comes_later_or_for_another_reason_is_a_rebalance_of_its_own(
    first: Rebalance, second: Rebalance, new_rebalance: NewRebalance
) -> None:
    merger = RoundMerger(6.0)
    merger.add(first, now=50.0)
    assert [reported.generation for reported in merger.add(second, now=57.0)] == [7]
    changed = new_rebalance(
        kind=Kind.COOPERATIVE, generation=9, reason="the subscription changed", trigger=Trigger.MEMBER
    )

    assert [reported.generation for reported in merger.add(changed, now=58.0)] == [8, 9]


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": Kind.EAGER},
        {"kind": Kind.COOPERATIVE},  # it revoked something, so it has reported both rounds
        {"kind": Kind.COOPERATIVE, "outcome": Outcome.FAILED, "phases": {}},
        {"kind": Kind.COOPERATIVE, "outcome": Outcome.LOST, "phases": {}},
    ],
)
def test_what_can_have_no_other_round_is_told_at_once(
    fields: dict[str, Any], new_rebalance: NewRebalance
) -> None:
    assert len(RoundMerger(6.0).add(new_rebalance(**fields), now=50.0)) == 1


def test_what_is_owned_shows_at_once_and_the_event_comes_without_a_scrape(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], second: Rebalance
) -> None:
    """Also after partitions went meanwhile: a rebalance that is reported late must not bring them back."""
    reported: queue.SimpleQueue[RebalanceEvent] = queue.SimpleQueue()
    consumer = new_consumer()
    consumer.settings = {"heartbeat.interval.ms": 50}
    with to_callback(reported.put) as sink:
        listener = instrument(consumer, registry, events=[sink], advise=False)
        listener.rebalanced(second)
        assert (listener.state.owned_by_topic(), listener.state.ended_at) == ({"orders": 2}, None)
        listener.partitions_lost({"orders": [0]}, 0.0)
        assert reported.get(timeout=PATIENCE).generation == 8

    assert listener.state.owned == {("orders", 1)}
    assert listener.state.ended_at == 1001.0


def test_a_round_that_revokes_is_no_second_round(first: Rebalance, second: Rebalance) -> None:
    """A member left, and within the time of a second round another one joins: two rebalances."""
    merger = RoundMerger(6.0)
    merger.add(first, now=50.0)
    joined = replace(second, phases={**second.phases, Phase.REVOKE: 0.0})

    assert merger.add(joined, now=51.0) == [first, joined]
