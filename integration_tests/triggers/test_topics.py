"""Rebalances triggered by topics: the exact callbacks and generations that follow."""

import pytest
from confluent_kafka.cimpl import NewPartitions

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.wire import wait_until_known
from integration_tests.triggers.conftest import Settle

pytestmark = pytest.mark.kafka

Partition = tuple[str, int]


def all_of(topic: str, partitions: int = 2) -> list[Partition]:
    return [(topic, number) for number in range(partitions)]


def test_a_topic_that_matches_a_regular_expression_is_consumed_once_it_is_there(
    kafka: Kafka, member: Join, settle: Settle, group: str, *, cooperative: bool
) -> None:
    """No subscription changes: a member finds the matching topic, and rejoins."""
    orders, payments = f"{group}.orders", f"{group}.payments"
    kafka.create_topic(orders, partitions=2)
    wait_until_known(kafka.bootstrap_servers, orders, partitions=2)
    alone = member("alone", [f"^{group}\\..*"])
    settle(1, alone)

    kafka.create_topic(payments, partitions=2)
    kafka.create_topic(f"not-{group}.orders")
    settle(2, alone)

    everything = all_of(orders) + all_of(payments)
    if cooperative:
        assert alone.callbacks == [("assign", all_of(orders)), ("assign", all_of(payments))]
    else:
        assert alone.callbacks == [
            ("assign", all_of(orders)),
            ("revoke", all_of(orders)),
            ("assign", everything),
        ]
    assert sorted(alone.owned) == everything


def test_what_is_assigned_of_a_topic_that_is_deleted_is_given_up(
    kafka: Kafka, member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    stays, deleted = sorted([new_kafka_topic(partitions=2), new_kafka_topic(partitions=2)])
    alone = member("alone", [stays, deleted])
    settle(1, alone)

    kafka.admin().delete_topics([deleted], request_timeout=PATIENCE)[deleted].result()
    settle(3 if cooperative else 2, alone)

    everything = all_of(stays) + all_of(deleted)
    if cooperative:
        assert alone.callbacks == [
            ("assign", everything),
            ("revoke", all_of(deleted)),
            ("assign", []),
            ("assign", []),
        ]
    else:
        assert alone.callbacks == [("assign", everything), ("revoke", everything), ("assign", all_of(stays))]
    assert alone.errors == []


def test_partitions_that_a_topic_gains_are_assigned(
    kafka: Kafka, member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    topic = new_kafka_topic(partitions=2)
    alone = member("alone", [topic])
    settle(1, alone)

    kafka.admin().create_partitions([NewPartitions(topic, 3)], request_timeout=PATIENCE)[topic].result()
    settle(2, alone)

    if cooperative:
        assert alone.callbacks == [("assign", all_of(topic)), ("assign", [(topic, 2)])]
    else:
        assert alone.callbacks == [
            ("assign", all_of(topic)),
            ("revoke", all_of(topic)),
            ("assign", all_of(topic, 3)),
        ]


def test_another_subscription_is_another_assignment(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    """A cooperative member keeps the topics of its new subscription, and revokes the others first."""
    before, both, after = (new_kafka_topic(partitions=2) for _ in range(3))
    alone = member("alone", [before, both])
    settle(1, alone)
    first = sorted(all_of(before) + all_of(both))
    assert alone.callbacks == [("assign", first)]
    alone.callbacks.clear()

    alone.subscribe([both, after])
    settle(2, alone)

    if cooperative:
        assert alone.callbacks == [("revoke", all_of(before)), ("assign", all_of(after))]
    else:
        assert alone.callbacks == [("revoke", first), ("assign", sorted(all_of(both) + all_of(after)))]


def test_the_same_subscription_again_is_a_rebalance_of_an_eager_member_alone(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    """librdkafka behaves the same way."""
    topic = new_kafka_topic(partitions=2)
    alone = member("alone", [topic])
    settle(1, alone)

    alone.subscribe([topic])
    settle(1 if cooperative else 2, alone)

    again = [] if cooperative else [("revoke", all_of(topic)), ("assign", all_of(topic))]
    assert alone.callbacks == [("assign", all_of(topic)), *again]
