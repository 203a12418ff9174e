"""What went between a member and its coordinator, counted."""

from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from groupwright.consumer._network.request_stats import RequestStats


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def test_requests_are_counted_by_kind_and_others_than_the_groups_are_not() -> None:
    traffic = RequestStats()
    for request in (HeartbeatRequest(), HeartbeatRequest(), JoinGroupRequest(), MetadataRequest()):
        traffic.sent(request)

    assert traffic.requests == {"heartbeat": 2, "join_group": 1}


def test_errors_are_counted_by_name_also_those_of_a_part_of_the_answer() -> None:
    traffic = RequestStats()
    topic = OffsetCommitResponse.OffsetCommitResponseTopic
    partition = topic.OffsetCommitResponsePartition
    partitions = [
        partition(partition_index=number, error_code=code) for number, code in enumerate((0, 22, 22))
    ]
    traffic.sent(OffsetCommitRequest())(OffsetCommitResponse(topics=[topic(name="t", partitions=partitions)]))
    traffic.sent(HeartbeatRequest())(HeartbeatResponse(error_code=16))
    traffic.sent(HeartbeatRequest())(HeartbeatResponse(error_code=0))

    assert traffic.failures == {
        ("offset_commit", "ILLEGAL_GENERATION"): 1,
        ("heartbeat", "NOT_COORDINATOR"): 1,
    }


def test_an_error_in_form_only_is_not_counted() -> None:
    """How a new member gets its id (KIP-394), and how a member learns of a rebalance: no alert may fire."""
    traffic = RequestStats()
    traffic.sent(JoinGroupRequest())(JoinGroupResponse(error_code=79))
    traffic.sent(HeartbeatRequest())(HeartbeatResponse(error_code=27))

    assert traffic.failures == {}


def test_the_round_trip_is_that_of_answers_that_wait_for_nobody() -> None:
    clock = Clock()
    traffic = RequestStats(clock)
    heartbeat, join = traffic.sent(HeartbeatRequest()), traffic.sent(JoinGroupRequest())
    clock.now = 10.25
    heartbeat(HeartbeatResponse(error_code=0))
    clock.now = 40.0
    join(JoinGroupResponse(error_code=0))

    assert (traffic.round_trip, traffic.heartbeat_answered) == (0.25, 10.25)


def test_what_has_no_answer_is_the_coordinators_error_unless_any_broker_was_asked() -> None:
    traffic = RequestStats()
    traffic.sent(HeartbeatRequest())(None)
    traffic.sent(FindCoordinatorRequest())(None)

    assert (traffic.unanswered, traffic.heartbeat_answered) == (1, None)


def test_another_broker_is_a_change_of_coordinator_and_the_first_is_none() -> None:
    traffic = RequestStats()
    for node in (1, 1, 2, 2, 1):
        traffic.found_coordinator(node)

    assert (traffic.coordinator, traffic.coordinator_changes) == (1, 2)
