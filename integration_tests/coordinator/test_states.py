"""Group states Empty, PreparingRebalance, CompletingRebalance, Stable and Dead, and their responses."""

import pytest

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.coordinator.conftest import NewWireMember
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import OK

pytestmark = pytest.mark.kafka


def test_a_group_is_dead_before_its_first_member_and_after_its_deletion(
    kafka: Kafka, wire_member: NewWireMember, group: str
) -> None:
    """A coordinator reports unknown groups as Dead."""
    member = wire_member()
    assert member.state() == "Dead"

    member.settle()
    assert member.leave() == OK
    assert member.state() == "Empty"
    kafka.admin().delete_consumer_groups([group], request_timeout=PATIENCE)[group].result()

    assert member.state() == "Dead"
    assert member.heartbeat() == "UNKNOWN_MEMBER_ID"


def test_a_group_prepares_while_it_waits_for_its_members_and_completes_while_it_waits_for_the_plan(
    wire_member: NewWireMember,
) -> None:
    """A rebalance goes through Stable, PreparingRebalance, CompletingRebalance and Stable."""
    first, second = wire_member("first"), wire_member("second")
    first.settle()
    assert first.state() == "Stable"

    second.be_given_id()
    assert first.state() == "Stable"  # an id is no membership yet
    second.send_join()
    wait_until(lambda: first.state() == "PreparingRebalance", "the rebalance to be prepared")
    assert second.waits()

    first.send_join()
    assert [first.joined(), second.joined()] == [OK, OK]
    observer = wire_member("observer")
    assert observer.state() == "CompletingRebalance"
    second.send_sync()
    assert observer.state() == "CompletingRebalance"
    assert second.waits()

    first.send_sync({first.id: b"", second.id: b""})
    assert [first.synced(), second.synced()] == [OK, OK]
    assert observer.state() == "Stable"


def test_a_group_is_empty_once_its_last_member_has_left(wire_member: NewWireMember) -> None:
    first, second = wire_member("first"), wire_member("second")
    first.settle(second)

    assert first.leave() == OK
    assert second.state() == "PreparingRebalance"
    assert second.leave() == OK

    assert second.state() == "Empty"


def test_a_heartbeat_says_that_the_group_rebalances_only_until_all_have_joined(
    wire_member: NewWireMember,
) -> None:
    """REBALANCE_IN_PROGRESS means "join"; while the assignment is awaited, the heartbeat succeeds."""
    first, second = wire_member("first"), wire_member("second")
    first.settle()
    assert first.heartbeat() == OK

    second.be_given_id()
    second.send_join()
    wait_until(lambda: first.heartbeat() == "REBALANCE_IN_PROGRESS", "the heartbeat to report the rebalance")
    assert first.heartbeat() == "REBALANCE_IN_PROGRESS"

    first.send_join()
    assert [first.joined(), second.joined()] == [OK, OK]
    assert first.heartbeat() == OK

    first.send_sync({first.id: b"", second.id: b""})
    assert first.synced() == OK
    second.send_sync()
    assert second.synced() == OK
    assert [first.heartbeat(), second.heartbeat()] == [OK, OK]


def test_a_commit_is_taken_while_the_group_prepares_and_refused_while_it_completes(
    wire_member: NewWireMember, new_kafka_topic: NewKafkaTopic
) -> None:
    """A member may commit its revoked partitions until it joins; then they have no owner."""
    topic = new_kafka_topic()
    first, second = wire_member("first"), wire_member("second")
    first.settle()
    assert first.commit(topic, 1) == OK

    second.be_given_id()
    second.send_join()
    wait_until(lambda: first.heartbeat() == "REBALANCE_IN_PROGRESS", "the heartbeat to report the rebalance")
    assert first.commit(topic, 2) == OK

    first.send_join()
    assert [first.joined(), second.joined()] == [OK, OK]
    assert first.commit(topic, 3) == "REBALANCE_IN_PROGRESS"
    assert first.commit(topic, 3, generation=first.generation - 1) == "ILLEGAL_GENERATION"

    first.send_sync({})
    assert first.synced() == OK
    assert first.commit(topic, 4) == OK
