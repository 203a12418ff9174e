"""A contestant may be slow, silent, or die; the run goes on, and says what happened."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.assignors.cases import GROUPWRIGHT, JAVA, LOAD_AWARE, Case, Event, Subscriptions
from benchmarks.assignors.contestants import Contestant
from benchmarks.assignors.results import Outcome, Row, Status
from benchmarks.assignors.runner import Effort, run_case
from benchmarks.assignors.targets import findings_of, ratio
from integration_tests.harness.patience import PATIENCE

CASE = Case(
    assignor="range",
    subscriptions=Subscriptions.EQUAL,
    event=Event.FULL,
    partitions=40,
    members=4,
    topics=4,
)
EFFORT = Effort(patience=0.01, longest=0.1, limit=PATIENCE)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("program", "status", "note"),
    [
        ("print('ready', flush=True); import time; time.sleep(60)", Status.TIMEOUT, ""),
        ("print('ready'); raise MemoryError('no room')", Status.FAILED, "MemoryError: no room"),
        ("print('ready'); print('failed KeyError: 1')", Status.FAILED, "KeyError: 1"),
        ("print('lacks sticky')", Status.LACKING, "sticky"),
        ("pass", Status.FAILED, "it ended without a word"),
    ],
)
def test_a_failed_run_is_noted(program: str, status: Status, note: str, tmp_path: Path) -> None:
    contestant = Contestant(JAVA, "failing", (sys.executable, "-c", program))

    effort = replace(EFFORT, limit=0.5) if status is Status.TIMEOUT else EFFORT
    outcome = run_case(CASE, [contestant], effort, tmp_path, lambda *_: None).outcomes[JAVA]

    assert (outcome.status, outcome.note) == (status, note)


def test_a_contestant_is_measured_and_its_answer_judged(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "benchmarks.assignors.programs.groupwright_leader")

    row = run_case(CASE, [Contestant(GROUPWRIGHT, "", command)], EFFORT, tmp_path, lambda *_: None)

    outcome = row.outcomes[GROUPWRIGHT]
    assert outcome.status is Status.OK
    assert outcome.runs >= 1  # more if the machine has time for them
    assert outcome.peak > 1_000_000
    assert outcome.quality is not None
    # Of each topic's 10 partitions, range gives 3, 3, 2 and 2.
    assert (outcome.quality.fault, outcome.quality.squares) == ("", 2 * 12**2 + 2 * 8**2)
    assert findings_of(row) == []


def test_a_load_aware_step_is_measured_against_its_limit(tmp_path: Path) -> None:
    case = Case(
        assignor=LOAD_AWARE,
        subscriptions=Subscriptions.EQUAL,
        event=Event.FULL,
        partitions=10_000,
        members=200,
        topics=100,
    )
    command = (sys.executable, "-m", "benchmarks.assignors.programs.groupwright_leader")

    row = run_case(
        case, [Contestant(GROUPWRIGHT, "", command), Contestant(JAVA, "")], EFFORT, tmp_path, lambda *_: None
    )

    outcome = row.outcomes[GROUPWRIGHT]
    assert row.outcomes[JAVA].status is Status.LACKING
    assert outcome.quality is not None
    assert outcome.quality.peak is not None
    assert outcome.quality.peak < 1.01
    slow = Row(case, row.outcomes | {GROUPWRIGHT: replace(outcome, best=0.3)})
    assert [(finding.text, finding.reached) for finding in findings_of(slow)] == [
        ("300 ms, wanted 200", False)
    ]


def test_who_runs_out_of_time_is_slower_by_at_least_that() -> None:
    ours = Outcome(Status.OK).with_run(0.3).with_run(0.2)
    java = Outcome(Status.TIMEOUT, limit=30.0)

    assert str(ratio(Row(CASE, {GROUPWRIGHT: ours, JAVA: java}), JAVA)) == ">150x"
