"""The summary in words, and what makes it a failure."""

from dataclasses import replace

from groupwright.cli.demo.ledger import Account, Redelivery
from groupwright.cli.demo.offsets import Span
from groupwright.cli.demo.reports import Rebalanced, Revoked
from groupwright.cli.demo.roster import Member, Roster
from groupwright.cli.demo.summary import Change, summarize

BALANCED = Account(produced=1000, consumed=1020, lost=(), foreign=(), explained=(), unexplained=())
CHANGES = [Change("two join", 0.5, 1, 0), Change("one is killed", 6.2, 2, 4)]


def members() -> list[Member]:
    roster = Roster(8)
    for name in ("a", "b"):
        roster.enter(name)
        roster.report(name, Rebalanced(1, 0.2, (0, 1, 2, 3)))
    roster.report("a", Revoked((0, 1, 2, 3)))
    roster.report("a", Rebalanced(2, 0.6, tuple(range(8))))
    return list(roster.members.values())


def test_it_says_how_long_how_many_and_how_far() -> None:
    lines = dict(summarize(members(), CHANGES, BALANCED).lines())
    assert lines["rebalances"] == "3 by 2 members, in 2 generations: 0.200 s min, 0.200 s median, 0.600 s max"
    assert lines["partitions"] == "4 moved to another member, of 4 that were given up"
    assert lines["owners"] == "2 of 2 changes left each partition with exactly one"
    assert lines["messages"] == "1,000 produced, 1,020 consumed"
    assert lines["lost"] == "0"
    assert lines["duplicates"] == "0"
    assert "unexplained" not in lines


def test_duplicates_with_a_reason_pass_and_the_reason_is_told() -> None:
    account = replace(BALANCED, explained=(Redelivery(Span(0, 10, 30), "b", "a"),))
    summary = summarize(members(), CHANGES, account)
    assert summary.passed
    assert dict(summary.lines())["duplicates"].startswith("20: consumed by b after its last commit")


def test_a_loss_fails_and_says_which_messages() -> None:
    account = replace(BALANCED, lost=tuple(Span(0, offset, offset + 2) for offset in (1, 10, 20, 30)))
    summary = summarize(members(), CHANGES, account)
    assert not summary.passed
    lost = dict(summary.lines())["lost"]
    assert lost == "8 (partition 0, offsets 1-2; partition 0, offsets 10-11; partition 0, offsets 20-21; ...)"


def test_a_duplicate_without_a_reason_fails_and_says_who() -> None:
    account = replace(BALANCED, unexplained=(Redelivery(Span(3, 1, 2), "a", "b"),))
    summary = summarize(members(), CHANGES, account)
    assert not summary.passed
    assert dict(summary.lines())["unexplained"] == "1 (partition 3, offset 1: by a and again by b)"


def test_a_message_that_nobody_produced_fails() -> None:
    summary = summarize(members(), CHANGES, replace(BALANCED, foreign=(Span(0, 1, 2),)))
    assert not summary.passed
    assert dict(summary.lines())["foreign"] == "1 (partition 0, offset 1), not of this demo"
