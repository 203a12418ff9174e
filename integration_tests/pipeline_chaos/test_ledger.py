"""The check of the tables against the ledger finds each kind of error, and the schedule is its seed's."""

import json
from collections.abc import Callable

import pytest

from integration_tests.pipeline_chaos.jobs import logged_sentences
from integration_tests.pipeline_chaos.ledger import Event, Found, Ledger, Unfinished, check
from integration_tests.pipeline_chaos.schedule import Kind, draw

OUTPUT = (
    "2026-11-25 09:32:49,000 WARNING groupwright.pipeline: events was deleted and created again: its topic "
    "id is new and was old, and the tables have read the former topic up to offset (partition) 2 (0), 1 (1). "
    "on_data_loss=restart: the job will read the new topic from its beginning"
)


def ledger() -> Ledger:
    return Ledger(
        events=[Event("a", 0, 0, 1), Event("b", 0, 0, 2), Event("c", 1, 0, 0)],
        commits=[("g", 0, 5)],
        hidden={"aborted"},
        uncertain={"perhaps"},
        topic_ids=["old", "new"],
    )


def found(events: str = "a,c", commits: int = 1, records: int = 1, quarantined: int = 0) -> Found:
    return Found(events.split(","), [("g", 0, 5)] * commits, [(0, 9)] * records, quarantined)


def test_events_beyond_the_stated_position_are_explained() -> None:
    findings = check(ledger(), found(), OUTPUT)
    assert findings.violations == []
    assert list(findings.explained.values()) == [1]
    assert "was deleted and created again" in next(iter(findings.explained))
    assert check(ledger(), found("a,b,c,perhaps"), "").violations == []


@pytest.mark.parametrize(
    ("rows", "output", "violation"),
    [
        (lambda: found("b,c"), OUTPUT, "Event(id='a', incarnation=0, partition=0, offset=1) is in no table"),
        (found, "", "Event(id='b', incarnation=0, partition=0, offset=2) is in no table"),
        (lambda: found("a,b,c,c"), OUTPUT, "event c has 2 rows"),
        (lambda: found("a,b,c,aborted"), OUTPUT, "its transaction was aborted"),
        (lambda: found("a,b,c,x"), OUTPUT, "event x is in the tables, and was never sent"),
        (lambda: found(commits=0, records=0), OUTPUT, "commit ('g', 0, 5) is in no table"),
        (lambda: found(commits=2, records=2), OUTPUT, "the record (0, 9) of __consumer_offsets has 2 rows"),
        (lambda: found(quarantined=3), OUTPUT, "3 records are in quarantine"),
    ],
)
def test_each_kind_of_error_is_found(rows: Callable[[], Found], output: str, violation: str) -> None:
    (line,) = check(ledger(), rows(), output).violations
    assert violation in line


def test_records_of_an_unfinished_batch_that_was_deleted_may_be_added_again() -> None:
    sent = ledger()
    sent.unfinished = [Unfinished(0, 0, 1, 2), Unfinished(None, 0, 9, 10)]
    findings = check(sent, found("a,a,b,c", commits=2, records=2), OUTPUT)
    assert findings.violations == []
    assert findings.repeated == 2
    assert [line[-10:] for line in check(sent, found("a,b,b,c,c"), OUTPUT).violations] == ["has 2 rows"] * 2
    assert len(check(sent, found("a,a,a,b,c"), OUTPUT).violations) == 1


def test_the_ledger_of_an_aborted_transaction_is_json() -> None:
    sent = ledger()
    sent.hidden = {"b", ("transactional", 0, 7), "a"}
    assert json.loads(sent.as_json())["hidden"] == [["transactional", 0, 7], "a", "b"]


def test_a_sentence_is_found_after_an_unfinished_line_of_the_jvm() -> None:
    assert [
        sentence[:19] for sentence in logged_sentences(f"x\n  in _call_proxy{OUTPUT}\n{OUTPUT}\n  at y")
    ] == ["events was deleted "] * 2
    assert logged_sentences("2026-11-25 10:10:47,244 INFO groupwright.pipeline: batch 0: 5 records") == []


def test_a_seed_gives_one_schedule_with_each_kind() -> None:
    faults = draw(7, 600, 20)
    assert faults == draw(7, 600, 20)
    assert faults != draw(8, 600, 20)
    assert {fault.kind for fault in faults[: len(Kind)]} == set(Kind)
