"""The timeline of a rebalance."""

import pytest

from groupwright.consumer import Outcome, Phase
from groupwright.consumer._protocol.timeline import Timeline


def test_phases_are_measured_and_added_up() -> None:
    timeline = Timeline("why", 10.0)
    timeline.begin(Phase.JOIN, 11.0)
    timeline.end(Phase.JOIN, 13.0)
    timeline.begin(Phase.SYNC, 13.0)
    timeline.end(Phase.SYNC, 13.5)
    timeline.begin(Phase.JOIN, 14.0)
    timeline.end(Phase.JOIN, 15.0)

    assert timeline.phases == pytest.approx({Phase.JOIN: 3.0, Phase.SYNC: 0.5})


def test_a_retry_goes_on_from_the_first_begin() -> None:
    timeline = Timeline("why", 10.0)
    timeline.begin(Phase.JOIN, 11.0)
    timeline.begin(Phase.JOIN, 12.0)
    timeline.end(Phase.JOIN, 13.0)

    assert timeline.phases == pytest.approx({Phase.JOIN: 2.0})


def test_a_phase_that_is_cut_short_ends_where_the_next_begins() -> None:
    timeline = Timeline("why", 10.0)
    timeline.begin(Phase.SYNC, 11.0)
    timeline.begin(Phase.JOIN, 14.0)
    timeline.end(Phase.JOIN, 15.0)

    assert timeline.phases == pytest.approx({Phase.SYNC: 3.0, Phase.JOIN: 1.0})


def test_a_phase_that_was_not_begun_does_not_end() -> None:
    timeline = Timeline("why", 10.0)
    timeline.end(Phase.ASSIGN, 11.0)

    assert timeline.phases == {}


def test_outcomes_and_phases_are_their_names() -> None:
    assert [str(phase) for phase in Phase] == ["revoke", "join", "sync", "join_and_sync", "assign"]
    assert [str(outcome) for outcome in Outcome] == ["completed", "lost", "failed"]
