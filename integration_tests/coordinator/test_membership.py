"""Coordinator: joining, generations, leaving and expulsion of members."""

import time

import pytest

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.coordinator.conftest import NewWireMember
from integration_tests.harness import offsets_topic
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import OK, WireMember

pytestmark = pytest.mark.kafka

SESSION_MS = 6_000


def test_a_member_is_given_its_id_before_it_is_taken_in(wire_member: NewWireMember) -> None:
    """Otherwise a member whose first response is lost would remain until its session expires (KIP-394)."""
    member = wire_member("orders-service")

    member.send_join()
    assert member.joined() == "MEMBER_ID_REQUIRED"
    assert member.id.startswith("orders-service-")
    given = member.id

    assert member.join() == OK
    assert member.id == given


def test_an_id_that_the_coordinator_has_not_given_is_refused(wire_member: NewWireMember) -> None:
    wire_member("first").settle()
    stranger = wire_member("stranger")
    stranger.id = "stranger-1"

    stranger.send_join()

    assert stranger.joined() == "UNKNOWN_MEMBER_ID"


def test_a_static_member_joins_at_once_and_its_place_is_taken_over_by_name(
    wire_member: NewWireMember,
) -> None:
    """The instance id identifies the member (KIP-345): a successor replaces it, and it is fenced."""
    member = wire_member("host-7", instance_id="host-7")
    member.send_join()
    assert member.joined() == OK
    member.send_sync({member.id: b""})
    assert member.synced() == OK

    successor = wire_member("host-7", instance_id="host-7")
    successor.send_join()
    assert successor.joined() == OK

    assert successor.id != member.id
    assert successor.generation == member.generation  # no rebalance is needed
    assert member.heartbeat() == "FENCED_INSTANCE_ID"
    assert successor.heartbeat() == OK


def test_the_first_to_join_leads_and_alone_is_told_of_the_others(wire_member: NewWireMember) -> None:
    first, second, third = (wire_member(name) for name in ("first", "second", "third"))

    first.settle(second, third)

    assert [member.leads for member in (first, second, third)] == [True, False, False]
    assert {first.leader, second.leader, third.leader} == {first.id}
    assert sorted(first.members) == sorted([first.id, second.id, third.id])
    assert (second.members, third.members) == ([], [])


def test_when_the_leader_leaves_another_member_leads(wire_member: NewWireMember) -> None:
    first, second, third = (wire_member(name) for name in ("first", "second", "third"))
    first.settle(second, third)

    assert first.leads
    assert first.leave() == OK
    second.settle(third)

    assert sorted([second.leads, third.leads]) == [False, True]


def test_generations_are_counted_from_one_and_a_former_one_is_refused(
    wire_member: NewWireMember, new_kafka_topic: NewKafkaTopic
) -> None:
    """The requests of a member that missed a rebalance are rejected: others own its partitions."""
    topic = new_kafka_topic()
    first, second = wire_member("first"), wire_member("second")
    first.settle()
    assert first.generation == 1
    for expected in (2, 3, 4):
        first.settle(second)
        assert (first.generation, second.generation) == (expected, expected)

    assert second.heartbeat(generation=3) == "ILLEGAL_GENERATION"
    assert second.commit(topic, 7, generation=3) == "ILLEGAL_GENERATION"
    assert second.heartbeat(generation=5) == "ILLEGAL_GENERATION"
    assert second.commit(topic, 7) == OK


def test_joining_again_with_the_same_subscription_is_no_rebalance_unless_the_leader_does_it(
    wire_member: NewWireMember,
) -> None:
    """A follower may retry after a lost response, and gets the same generation; a leader starts a new one."""
    leader, follower = wire_member("leader"), wire_member("follower")
    leader.settle(follower)
    assert follower.generation == 2

    assert follower.join() == OK
    assert follower.generation == 2
    leader.send_join()
    wait_until(
        lambda: follower.heartbeat() == "REBALANCE_IN_PROGRESS", "the heartbeat to report the rebalance"
    )

    follower.send_join()
    assert [leader.joined(), follower.joined()] == [OK, OK]
    assert (leader.generation, follower.generation) == (3, 3)


def test_most_votes_win_among_the_protocols_that_all_members_have(wire_member: NewWireMember) -> None:
    """Two members prefer sticky and one range; not all support roundrobin."""
    members = [
        wire_member("a", protocols=["range", "sticky"]),
        wire_member("b", protocols=["roundrobin", "sticky", "range"]),
        wire_member("c", protocols=["sticky", "range"]),
    ]

    members[0].settle(*members[1:])

    assert {member.protocol for member in members} == {"sticky"}


@pytest.mark.parametrize(
    "other", [{"protocols": ["roundrobin"]}, {"protocol_type": "connect"}], ids=["assignor", "type of group"]
)
def test_a_member_with_nothing_in_common_with_the_others_is_refused(
    wire_member: NewWireMember, other: dict[str, object]
) -> None:
    settled = wire_member("settled", protocols=["range", "sticky"])
    settled.settle()

    assert wire_member("other", **other).join_refused() == "INCONSISTENT_GROUP_PROTOCOL"

    assert settled.heartbeat() == OK
    assert settled.state() == "Stable"


def test_a_session_outside_of_the_brokers_limits_is_refused(wire_member: NewWireMember) -> None:
    assert wire_member(session_ms=5_999).join_refused() == "INVALID_SESSION_TIMEOUT"
    assert wire_member(session_ms=1_800_001).join_refused() == "INVALID_SESSION_TIMEOUT"


def test_a_member_that_leaves_is_gone_at_once_and_one_that_is_silent_when_its_session_ends(
    wire_member: NewWireMember,
) -> None:
    """With LeaveGroup its partitions are reassigned at once, otherwise after a session timeout."""
    stays, leaves = (wire_member(name) for name in ("stays", "leaves"))
    silent = wire_member("silent", session_ms=SESSION_MS)
    since = time.monotonic()
    stays.settle(leaves, silent)

    assert leaves.leave() == OK
    assert stays.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert leaves.heartbeat() == "UNKNOWN_MEMBER_ID"

    stays.send_join()
    assert stays.joined() == OK  # once the silent member was removed
    assert time.monotonic() - since >= SESSION_MS / 1000
    assert stays.members == [stays.id]
    assert silent.heartbeat() == "UNKNOWN_MEMBER_ID"


def test_a_member_that_beats_but_does_not_join_is_given_up_when_the_rebalance_has_taken_too_long(
    wire_member: NewWireMember,
) -> None:
    """Its application does not poll: the others wait for the longest rebalance timeout of all members."""
    beats, joins = (wire_member(name, rebalance_ms=6_000) for name in ("beats", "joins"))
    beats.settle(joins)

    joins.id, former = "", joins.id  # comes back as another
    joins.be_given_id()
    joins.send_join()
    wait_until(lambda: beats.heartbeat() == "REBALANCE_IN_PROGRESS", "the heartbeat to report the rebalance")

    assert joins.joined() == OK
    assert joins.members == [joins.id]
    assert joins.id != former
    assert beats.heartbeat() == "UNKNOWN_MEMBER_ID"


def test_a_member_that_does_not_ask_for_its_assignment_is_given_up_too(wire_member: NewWireMember) -> None:
    """Without this expulsion the group would be stuck in CompletingRebalance (KAFKA-12890)."""
    leader, lazy = (wire_member(name, rebalance_ms=6_000) for name in ("leader", "lazy"))
    leader.settle()
    lazy.be_given_id()
    lazy.send_join()
    leader.send_join()
    assert [leader.joined(), lazy.joined()] == [OK, OK]
    leader.send_sync({leader.id: b"", lazy.id: b""})
    assert leader.synced() == OK

    wait_until(lambda: leader.heartbeat() == "REBALANCE_IN_PROGRESS", "the group to rebalance without it")
    leader.settle()

    assert leader.members == [leader.id]
    assert lazy.heartbeat() == "UNKNOWN_MEMBER_ID"


def test_a_leader_that_dies_before_its_plan_is_given_up_and_another_plans(wire_member: NewWireMember) -> None:
    """Otherwise the group would wait forever for the leader's SyncGroup."""
    leader, follower = (wire_member(name, rebalance_ms=6_000) for name in ("leader", "follower"))
    leader.settle()
    follower.be_given_id()
    follower.send_join()
    leader.send_join()
    assert [leader.joined(), follower.joined()] == [OK, OK]
    assert leader.leads

    leader.close()
    follower.send_sync()
    assert follower.synced() == "REBALANCE_IN_PROGRESS"

    follower.settle()
    assert follower.leads
    assert follower.members == [follower.id]


def test_what_the_coordinator_stores_of_a_group_is_its_generations(
    kafka: Kafka, wire_member: NewWireMember, group: str
) -> None:
    """One record for each assigned generation, and one without members after the last one has left."""
    first, second = wire_member("first"), wire_member("second")
    first.settle()
    first.settle(second)
    leave(second, first)

    stored = offsets_topic.generations(kafka.bootstrap_servers, group)

    alone, together = [generation for generation in stored if generation.members]
    assert (alone.number, len(alone.members)) == (1, 1)
    assert (together.number, together.leader) == (2, first.id)
    assert {member.joined.id for member in together.members} == {first.id, second.id}
    assert (stored[-1].number, stored[-1].members) == (3, ())


def leave(*members: WireMember) -> None:
    assert [member.leave() for member in members] == [OK] * len(members)
