"""The model of the coordinator answers as a real broker does: random requests, and cases worth keeping."""

import asyncio
from collections.abc import Iterator

import pytest

from groupwright.testing import LocalKafka
from integration_tests.coordinator_model import runner
from integration_tests.coordinator_model.programs import (
    Actor,
    Commit,
    DeleteOffsets,
    Describe,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    MemberId,
    Names,
    Plan,
    Program,
    Sync,
    Wait,
    generate,
)

pytestmark = pytest.mark.kafka

_PACE = 4.0
"""Times are four times as long as the command's, since other tests run at the same time."""
_SEEDS = range(1_000_000, 1_000_050)

_DYNAMIC = Actor()
_STATIC = Actor(instance_id="static")
_SHORT = Actor(session_ms=1_000, rebalance_ms=1_500)

CASES = (
    Program(
        "an old JoinGroup of a static member lists members without instances",
        (_STATIC,),
        (Join(0), Join(0, version=3), Sync(0, version=3), Describe()),
    ),
    Program(
        "commits that fail for all partitions, and for one of them",
        (_DYNAMIC,),
        (
            Join(0),
            Join(0),
            Commit(0),
            Sync(0),
            Commit(0, too_large=True),
            Commit(0, MemberId.UNKNOWN),
            Fetch(),
        ),
    ),
    Program(
        "two clients with one instance fence each other, parked or not",
        (_STATIC, _STATIC, _DYNAMIC),
        (Join(0), Sync(0), Join(2), Join(2), Join(0), Join(1), Join(2), Sync(0), Sync(1), Describe()),
    ),
    Program(
        "a static leader returns, and skips the assignment",
        (_STATIC, _DYNAMIC),
        (
            Join(0),
            Sync(0),
            Join(0, MemberId.NONE),
            Sync(0, plan=Plan.NONE),
            Join(0, MemberId.NONE, version=8),
        ),
    ),
    Program(
        "the replacement of a static member that owes a SyncGroup",
        (_STATIC, Actor(rebalance_ms=1_500)),
        (Join(0), Join(1), Join(1), Join(0), Sync(1), Sync(0), Join(0, MemberId.NONE), Wait(2), Describe()),
    ),
    Program(
        "a pending member leaves a Stable group",
        (_DYNAMIC, _DYNAMIC),
        (Join(0), Join(0), Sync(0), Join(1), Leave((1,)), Describe(), Heartbeat(0)),
    ),
    Program(
        "a session ends while members join",
        (_SHORT, _DYNAMIC),
        (Join(0), Join(0), Sync(0), Join(1), Join(1), Wait(2), Sync(1), Describe(), Heartbeat(0)),
    ),
    Program(
        "members that do not sync are removed",
        (Actor(rebalance_ms=1_500), Actor(rebalance_ms=1_500)),
        (
            Join(0),
            Join(0),
            Join(1),
            Join(1),
            Join(0),
            Sync(0),
            Wait(2),
            Describe(),
            Heartbeat(0),
            Heartbeat(1),
        ),
    ),
    Program(
        "a full group refuses a static member that returns",
        (_STATIC, *(Actor(instance_id=f"other{number}") for number in range(4))),
        (*(Join(actor) for actor in range(5)), Join(0), Join(1), Join(2), Join(3), Join(0, MemberId.NONE)),
    ),
    Program(
        "a SyncGroup with another protocol, and offsets of consumed topics",
        (_DYNAMIC,),
        (
            Join(0),
            Join(0),
            Sync(0, names=Names.OTHER),
            Sync(0, names=Names.MISSING),
            Sync(0),
            Commit(0),
            DeleteOffsets(),
            Fetch(),
        ),
    ),
)


@pytest.fixture(scope="module")
def player() -> Iterator[runner.Runner]:
    group = runner.settings(0, _PACE)
    with LocalKafka(config=runner.broker_config(group)) as kafka:
        found = runner.Runner(kafka, group, pace=_PACE)
        found.create_topics()
        yield found


def _differences(player: runner.Runner, programs: list[Program]) -> str:
    outcome = asyncio.run(player.run(programs))
    assert outcome.agreed + len(outcome.once) + len(outcome.uncertain) == len(programs) - len(
        outcome.differences
    )
    assert len(outcome.once) + len(outcome.uncertain) <= len(programs) // 2, str(outcome)
    return "\n".join(difference.words() for difference in outcome.differences)


def test_random_requests_are_answered_alike(player: runner.Runner) -> None:
    assert _differences(player, [generate(seed) for seed in _SEEDS]) == ""


def test_cases_are_answered_alike(player: runner.Runner) -> None:
    assert _differences(player, list(CASES)) == ""
