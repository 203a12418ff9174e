"""Brokers that crash, freeze, cannot be reached, and are rolled: the group goes on, and nobody notices but the log.

Each test's group is under load, and held to the same at its end: every message that was acknowledged is consumed and
committed, and no partition ever had two owners.
"""

import pytest

from groupwright.testing import KafkaContainers
from harness.crew import Crew, NewCrew
from harness.waiting import wait_until

pytestmark = pytest.mark.kafka


@pytest.fixture
def crew(new_crew: NewCrew) -> Crew:
    """Three members that come through the proxy, settled and consuming."""
    return of_three(new_crew())


def of_three(crew: Crew, **settings: int) -> Crew:
    for name in ("a", "b", "c"):
        crew.join(name, bootstrap_servers=crew.kafka.proxied_servers, **settings)
    crew.settle()
    crew.progress()
    return crew


def member_ids(crew: Crew) -> list[str | None]:
    return [member.consumer.memberid() for member in crew.members]


def test_a_coordinator_that_crashes_is_replaced_and_members_keep_their_ids_and_partitions(
    kafka: KafkaContainers, crew: Crew
) -> None:
    before, owned = member_ids(crew), [member.owned for member in crew.members]

    kafka.kill(kafka.coordinator_of(crew.group))

    crew.progress()
    assert member_ids(crew) == before
    assert [member.owned for member in crew.members] == owned
    assert sum(member.losses for member in crew.members) == 0
    crew.finish()


def test_a_coordinator_that_freezes_is_replaced_and_changes_nothing_when_it_wakes(
    kafka: KafkaContainers, crew: Crew
) -> None:
    """It wakes with sessions that have run out, and would expel everybody, were it heeded still."""
    frozen = kafka.coordinator_of(crew.group)

    kafka.pause(frozen)
    crew.progress()
    crew.settle()
    ids, generations = member_ids(crew), [member.generation for member in crew.members]
    kafka.resume(frozen)

    kafka.wait_until_ready()
    crew.progress()
    assert member_ids(crew) == ids
    assert [member.generation for member in crew.members] == generations
    crew.finish()


def test_a_member_cut_off_from_the_coordinator_lets_go_before_another_has_its_partitions(
    kafka: KafkaContainers, new_crew: NewCrew
) -> None:
    """The other's way to the coordinator is its own; the silent ones are expelled, and know it by their own clocks."""
    crew = of_three(new_crew(), session_timeout_ms=6000)
    crew.join("direct")
    crew.settle()
    crew.progress()
    coordinator = kafka.coordinator_of(crew.group)
    *cut_off, direct = crew.members

    kafka.link(coordinator).silence()
    wait_until(lambda: len(direct.owned) == 6, "the member that is left to own everything")
    assert [member.losses for member in cut_off] == [1, 1, 1]
    kafka.link(coordinator).restore()

    crew.settle()
    crew.progress()
    assert direct.losses == 0
    crew.finish()


def test_a_link_that_breaks_again_and_again_costs_no_membership(kafka: KafkaContainers, crew: Crew) -> None:
    before = member_ids(crew)
    link = kafka.link(kafka.coordinator_of(crew.group))

    for _ in range(3):
        link.reset()
        crew.progress()
        link.drop()
        wait_until(lambda: link.torn > 0, "something to be lost")
        link.restore()
        crew.progress()

    assert member_ids(crew) == before
    assert sum(member.losses for member in crew.members) == 0
    crew.finish()


def test_a_slow_network_makes_a_rebalance_slow_and_nothing_worse(kafka: KafkaContainers, crew: Crew) -> None:
    for node in kafka.nodes:
        kafka.link(node).delay(0.1, jitter=0.1)
        kafka.link(node).throttle(200_000)

    crew.join("late", bootstrap_servers=kafka.proxied_servers)
    crew.settle()
    crew.progress()
    crew.leave(crew.members[0])
    crew.settle()
    crew.progress()

    assert sum(member.losses for member in crew.members) == 0
    crew.finish()


def test_brokers_are_rolled_one_by_one_and_nothing_is_lost(kafka: KafkaContainers, crew: Crew) -> None:
    before = member_ids(crew)

    for node in kafka.nodes:
        kafka.restart(node)
        crew.progress()

    assert member_ids(crew) == before
    assert sum(member.losses for member in crew.members) == 0
    crew.finish()


def test_a_group_is_there_again_when_all_brokers_were_gone(kafka: KafkaContainers, crew: Crew) -> None:
    kafka.kill_all()
    wait_until(lambda: not any(map(kafka.running, kafka.nodes)), "the end of all brokers")
    kafka.start_all()

    crew.settle()
    crew.progress()
    crew.finish()
