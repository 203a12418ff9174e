"""The number of series: bounded by groups, clients and topics, as the README states."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Rebalance
from groupwright.instrumentation import (
    GroupLoad,
    Leadership,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    Metrics,
    instrument,
)
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics
from groupwright.instrumentation._metrics.labels import REQUESTS

GROUPS = 10
TOPICS = [f"topic-{number}" for number in range(100)]
PER_TOPIC = 6
"""Assigned, revoked, lost; owned; lag and its maximum."""
PER_CLIENT = 276
"""Series of one consumer with all metrics and one assignor, without those of topics; 210 are buckets."""
SERIES = GROUPS * (PER_CLIENT + PER_TOPIC * len(TOPICS)) + 1

PER_LEADER = 5
"""Series that the member has which leads: moves, the fewest needed, imbalance, members, undecodable ones."""
PER_LEADER_BY_WEIGHT = 7
"""Those that come with weights: the peak, its bound, load checks by outcome, their moves."""

PER_ASSIGNOR = 20
"""Rebalances by outcome, and the histogram of their durations."""

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def count(registry: CollectorRegistry, suffix: str = "") -> int:
    return sum(
        sample.name.endswith(suffix) and not sample.name.endswith("_created")
        for family in registry.collect()
        for sample in family.samples
    )


def names(registry: CollectorRegistry) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    return {
        (sample.name, frozenset(sample.labels.items()))
        for family in registry.collect()
        for sample in family.samples
    }


def test_ten_groups_of_a_hundred_topics_have_as_many_series_as_the_readme_states(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], new_rebalance: Callable[..., Rebalance]
) -> None:
    consumers = list(busy(registry, new_consumer, new_rebalance))
    assert len(consumers) == GROUPS

    series = count(registry)

    assert series == SERIES
    assert count(registry, "_bucket") == GROUPS * 210
    assert f"{SERIES:,}" in README
    assert f"**{PER_CLIENT}** series" in README
    assert f"**{PER_TOPIC}** a topic" in README


@pytest.mark.medium
def test_what_happens_again_adds_no_series(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], new_rebalance: Callable[..., Rebalance]
) -> None:
    """A generation, a member id or a reason as a label would: these are new in each rebalance."""
    consumers = list(busy(registry, new_consumer, new_rebalance))
    partitions = {topic: [0] for topic in TOPICS}
    before = names(registry)
    for number, consumer in enumerate(consumers):
        for listener in consumer.listeners:
            listener.rebalanced(
                new_rebalance(
                    partitions=partitions,
                    generation=100 + number,
                    member_id=f"m-{number}",
                    reason=f"because of {number}",
                )
            )

    assert names(registry) == before


def test_a_leader_has_as_many_series_however_many_members_it_leads(
    registry: CollectorRegistry,
    new_consumer: Callable[..., Any],
    new_rebalance: Callable[..., Rebalance],
    new_load_check: Callable[..., LoadCheckResult],
) -> None:
    """The loads of the members are in the record of the rebalance, and not in labels."""
    consumer = new_consumer()
    listener = instrument(consumer, registry)
    listener.rebalanced(new_rebalance())
    followed = count(registry)
    listener.rebalanced(new_rebalance(leadership=Leadership(3, 0, 0, 0)))
    assert count(registry) - followed == PER_LEADER

    for members in (3, 300):
        loads = {f"m-{number}": 1.0 for number in range(members)}
        load = GroupLoad(loads, "m-0", peak=1.0, bound=1.0, moved_load=0.0)
        listener.rebalanced(new_rebalance(leadership=Leadership(members, 0, 0, 0, load)))
        for outcome in LoadCheckOutcome:
            listener.load_checked(new_load_check(outcome))
        assert count(registry) - followed == PER_LEADER + PER_LEADER_BY_WEIGHT

    assert f"**{PER_LEADER}** more, and **{PER_LEADER_BY_WEIGHT}** more" in " ".join(README.split())


def test_each_further_assignor_has_series_of_its_own(new_consumer: Callable[..., Any]) -> None:
    series = []
    for strategies in ("range", "range,my-own"):
        registry = CollectorRegistry()
        consumer = new_consumer(settings={"partition.assignment.strategy": strategies})
        instrument(consumer, registry)
        series.append(count(registry))

    assert series[1] - series[0] == PER_ASSIGNOR
    assert f"adds **{PER_ASSIGNOR}**" in README


def busy(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], new_rebalance: Callable[..., Rebalance]
) -> Iterable[Any]:
    """One consumer in each group, which has seen every usual kind of thing in every topic."""
    partitions = {topic: [0, 1, 2] for topic in TOPICS}
    snapshot = MembershipSnapshot(
        state="stable",
        coordinator=1,
        round_trip=0.001,
        heartbeat_age=0.1,
        requests=dict.fromkeys(REQUESTS, 1),
        poll_seconds=1.0,
        max_poll_interval=300.0,
    )
    fetched = PartitionStatistics(9, 10, -1001, 10, 0, 10, 10)
    offsets = {(topic, number): fetched for topic in TOPICS for number in range(3)}
    for number in range(GROUPS):
        callbacks = LibrdkafkaCallbacks(lambda _: ConsumerStatistics(1.0, "stable", None, {}, offsets))
        consumer = new_consumer(group_id=f"group-{number}", membership_snapshot=snapshot)
        consumer.callbacks = callbacks
        consumer.settings = {"partition.assignment.strategy": "range"}
        listener = Metrics.of(registry).add_consumer(consumer, callbacks=callbacks)
        listener.partitions_assigned(partitions, 0.1)
        listener.partitions_revoked(partitions, 0.1)
        listener.partitions_lost(partitions, 0.1)
        listener.partitions_assigned(partitions, 0.1)
        listener.rebalanced(new_rebalance(partitions=partitions))
        callbacks.record_statistics("")
        listener.rebalanced(new_rebalance(protocol=None, outcome=Outcome.FAILED))
        listener.commit_ended(0.1, None)
        yield consumer
