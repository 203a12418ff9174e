"""The summary in words, and what makes it a failure."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from groupwright import cli
from groupwright.cli.demo.summary import Change, summarize
from groupwright.cli.demo.view_model import MemberRow
from groupwright.testing.groups import Rebalanced, Redelivery, Report, Revoked, Span

IN_ORDER = Report(
    produced=1000, consumed=1020, conflicts=(), strays=(), lost=(), foreign=(), explained=(), unexplained=()
)
CHANGES = [Change("two join", 0.5, 1, 0), Change("one is killed", 6.2, 2, 4)]


def owned(*numbers: int) -> tuple[tuple[str, int], ...]:
    return tuple(("t", number) for number in numbers)


def members() -> list[MemberRow]:
    rows = [MemberRow("a"), MemberRow("b")]
    for row in rows:
        row.apply(Rebalanced(1, 1, 0.2, "completed", owned(0, 1, 2, 3)))
    rows[0].apply(Revoked(2, owned(0, 1, 2, 3), lost=False))
    rows[0].apply(Rebalanced(2, 2, 0.6, "completed", owned(*range(8))))
    return rows


def test_it_says_how_long_how_many_and_how_far() -> None:
    lines = dict(summarize(members(), CHANGES, IN_ORDER).lines())
    assert lines["rebalances"] == "3 by 2 members, in 2 generations: 0.200 s min, 0.200 s median, 0.600 s max"
    assert lines["partitions"] == "4 moved to another member, of 4 that were revoked; 0 kept"
    assert lines["meanwhile"] == "0 messages consumed by members during their rebalances"
    assert lines["owners"] == "2 of 2 changes left each partition with exactly one"
    assert lines["messages"] == "1,000 produced, 1,020 consumed"
    assert lines["lost"] == "0"
    assert lines["duplicates"] == "0"
    assert "unexplained" not in lines


def test_duplicates_with_a_reason_pass_and_the_reason_is_told() -> None:
    report = replace(IN_ORDER, explained=(Redelivery(Span("t", 0, 10, 30), "b", "a"),))
    summary = summarize(members(), CHANGES, report)
    assert summary.passed
    assert dict(summary.lines())["duplicates"].startswith("20: consumed by b after its last commit")


def test_a_loss_fails_and_says_which_messages() -> None:
    report = replace(IN_ORDER, lost=tuple(Span("t", 0, offset, offset + 2) for offset in (1, 10, 20, 30)))
    summary = summarize(members(), CHANGES, report)
    assert not summary.passed
    lost = dict(summary.lines())["lost"]
    assert lost == "8 (t [0], offsets 1-2; t [0], offsets 10-11; t [0], offsets 20-21; ...)"


def test_a_duplicate_without_a_reason_fails_and_says_who() -> None:
    report = replace(IN_ORDER, unexplained=(Redelivery(Span("t", 3, 1, 2), "a", "b"),))
    summary = summarize(members(), CHANGES, report)
    assert not summary.passed
    assert dict(summary.lines())["unexplained"] == "1 (t [3], offset 1: by a and again by b)"


def test_a_message_that_nobody_produced_fails() -> None:
    summary = summarize(members(), CHANGES, replace(IN_ORDER, foreign=(Span("t", 0, 1, 2),)))
    assert not summary.passed
    assert dict(summary.lines())["foreign"] == "1 (t [0], offset 1), not of this demo"


def test_two_owners_at_a_time_fail() -> None:
    summary = summarize(members(), CHANGES, replace(IN_ORDER, conflicts=("a and b",), strays=("c",)))
    assert not summary.passed
    assert dict(summary.lines())["conflicts"] == "2 (a and b; c)"


@pytest.mark.parametrize("seconds", [True, False])
def test_the_document_follows_the_schema(*, seconds: bool) -> None:
    schema = Path(cli.__file__).parent / "_schemas" / "demo.schema.json"
    lost = replace(IN_ORDER, lost=(Span("t", 0, 10, 30),))
    found = summarize(members() if seconds else [], CHANGES, lost).document()

    jsonschema.validate(found, json.loads(schema.read_text(encoding="utf-8")))
    assert (found["passed"], found["messages"]["lost"], found["partitions"]["moved"]) == (False, 20, 4)
    assert found["rebalances"]["max_seconds"] == (0.6 if seconds else None)
    assert found["changes"][1] == {"step": "one is killed", "seconds": 6.2, "generation": 2, "moved": 4}
