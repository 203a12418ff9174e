"""Counts of the requests between a member and its coordinator."""

from groupwright.consumer._network.request_stats import RequestStats
from groupwright.core.wire_format import Message


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def test_requests_are_counted_by_kind_and_others_than_the_groups_are_not() -> None:
    stats = RequestStats()
    for request in ("Heartbeat", "Heartbeat", "JoinGroup", "Metadata"):
        stats.sent(request)

    assert stats.requests == {"heartbeat": 2, "join_group": 1}


def test_errors_are_counted_by_name_also_those_of_a_part_of_the_answer() -> None:
    stats = RequestStats()
    partitions = [Message(partition_index=number, error_code=code) for number, code in enumerate((0, 22, 22))]
    stats.sent("OffsetCommit")(Message(topics=[Message(name="t", partitions=partitions)]))
    stats.sent("Heartbeat")(Message(error_code=16))
    stats.sent("Heartbeat")(Message(error_code=0))

    assert stats.failures == {
        ("offset_commit", "ILLEGAL_GENERATION"): 1,
        ("heartbeat", "NOT_COORDINATOR"): 1,
    }


def test_an_error_in_form_only_is_not_counted() -> None:
    """How a new member gets its id (KIP-394), and how a member learns of a rebalance: no alert may fire."""
    stats = RequestStats()
    stats.sent("JoinGroup")(Message(error_code=79))
    stats.sent("Heartbeat")(Message(error_code=27))

    assert stats.failures == {}


def test_the_round_trip_is_that_of_answers_that_wait_for_nobody() -> None:
    clock = Clock()
    stats = RequestStats(clock)
    heartbeat, join = stats.sent("Heartbeat"), stats.sent("JoinGroup")
    clock.now = 10.25
    heartbeat(Message(error_code=0))
    clock.now = 40.0
    join(Message(error_code=0))

    assert (stats.round_trip, stats.heartbeat_answered) == (0.25, 10.25)


def test_what_has_no_answer_is_the_coordinators_error_unless_any_broker_was_asked() -> None:
    stats = RequestStats()
    stats.sent("Heartbeat")(None)
    stats.sent("FindCoordinator")(None)

    assert (stats.unanswered, stats.heartbeat_answered) == (1, None)


def test_another_broker_is_a_change_of_coordinator_and_the_first_is_none() -> None:
    stats = RequestStats()
    for node in (1, 1, 2, 2, 1):
        stats.found_coordinator(node)

    assert (stats.coordinator, stats.coordinator_changes) == (1, 2)
