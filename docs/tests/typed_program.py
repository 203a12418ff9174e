"""A program that uses the public API, and asserts the types that a type checker infers.

It is not run. `make types` checks it with mypy and pyright; `make test-wheel` does so against the wheel.
"""

# pyright: strict

from typing import Any, assert_type

import confluent_kafka
from confluent_kafka import Message, TopicPartition
from prometheus_client import CollectorRegistry

from groupwright.assignors import (
    Assignment,
    AssignmentQuality,
    Assignor,
    CooperativeStickyAssignor,
    Group,
    LoadAwareAssignor,
    Plan,
    ProcessingTime,
    assign,
    builtin_assignors,
    by_name,
    evaluate,
)
from groupwright.consumer import AIOConsumer, Consumer, ConsumerError, ConsumerInterceptor
from groupwright.core import GroupwrightError, MembershipSnapshot, Rebalance, RebalanceListener
from groupwright.instrumentation import (
    Instrumentation,
    RebalanceEvent,
    create_instrumented,
    instrument,
    to_callback,
)
from groupwright.testing import LocalKafka
from groupwright.testing.assignors import Report, check, random_groups


class FirstTakesAll(Assignor):
    name = "first-takes-all"

    def assign(self, group: Group) -> Plan:
        first = min(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.topics[topic].partitions) for topic in group.subscribers()}}


class Audit(RebalanceListener):
    def rebalanced(self, rebalance: Rebalance) -> None:
        assert_type(rebalance.generation, int)


class Count(ConsumerInterceptor):
    def on_consume(self, messages: list[Message]) -> list[Message]:
        return messages


def consume(config: dict[str, Any]) -> None:
    def on_assign(consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        consumer.pause(partitions)

    strategy = [FirstTakesAll(), LoadAwareAssignor(weights=ProcessingTime()), "range"]
    with Consumer(
        {**config, "partition.assignment.strategy": strategy, "interceptors": [Count()]}
    ) as consumer:
        assert_type(consumer, Consumer)
        as_before: confluent_kafka.Consumer = consumer
        del as_before
        consumer.subscribe(["orders"], on_assign=on_assign)
        assert_type(consumer.poll(1.0), Message | None)
        assert_type(consumer.consume(10, timeout=1.0), list[Message])
        assert_type(consumer.assignment(), list[TopicPartition])
        assert_type(consumer.subscription(), list[str])
        assert_type(consumer.memberid(), str | None)
        assert_type(consumer.current_lag(TopicPartition("orders", 0)), int | None)
        assert_type(consumer.membership_snapshot, MembershipSnapshot)
        consumer.add_listener(Audit())
        consumer.subscribe("orders")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a string is no list


async def consume_asynchronously(config: dict[str, Any]) -> None:
    consumer = AIOConsumer(config)
    assert_type(await consumer.subscription(), list[str])


def measure(config: dict[str, Any], consumer: Consumer) -> None:
    registry = CollectorRegistry()

    def record(event: RebalanceEvent) -> None:
        assert_type(event.version, int)

    assert_type(instrument(consumer, registry, events=[to_callback(record)]), Instrumentation)
    assert_type(create_instrumented(Consumer, config, registry=registry), Consumer)
    assert_type(create_instrumented(confluent_kafka.Consumer, config), confluent_kafka.Consumer)
    assert_type(create_instrumented(confluent_kafka.Producer, config), confluent_kafka.Producer)


def plan(group: Group) -> None:
    assert_type(by_name("range"), Assignor)
    assert_type(builtin_assignors(), tuple[Assignor, ...])
    assignment = assign(CooperativeStickyAssignor(), group)
    assert_type(assignment, Assignment)
    assert_type(evaluate(group, assignment), AssignmentQuality)
    assert_type(check(FirstTakesAll(), random_groups(seed=1)), Report)


def test_with_kafka() -> None:
    with LocalKafka() as kafka:
        assert_type(kafka, LocalKafka)
        assert_type(kafka.bootstrap_servers, str)


def handle(error: ConsumerError) -> None:
    wider: GroupwrightError = error
    del wider
