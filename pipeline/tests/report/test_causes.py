"""Chains of causes, in words. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from groupwright.pipeline._report.causes import chain
from groupwright.pipeline._report.group_facts import LagAfter, LagSample, Loss, Rebalance

STARTED = datetime(2026, 11, 24, 22, 0, tzinfo=UTC)
LEFT = Rebalance(
    generation=8,
    completed=STARTED + timedelta(seconds=41),
    started=STARTED,
    cause="expiry",
    duration=41.0,
    moved=6,
    fewest=6,
    handovers=0,
    reprocessed=0,
    joined=(),
    left=("c-7-id",),
    clients={"c-7-id": "c-7"},
    timeouts={"c-7-id": (45.0, 300.0)},
    losses=(),
    has_events=True,
    events=(),
)
NOTICED = STARTED + timedelta(seconds=12)


def test_a_member_that_did_not_poll() -> None:
    loss = Loss("c-7", NOTICED, "the application polls again after max.poll.interval.ms")
    assert chain(replace(LEFT, losses=[loss])) == [
        "c-7 did not poll for 312 s (max.poll.interval.ms is 300 s) and was removed",
        "6 partitions moved",
        "41 s until every member had its partitions",
    ]


def test_of_several_losses_of_a_client_the_first_belongs_to_the_rebalance() -> None:
    reason = "the application polls again after max.poll.interval.ms"
    again = Loss("c-7", NOTICED + timedelta(minutes=30), reason)
    assert "did not poll for 312 s" in chain(replace(LEFT, losses=[Loss("c-7", NOTICED, reason), again]))[0]


@pytest.mark.parametrize(
    ("losses", "has_events", "cause"),
    [
        (
            [Loss("c-7", NOTICED, "no heartbeat was answered for 45 s")],
            True,
            "c-7 was removed from the group (session.timeout.ms is 45 s): no heartbeat was answered for 45 s",
        ),
        ([Loss("c-7", NOTICED, None)], True, "c-7 was removed from the group (session.timeout.ms is 45 s)"),
        ([Loss("another", NOTICED, None)], True, "c-7 left"),
        ([], False, "c-7 left or timed out (without client events it is unknown which)"),
    ],
)
def test_a_member_that_was_removed_or_left(losses: Sequence[Loss], cause: str, *, has_events: bool) -> None:
    assert chain(replace(LEFT, losses=losses, has_events=has_events))[0] == cause


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        ("first", "c-1 and c-2 started the group"),
        ("join", "c-1 and c-2 joined"),
        ("metadata", "a subscribed topic got more partitions"),
        ("subscription", "a member changed its subscription"),
        ("unknown", "the cause is unknown: earlier generations are not in the tables"),
    ],
)
def test_other_causes(cause: str, sentence: str) -> None:
    clients = {"a": "c-1", "b": "c-2"}
    found = chain(replace(LEFT, cause=cause, left=(), joined=("a", "b"), clients=clients))
    assert found[0] == sentence


def test_effects_and_what_is_unknown() -> None:
    found = chain(replace(LEFT, moved=9, fewest=6, handovers=1, reprocessed=120, error="timed out"))
    assert found[1:] == [
        "9 partitions moved, 3 of them needlessly",
        "41 s until every member had its partitions in 2 rounds",
        "120 messages processed again",
        "error: timed out",
    ]
    assert chain(replace(LEFT, moved=None, fewest=None, duration=None))[1:] == [
        "moves unknown",
        "duration unknown",
    ]


def _samples(*messages: tuple[float, int]) -> list[LagSample]:
    return [(STARTED + timedelta(seconds=seconds), lag) for seconds, lag in messages]


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (
            _samples((-30, 0), (30, 900), (90, 0)),
            "the lag rose to 900 messages, and within 90 s all was consumed",
        ),
        (
            _samples((-30, 20), (30, 901), (90, 400), (150, 20)),
            "the lag rose from 20 to 901 messages, and was back within 150 s",
        ),
        (
            _samples((-30, 20), (30, 10), (90, 901), (150, 400)),
            "the lag rose from 20 to 901 messages, and was not back after 150 s",
        ),
        (_samples((-90, 900), (-30, 20), (90, 20), (150, 901)), "the lag did not rise"),
        (_samples((30, 900), (90, 0)), None),
        (_samples((-30, 0), (30, 900)), None),
    ],
    ids=["consumed", "back", "not back", "never higher", "unknown before", "unknown after"],
)
def test_the_chain_ends_with_the_lag(samples: Sequence[LagSample], sentence: str | None) -> None:
    lag = LagAfter.of(samples, STARTED, STARTED + timedelta(seconds=41))
    found = chain(replace(LEFT, lag=lag, reprocessed=1))
    assert found[3:] == [*([sentence] if sentence else []), "1 message processed again"]
