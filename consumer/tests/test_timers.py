"""The timers, with times given by the test."""

from collections import deque

import pytest

from groupwright.consumer._protocol.timers import Backoff, CoordinatorLookup, Heartbeat, Timing

TIMING = Timing(session_timeout=10.0, heartbeat_interval=3.0)


def test_a_backoff_doubles_up_to_its_longest() -> None:
    """KIP-580."""
    backoff = Backoff(TIMING, jitter=lambda: 0.5)

    assert [backoff.pause() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    backoff.reset()
    assert backoff.pause() == pytest.approx(0.1)


def test_a_backoff_is_spread_by_a_fifth_both_ways() -> None:
    assert Backoff(TIMING, jitter=lambda: 0.0).pause() == pytest.approx(0.08)
    assert Backoff(TIMING, jitter=lambda: 1.0).pause() == pytest.approx(0.12)


def test_a_backoff_stays_a_number_for_years() -> None:
    backoff = Backoff(TIMING, jitter=lambda: 0.5)

    assert max(backoff.pause() for _ in range(100_000)) == pytest.approx(1.0)


def test_a_heartbeat_is_due_an_interval_after_the_last_was_sent() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    assert not heartbeat.due(102.9)
    assert heartbeat.due(103.0)

    heartbeat.sent(103.5)
    assert not heartbeat.due(106.4)
    assert heartbeat.due(106.5), "also without a response"


def test_a_coordinator_is_silent_until_the_next_heartbeat_unless_it_owes_a_response() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    assert heartbeat.silent_until == pytest.approx(103.0)

    heartbeat.sent(103.5)
    assert heartbeat.silent_until == 0.0
    heartbeat.answered(103.6, alive=True)
    assert heartbeat.silent_until == pytest.approx(106.5)

    heartbeat.sent(106.5)
    heartbeat.unanswered()
    assert heartbeat.silent_until == pytest.approx(109.5)


def test_a_session_lasts_from_the_sending_of_the_last_heartbeat_that_was_answered() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    assert heartbeat.session_ends == 110.0

    heartbeat.sent(103.0)
    heartbeat.answered(109.0, alive=True)
    assert heartbeat.session_ends == 113.0


def test_a_round_trip_that_is_longer_than_the_interval_costs_no_session() -> None:
    """With one heartbeat in flight, a round trip above half of the session lost it."""
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    trip, arriving, now = 6.9, deque[float](), 100.0
    while now < 200.0:
        if heartbeat.due(now):
            heartbeat.sent(now)
            arriving.append(now + trip)
        if arriving and arriving[0] <= now:
            arriving.popleft()
            heartbeat.answered(now, alive=True)
        now = min(each for each in (now + 1.0, heartbeat.next_at, *arriving) if each > now)
        assert now < heartbeat.session_ends
        assert len(arriving) <= 4


def test_a_network_that_becomes_slow_while_another_rebalance_is_likely_costs_no_session() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.speed_up(100.0)
    heartbeat.sent(100.05)

    assert heartbeat.due_at == 103.05
    heartbeat.sent(103.05)
    heartbeat.answered(106.0, alive=True)
    heartbeat.answered(109.0, alive=True)
    assert heartbeat.session_ends == 113.05


def test_a_coordinator_that_is_silent_gets_few_heartbeats() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    for _ in range(4):
        assert heartbeat.due(heartbeat.next_at)
        heartbeat.sent(heartbeat.next_at)
    assert not heartbeat.due(200.0)

    heartbeat.unanswered()
    assert heartbeat.due(200.0)


def test_a_heartbeat_that_failed_does_not_prolong_the_session() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.sent(103.0)
    heartbeat.answered(104.0, alive=False)
    assert heartbeat.session_ends == 110.0

    heartbeat.schedule(104.1)
    assert heartbeat.due(104.1)
    heartbeat.sent(104.1)
    heartbeat.unanswered()
    assert heartbeat.session_ends == 110.0


def test_soon_is_never_later_than_it_would_have_been() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.schedule(200.0)

    assert heartbeat.due(103.0)


def test_an_answer_from_before_a_join_does_not_shorten_the_new_session() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.sent(103.0)
    heartbeat.start_session(150.0)
    heartbeat.answered(150.1, alive=True)

    assert heartbeat.session_ends == 160.0


def test_a_session_that_starts_after_a_sleep_counts_from_its_beginning() -> None:
    """The coordinator may have answered then, and have counted since."""
    heartbeat = Heartbeat(TIMING)
    heartbeat.runs(100.0)
    heartbeat.runs(107.0)
    heartbeat.start_session(107.0)
    assert heartbeat.session_ends == 110.0
    assert heartbeat.due(107.0)

    heartbeat.sent(107.0)
    heartbeat.start_session(108.0)
    assert heartbeat.session_ends == 118.0


def test_where_another_rebalance_is_likely_heartbeats_come_at_doubling_distances() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.speed_up(100.0)
    sent, now = [], 100.0
    while now < 112.0:
        now = heartbeat.next_at
        heartbeat.sent(now)
        heartbeat.answered(now, alive=True)
        sent.append(round(now - 100.0, 2))

    assert sent == [0.05, 0.15, 0.35, 0.75, 1.55, 3.15, 6.15, 9.15, 12.15]


def test_haste_does_not_press_a_coordinator_that_is_slow() -> None:
    heartbeat = Heartbeat(TIMING)
    heartbeat.start_session(100.0)
    heartbeat.speed_up(100.0)
    heartbeat.sent(100.05)
    heartbeat.answered(101.0, alive=True)

    assert heartbeat.next_at == pytest.approx(101.1)


def test_one_look_up_is_under_way_at_a_time() -> None:
    lookup = CoordinatorLookup(TIMING, jitter=lambda: 0.5)
    assert lookup.needs_lookup
    assert lookup.start(100.0)
    assert not lookup.needs_lookup
    assert not lookup.start(100.0)

    lookup.missing(100.0)
    assert lookup.needs_lookup
    assert not lookup.start(100.09)
    assert lookup.start(100.1)
    lookup.found()
    assert lookup.known
    assert not lookup.needs_lookup


def test_a_coordinator_that_is_lost_is_looked_up_at_once() -> None:
    lookup = CoordinatorLookup(TIMING, jitter=lambda: 0.5)
    lookup.start(100.0)
    lookup.found()

    assert lookup.lost(150.0)
    assert not lookup.lost(150.0)
    assert lookup.start(150.0)


def test_a_look_up_that_fails_anew_starts_with_the_shortest_pause() -> None:
    lookup = CoordinatorLookup(TIMING, jitter=lambda: 0.5)
    for _ in range(5):
        lookup.missing(100.0)
    lookup.found()
    lookup.lost(200.0)
    lookup.missing(200.0)

    assert lookup.next_at == pytest.approx(200.1)


@pytest.mark.parametrize(
    ("timing", "longest"),
    [
        (TIMING, 0.25),
        (Timing(retry_backoff=0.01, retry_backoff_max=0.05), 0.05),
        (Timing(retry_backoff=0.5, retry_backoff_max=1.0), 0.5),
    ],
)
def test_a_long_outage_does_not_lengthen_the_pauses_between_look_ups(timing: Timing, longest: float) -> None:
    """librdkafka looks for its coordinator twice a second, however long that takes."""
    lookup = CoordinatorLookup(timing, jitter=lambda: 0.5)
    for _ in range(100):
        lookup.missing(100.0)

    assert lookup.next_at == pytest.approx(100.0 + longest)


def test_seconds_without_a_coordinator_are_counted_while_it_is_needed() -> None:
    lookup = CoordinatorLookup(TIMING, jitter=lambda: 0.5)
    lookup.count(0.0, needed=False)
    assert lookup.missing_seconds(5.0) == 0

    lookup.count(5.0, needed=True)
    assert lookup.missing_seconds(6.0) == 1
    lookup.found()
    lookup.count(7.0, needed=True)
    assert lookup.missing_seconds(100.0) == 2

    lookup.lost(100.0)
    lookup.count(100.0, needed=True)
    lookup.count(101.0, needed=True)
    lookup.count(102.0, needed=False)
    assert lookup.missing_seconds(200.0) == 4
