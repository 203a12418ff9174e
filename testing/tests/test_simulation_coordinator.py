"""Rules of the classic group coordinator's model, one a test."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from groupwright.core import ErrorCode
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation import subscription
from groupwright.testing._simulation.coordinator import Coordinator
from groupwright.testing._simulation.settings import GroupSettings, KafkaVersion

GROUP = "group"
ORDERS = ("orders", 0)
SESSION, REBALANCE = 10_000, 30_000
V3_9, V4_3 = KafkaVersion.KAFKA_3_9, KafkaVersion.KAFKA_4_3


class Broker:
    """A coordinator with a clock, and clients that need few words."""

    def __init__(self, version: KafkaVersion = V4_3, **settings: int) -> None:
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.version = version
        self.now = 0
        self._ids = self._numbers()
        self.coordinator = Coordinator(lambda prefix: prefix + next(self._ids), self.settings, version)
        self._sent = 0
        self.leader = ""
        self.answers: dict[int, msg.Response] = {}

    @staticmethod
    def _numbers() -> Iterator[str]:
        yield from map(str, range(1, 1000))

    def send(self, request: msg.Request) -> int:
        self._sent += 1
        self._take(self.coordinator.handle(self._sent, request, self.now))
        return self._sent

    def ask(self, request: msg.Request) -> msg.Response:
        return self.answers[self.send(request)]

    def error(self, request: msg.Request) -> ErrorCode:
        response = self.ask(request)
        assert not isinstance(response, msg.OffsetCommitResponse)
        return response.error

    def wait(self, milliseconds: int) -> None:
        end = self.now + milliseconds
        while (deadline := self.coordinator.next_timer()) is not None and deadline <= end:
            self.now = deadline
            self._take(self.coordinator.advance(deadline))
        self.now = end

    def restart(self) -> None:
        self.coordinator = Coordinator(
            lambda prefix: prefix + next(self._ids),
            self.settings,
            self.version,
            log=self.coordinator.log,
            now=self.now,
        )

    def _take(self, replies: list[msg.Reply]) -> None:
        for reply in replies:
            assert reply.correlation_id not in self.answers
            self.answers[reply.correlation_id] = reply.response

    # --- Requests

    def join(self, member_id: str = "", *names: str, **fields: object) -> int:
        """Send JoinGroup with these protocols."""
        protocols = tuple(msg.Protocol(name, b"?") for name in names or ("range",))
        request = msg.JoinGroupRequest(GROUP, member_id, None, SESSION, REBALANCE, "consumer", protocols)
        return self.send(replace(request, client_id="client", **fields))  # type: ignore[arg-type]

    def new_id(self) -> str:
        return self.joined(self.join()).member_id

    def joined(self, sent: int) -> msg.JoinGroupResponse:
        response = self.answers[sent]
        assert isinstance(response, msg.JoinGroupResponse)
        return response

    def sync(self, member_id: str, generation: int, **assignments: bytes) -> int:
        return self.send(
            msg.SyncGroupRequest(GROUP, member_id, generation, assignments=tuple(assignments.items()))
        )

    def synced(self, sent: int) -> msg.SyncGroupResponse:
        response = self.answers[sent]
        assert isinstance(response, msg.SyncGroupResponse)
        return response

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        return self.error(msg.HeartbeatRequest(GROUP, member_id, generation))

    def leave(self, *member_ids: str) -> list[ErrorCode]:
        members = tuple(msg.LeavingMember(member_id) for member_id in member_ids)
        response = self.ask(msg.LeaveGroupRequest(GROUP, members))
        assert isinstance(response, msg.LeaveGroupResponse)
        return [error for _, error in response.members]

    def commit(self, member_id: str = "", generation: int = -1, **fields: object) -> ErrorCode:
        request = msg.OffsetCommitRequest(GROUP, ((ORDERS, msg.CommittedOffset(5)),), member_id, generation)
        response = self.ask(replace(request, **fields))  # type: ignore[arg-type]
        assert isinstance(response, msg.OffsetCommitResponse)
        return response.partitions[0][1]

    def committed(self) -> int:
        response = self.ask(msg.OffsetFetchRequest(GROUP, (ORDERS,)))
        assert isinstance(response, msg.OffsetFetchResponse)
        return response.partitions[0][1].offset

    def described(self) -> msg.DescribeGroupsResponse:
        response = self.ask(msg.DescribeGroupsRequest(GROUP))
        assert isinstance(response, msg.DescribeGroupsResponse)
        return response

    @property
    def state(self) -> str:
        return self.described().state

    def settle(self, *others: str) -> tuple[str, ...]:
        """Bring a new group with one more new member than `others` has to Stable; return all ids."""
        members = (*others, self.new_id())
        sent = [self.join(member) for member in members]
        responses = [self.joined(each) for each in sent]
        leader = responses[0].leader
        self.leader = leader
        for member in sorted(members, key=lambda member: member != leader):
            self.sync(member, responses[0].generation_id, **{each: each.encode() for each in members})
        assert self.state == "Stable"
        return members

    def lead(self, first: str, second: str) -> tuple[str, str]:
        """Return the leader of a Stable group of two, and the follower."""
        return (first, second) if self.leader == first else (second, first)


@pytest.fixture(params=[V3_9, V4_3], ids=lambda version: str(version.value))
def broker(request: pytest.FixtureRequest) -> Broker:
    """A broker of each modelled version."""
    return Broker(request.param)


# --- Joining


def test_a_dynamic_member_joins_with_the_id_that_it_was_given(broker: Broker) -> None:
    """KIP-394."""
    first = broker.joined(broker.join())
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert broker.state == "Empty"

    second = broker.joined(broker.join(first.member_id))

    assert (second.error, second.generation_id, second.leader) == (ErrorCode.NONE, 1, first.member_id)
    assert [member.member_id for member in second.members] == [first.member_id]


def test_old_versions_join_at_once(broker: Broker) -> None:
    assert broker.joined(broker.join(version=3)).error is ErrorCode.NONE


def test_an_id_that_was_not_given_is_unknown(broker: Broker) -> None:
    assert broker.joined(broker.join("client-9")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.state == "Dead"  # the request has created no group


@pytest.mark.parametrize("session", [0, 10**9])
def test_the_session_timeout_has_bounds(broker: Broker, session: int) -> None:
    sent = broker.join(session_timeout_ms=session)
    assert broker.joined(sent).error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_member_without_a_protocol_in_common_is_refused(broker: Broker) -> None:
    broker.settle()

    assert broker.joined(broker.join("", "sticky")).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = broker.join(protocol_type="connect")
    assert broker.joined(refused).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_refuses_members() -> None:
    broker = Broker(max_size=1)
    broker.settle()

    assert broker.joined(broker.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_pending_id_holds_up_the_rebalance_until_its_session_ends(broker: Broker) -> None:
    (member,) = broker.settle()
    broker.new_id()

    waiting = broker.join(member)
    assert waiting not in broker.answers

    broker.wait(SESSION)
    assert broker.joined(waiting).generation_id == 2


def test_the_first_rebalance_waits_for_more_members_at_most_for_the_rebalance_timeout() -> None:
    """KIP-134."""
    broker = Broker(initial_rebalance_delay_ms=3_000)
    first, second = broker.new_id(), broker.new_id()
    waiting = broker.join(first, rebalance_timeout_ms=5_000)
    broker.wait(2_000)
    broker.join(second, rebalance_timeout_ms=5_000)

    broker.wait(2_999)
    assert waiting not in broker.answers
    broker.wait(1)  # 5 s: the remaining 2 s of the timeout, after the delay of 3 s

    assert len(broker.joined(waiting).members) == 2


def test_each_member_votes_for_its_first_protocol_that_all_support() -> None:
    broker = Broker(initial_rebalance_delay_ms=1_000)
    first, second, third = broker.new_id(), broker.new_id(), broker.new_id()
    broker.join(first, "sticky", "roundrobin", "range")
    broker.join(second, "roundrobin", "range")
    sent = broker.join(third, "range", "roundrobin")
    broker.wait(2_000)

    assert broker.joined(sent).protocol_name == "roundrobin"


# --- Rebalances


def test_members_that_do_not_join_in_time_are_removed(broker: Broker) -> None:
    first, *_ = broker.settle()
    first, second = broker.settle(first)
    leader = broker.join(first, session_timeout_ms=100_000)
    third = broker.new_id()
    newcomer = broker.join(third)
    while broker.now < REBALANCE and leader not in broker.answers:
        broker.heartbeat(second, 2)
        broker.wait(SESSION // 2)

    assert {member.member_id for member in broker.joined(newcomer).members} <= {first, third}
    assert broker.heartbeat(second, 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_do_not_sync_in_time_are_removed(broker: Broker) -> None:
    """KAFKA-12890."""
    (first,) = broker.settle()
    second = broker.new_id()
    broker.join(first)
    joined = broker.joined(broker.join(second))
    leader, follower = (first, second) if joined.leader == first else (second, first)
    broker.sync(leader, 2)
    while broker.now < REBALANCE:
        broker.heartbeat(leader, 2)
        broker.heartbeat(follower, 2)
        broker.wait(SESSION // 2)

    assert broker.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert broker.heartbeat(follower, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_rebalances_only_with_new_metadata(broker: Broker) -> None:
    leader, follower = broker.lead(*broker.settle(*broker.settle()))
    assert broker.joined(broker.join(follower)).generation_id == 2
    assert broker.state == "Stable"

    broker.join(follower, "range", "sticky")
    assert broker.state == "PreparingRebalance"
    assert broker.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_rebalances_with_the_same_metadata(broker: Broker) -> None:
    leader, _ = broker.lead(*broker.settle(*broker.settle()))

    broker.join(leader)

    assert broker.state == "PreparingRebalance"


def test_a_join_that_is_sent_again_leaves_the_first_one_unanswered(broker: Broker) -> None:
    (member,) = broker.settle()
    broker.new_id()
    first, second = broker.join(member), broker.join(member)
    broker.wait(SESSION)

    assert first not in broker.answers
    assert broker.joined(second).generation_id == 2


def test_heartbeats_report_a_rebalance_only_while_members_join(broker: Broker) -> None:
    (first,) = broker.settle()
    second = broker.new_id()
    broker.join(second)
    assert broker.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    broker.join(first)
    assert broker.state == "CompletingRebalance"
    assert broker.heartbeat(first, 2) is ErrorCode.NONE
    assert broker.heartbeat(first, 1) is ErrorCode.ILLEGAL_GENERATION


def test_a_sync_waits_for_the_leader_and_a_new_rebalance_ends_it(broker: Broker) -> None:
    (first,) = broker.settle()
    second = broker.new_id()
    broker.join(first)
    leader = broker.joined(broker.join(second)).leader
    follower = second if leader == first else first
    waiting = broker.sync(follower, 2)
    assert waiting not in broker.answers

    broker.leave(leader)

    assert broker.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_names_the_protocol(broker: Broker) -> None:
    """KIP-559."""
    (member,) = broker.settle()
    request = msg.SyncGroupRequest(GROUP, member, 1)

    assert broker.error(request) is ErrorCode.NONE
    for wrong in (
        replace(request, protocol_name="other"),
        replace(request, protocol_type="connect"),
        replace(request, protocol_name=None),
    ):
        assert broker.error(wrong) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_session_ends_without_heartbeats_but_not_while_a_request_is_parked(broker: Broker) -> None:
    broker.settle()
    second = broker.new_id()
    waiting = broker.join(second)
    broker.wait(SESSION)

    assert [member.member_id for member in broker.joined(waiting).members] == [second]


def test_the_first_join_is_parked_for_five_minutes_at_most(broker: Broker) -> None:
    (first,) = broker.settle()
    waiting = broker.join(broker.new_id(), rebalance_timeout_ms=1_000_000)
    for _ in range(300_000 // 5_000):
        broker.wait(5_000)
        broker.heartbeat(first, 1)

    assert broker.joined(waiting).error is ErrorCode.UNKNOWN_MEMBER_ID


# --- Static members (KIP-345)


def test_a_returning_static_leader_takes_its_place_without_a_rebalance(broker: Broker) -> None:
    """KIP-814."""
    old = broker.joined(broker.join(group_instance_id="a")).member_id
    broker.sync(old, 1, **{old: b"plan"})

    response = broker.joined(broker.join(group_instance_id="a"))

    assert response.skip_assignment
    assert (response.generation_id, response.leader) == (1, response.member_id)
    assert [member.member_id for member in response.members] == [response.member_id]
    assert broker.synced(broker.sync(response.member_id, 1)).assignment == b"plan"
    fenced = msg.HeartbeatRequest(GROUP, old, 1, "a")
    assert broker.error(fenced) is ErrorCode.FENCED_INSTANCE_ID


def test_an_old_client_is_given_the_old_leader(broker: Broker) -> None:
    old = broker.joined(broker.join(group_instance_id="a")).member_id
    broker.sync(old, 1)

    response = broker.joined(broker.join(group_instance_id="a", version=8))

    assert (response.leader, response.skip_assignment, response.members) == (old, False, ())


def test_a_replaced_member_is_told_by_its_parked_request(broker: Broker) -> None:
    broker.settle()
    waiting = broker.join(group_instance_id="a")

    broker.join(group_instance_id="a")

    assert broker.joined(waiting).error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_join_stays(broker: Broker) -> None:
    static = broker.joined(broker.join(group_instance_id="a", session_timeout_ms=100_000)).member_id
    broker.sync(static, 1)
    waiting = broker.join(broker.new_id())
    broker.wait(REBALANCE)

    assert {member.group_instance_id for member in broker.joined(waiting).members} == {"a", None}


def test_an_administrator_removes_a_static_member_by_its_instance(broker: Broker) -> None:
    broker.join(group_instance_id="a")

    response = broker.ask(msg.LeaveGroupRequest(GROUP, (msg.LeavingMember("", "a"),)))

    assert isinstance(response, msg.LeaveGroupResponse)
    assert response.members[0][1] is ErrorCode.NONE
    assert broker.state == "Empty"


# --- Leaving


def test_a_group_is_empty_after_its_last_member(broker: Broker) -> None:
    (member,) = broker.settle()

    assert broker.leave(member, "stranger") == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert broker.state == "Empty"
    assert broker.heartbeat(member, 1) is ErrorCode.UNKNOWN_MEMBER_ID


# --- Offsets


def test_commits_are_checked_for_the_generation(broker: Broker) -> None:
    (member,) = broker.settle()

    assert broker.commit(member, 1) is ErrorCode.NONE
    assert broker.commit(member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert broker.commit("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.commit() is ErrorCode.UNKNOWN_MEMBER_ID  # from outside, but the group has members
    assert broker.committed() == 5


def test_commits_are_accepted_while_members_join_and_refused_while_they_sync(broker: Broker) -> None:
    (member,) = broker.settle()
    broker.new_id()
    broker.join(member)
    assert broker.commit(member, 1) is ErrorCode.NONE

    broker.wait(SESSION)
    assert broker.state == "CompletingRebalance"
    assert broker.commit(member, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_from_outside_creates_a_group(broker: Broker) -> None:
    assert broker.committed() == -1
    assert broker.commit() is ErrorCode.NONE
    assert (broker.state, broker.committed()) == ("Empty", 5)


def test_each_partition_has_an_error_of_its_own(broker: Broker) -> None:
    request = msg.OffsetCommitRequest(
        GROUP, ((ORDERS, msg.CommittedOffset(1, "x" * 5000)), (("orders", 1), msg.CommittedOffset(2)))
    )
    response = broker.ask(request)

    assert isinstance(response, msg.OffsetCommitResponse)
    assert [error for _, error in response.partitions] == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]
    assert broker.committed() == -1


def test_offsets_expire_after_the_group_has_been_empty_for_the_retention_time() -> None:
    """KIP-211."""
    broker = Broker(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000)
    (member,) = broker.settle()
    broker.commit(member, 1)
    for _ in range(20):
        broker.wait(5_000)
        broker.heartbeat(member, 1)
    assert broker.committed() == 5  # the member may be subscribed to the topic

    broker.leave(member)
    broker.wait(59_999)
    assert broker.committed() == 5
    broker.wait(10_001)
    assert (broker.committed(), broker.state) == (-1, "Dead")


def test_offsets_of_topics_that_no_member_consumes_can_be_deleted(broker: Broker) -> None:
    """KIP-496."""
    payments = msg.Protocol("range", subscription.encode(("payments",)))
    joined = broker.joined(broker.join(broker.new_id(), protocols=(payments,)))
    broker.sync(joined.member_id, 1)
    broker.commit(joined.member_id, 1)

    response = broker.ask(msg.OffsetDeleteRequest(GROUP, (ORDERS, ("payments", 0))))

    assert isinstance(response, msg.OffsetDeleteResponse)
    assert [error for _, error in response.partitions] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ]
    assert broker.committed() == -1


def test_only_groups_without_members_can_be_deleted(broker: Broker) -> None:
    delete = msg.DeleteGroupsRequest(GROUP)
    assert broker.error(delete) is ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = broker.settle()
    broker.commit(member, 1)
    assert broker.error(delete) is ErrorCode.NON_EMPTY_GROUP

    broker.leave(member)
    assert broker.error(delete) is ErrorCode.NONE
    assert (broker.state, broker.committed()) == ("Dead", -1)


# --- Restarts and moves


def test_a_restart_keeps_the_last_stable_generation_and_starts_its_sessions(broker: Broker) -> None:
    (member,) = broker.settle()
    broker.commit(member, 1)
    broker.wait(SESSION - 1)
    broker.restart()

    broker.wait(SESSION - 1)
    assert broker.heartbeat(member, 1) is ErrorCode.NONE
    assert broker.synced(broker.sync(member, 1)).assignment == member.encode()
    assert broker.committed() == 5


def test_a_restart_forgets_pending_ids_and_the_rebalance_under_way(broker: Broker) -> None:
    (first,) = broker.settle()
    second, third = broker.new_id(), broker.new_id()
    broker.leave(third)
    broker.join(first)
    broker.join(second)
    assert broker.state == "CompletingRebalance"
    broker.restart()

    assert broker.heartbeat(first, 2) is ErrorCode.ILLEGAL_GENERATION
    assert broker.heartbeat(first, 1) is ErrorCode.NONE
    assert broker.joined(broker.join(second)).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_loaded_member_that_joins_with_more_protocols_rebalances() -> None:
    broker = Broker()
    sent = broker.join(broker.new_id(), "range", "sticky")
    follower = broker.joined(sent).member_id
    broker.sync(follower, 1)
    broker.restart()

    assert broker.joined(broker.join(follower, "range", "sticky")).generation_id == 2


def test_a_coordinator_that_resigns_answers_parked_requests(broker: Broker) -> None:
    (member,) = broker.settle()
    broker.new_id()
    waiting = broker.join(member)

    replies = broker.coordinator.resign(broker.now)

    assert replies == [msg.Reply(waiting, msg.JoinGroupResponse(ErrorCode.NOT_COORDINATOR, member_id=member))]
    assert broker.heartbeat(member, 1) is ErrorCode.NOT_COORDINATOR
    assert broker.coordinator.next_timer() is None


# --- Differences between versions


def test_a_commit_to_a_missing_group_differs() -> None:
    assert Broker(V3_9).commit("member", 1) is ErrorCode.ILLEGAL_GENERATION
    assert Broker(V4_3).commit("member", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert Broker(V4_3).commit("member", 1, version=8) is ErrorCode.ILLEGAL_GENERATION


def test_a_sync_before_the_first_generation_differs() -> None:
    answers = []
    for version in (V3_9, V4_3):
        broker = Broker(version, initial_rebalance_delay_ms=1_000)
        member = broker.new_id()
        broker.join(member)
        answers.append(broker.synced(broker.sync(member, 0)).error)

    assert answers == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.REBALANCE_IN_PROGRESS]


def test_only_old_versions_delete_a_group_with_its_last_offset() -> None:
    states = []
    for version in (V3_9, V4_3):
        broker = Broker(version)
        broker.commit()
        broker.ask(msg.OffsetDeleteRequest(GROUP, (ORDERS,)))
        states.append(broker.state)

    assert states == ["Dead", "Empty"]


def test_only_new_versions_write_a_group_without_a_generation() -> None:
    states = []
    for version in (V3_9, V4_3):
        broker = Broker(version)
        broker.new_id()
        broker.restart()
        states.append(broker.state)

    assert states == ["Dead", "Empty"]


def test_only_new_versions_describe_assignments_during_a_rebalance() -> None:
    described = []
    for version in (V3_9, V4_3):
        broker = Broker(version)
        broker.settle()
        broker.join(broker.new_id())
        described.append({member.assignment for member in broker.described().members})

    assert described == [{b""}, {b"", b"client-1"}]


def test_a_subscription_is_read_to_its_end() -> None:
    encoded = subscription.encode(("orders", "payments"))

    assert subscription.topics(encoded) == frozenset({"orders", "payments"})
    assert all(subscription.topics(encoded[:end]) is None for end in range(len(encoded)))
    assert subscription.topics(encoded + b"owned partitions of version 1") == frozenset(
        {"orders", "payments"}
    )
