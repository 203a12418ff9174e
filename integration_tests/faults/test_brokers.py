"""Broker faults: crash, freeze, network partition and rolling restart. The group recovers without errors.

Each test runs a group under load. At the end every acknowledged message must be consumed and committed, and
no partition may ever have had two owners.
"""

import contextlib

import pytest
from confluent_kafka import ConsumerGroupState, ElectionType, TopicPartition

from groupwright.consumer import Consumer
from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.testing import KafkaContainers
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.loaded_group import FaultyGroup, NewFaultyGroup
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import poll_until
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka


@pytest.fixture
def loaded(new_loaded: NewFaultyGroup) -> FaultyGroup:
    """Start three members behind the proxy; return once they are settled and consuming."""
    return of_three(new_loaded())


def of_three(loaded: FaultyGroup, **settings: int) -> FaultyGroup:
    for name in ("a", "b", "c"):
        loaded.join(name, bootstrap_servers=loaded.kafka.proxied_servers, **settings)
    loaded.wait_until_settled()
    loaded.wait_until_progress()
    return loaded


def member_ids(loaded: FaultyGroup) -> list[str | None]:
    return [member.consumer.memberid() for member in loaded.threads]


def test_a_coordinator_that_crashes_is_replaced_and_members_keep_their_ids_and_partitions(
    kafka: KafkaContainers, loaded: FaultyGroup
) -> None:
    before, owned = member_ids(loaded), [member.owned for member in loaded.threads]

    kafka.kill(kafka.coordinator_of(loaded.group_id))

    loaded.wait_until_progress()
    assert member_ids(loaded) == before
    assert [member.owned for member in loaded.threads] == owned
    assert sum(member.losses for member in loaded.threads) == 0
    loaded.finish()


def test_a_coordinator_that_freezes_is_replaced_and_changes_nothing_when_it_wakes(
    kafka: KafkaContainers, loaded: FaultyGroup
) -> None:
    """Its sessions have expired when it resumes; as coordinator it would expel every member."""
    frozen = kafka.coordinator_of(loaded.group_id)

    kafka.pause(frozen)
    loaded.wait_until_progress()
    loaded.wait_until_settled()
    ids, generations = member_ids(loaded), [member.generation for member in loaded.threads]
    kafka.resume(frozen)

    kafka.wait_until_ready()
    loaded.wait_until_progress()
    assert member_ids(loaded) == ids
    assert [member.generation for member in loaded.threads] == generations
    loaded.finish()


def test_a_member_cut_off_from_the_coordinator_lets_go_before_another_has_its_partitions(
    kafka: KafkaContainers, new_loaded: NewFaultyGroup
) -> None:
    """One member has a direct route; the others are expelled, and detect it by their own clocks."""
    loaded = of_three(new_loaded(), session_timeout_ms=6000)
    loaded.join("direct")
    loaded.wait_until_settled()
    loaded.wait_until_progress()
    coordinator = kafka.coordinator_of(loaded.group_id)
    *cut_off, direct = loaded.threads

    kafka.link(coordinator).silence()
    wait_until(lambda: len(direct.owned) == 6, "the member that is left to own everything")
    assert [member.losses for member in cut_off] == [1, 1, 1]
    kafka.link(coordinator).restore()

    loaded.wait_until_settled()
    loaded.wait_until_progress()
    assert direct.losses == 0
    loaded.finish()


def test_a_link_that_breaks_again_and_again_costs_no_membership(
    kafka: KafkaContainers, loaded: FaultyGroup
) -> None:
    before = member_ids(loaded)
    link = kafka.link(kafka.coordinator_of(loaded.group_id))

    for _ in range(3):
        link.reset()
        loaded.wait_until_progress()
        link.drop()
        wait_until(lambda: link.lossy_connections > 0, "something to be lost")
        link.restore()
        loaded.wait_until_progress()

    assert member_ids(loaded) == before
    assert sum(member.losses for member in loaded.threads) == 0
    loaded.finish()


@pytest.mark.endurance
def test_a_slow_network_makes_a_rebalance_slow_and_nothing_worse(
    kafka: KafkaContainers, loaded: FaultyGroup
) -> None:
    for node in kafka.nodes:
        kafka.link(node).delay(0.1, jitter=0.1)
        kafka.link(node).throttle(200_000)

    loaded.join("late", bootstrap_servers=kafka.proxied_servers)
    loaded.wait_until_settled()
    loaded.wait_until_progress()
    loaded.leave(loaded.threads[0])
    loaded.wait_until_settled()
    loaded.wait_until_progress()

    assert sum(member.losses for member in loaded.threads) == 0
    loaded.finish()


@pytest.mark.endurance
def test_brokers_are_rolled_one_by_one_and_nothing_is_lost_nor_rebalanced_for_its_rack(
    kafka: KafkaContainers, new_loaded: NewFaultyGroup
) -> None:
    """A broker that is down is not in Metadata, and its replicas are in the rack where they were."""
    loaded = new_loaded()
    for node, name in zip(kafka.nodes, "abc", strict=True):
        loaded.join(name, client_rack=f"rack-{node}", topic_metadata_refresh_interval_ms=500)
    loaded.wait_until_settled()
    loaded.wait_until_progress()
    before = member_ids(loaded)

    for node in kafka.nodes:
        kafka.restart(node)
        loaded.wait_until_progress()

    assert member_ids(loaded) == before
    assert sum(member.losses for member in loaded.threads) == 0
    reasons = [rebalance.reason for member in loaded.threads for rebalance in member.rebalances]
    assert not [reason for reason in reasons if "racks" in reason]
    loaded.finish()


@pytest.mark.endurance
def test_a_group_is_there_again_when_all_brokers_were_gone(
    kafka: KafkaContainers, loaded: FaultyGroup
) -> None:
    kafka.kill_all()
    wait_until(lambda: not any(map(kafka.running, kafka.nodes)), "the end of all brokers")
    kafka.start_all()

    loaded.wait_until_settled()
    loaded.wait_until_progress()
    loaded.finish()


def test_a_member_that_leaves_as_its_coordinator_moves_leaves_at_the_new_one(
    kafka: KafkaContainers, group: str, new_kafka_topic: NewKafkaTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """The former one answers LeaveGroup with NOT_COORDINATOR; the session would last for minutes."""
    every = kafka.admin().list_topics(OFFSETS_TOPIC, PATIENCE).topics[OFFSETS_TOPIC].partitions
    offsets = TopicPartition(OFFSETS_TOPIC, partition_for(group, len(every)))
    preferred = every[offsets.partition].replicas[0]
    kafka.restart(preferred)
    kafka.wait_until_ready()
    assert kafka.coordinator_of(group) != preferred
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 60_000,
        "session.timeout.ms": 300_000,
    }
    with contextlib.closing(Consumer(config)) as consumer:
        consumer.subscribe([new_kafka_topic(1)])
        poll_until(consumer, lambda _: bool(consumer.assignment()), "an assignment")

        kafka.admin().elect_leaders(ElectionType.PREFERRED, [offsets]).result(PATIENCE)
        wait_until(lambda: kafka.coordinator_of(group) == preferred, "another coordinator")

    assert "LeaveGroup was answered with NOT_COORDINATOR, and is sent again" in caplog.text
    described = kafka.admin().describe_consumer_groups([group])[group].result(PATIENCE)
    assert described.state is ConsumerGroupState.EMPTY
