"""The rules of a group: a history that keeps them, and for each rule a history that breaks it."""

import math

import pytest

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    Assigned,
    Breach,
    Committed,
    Consumed,
    Died,
    EndReached,
    Event,
    Judge,
    Killed,
    Left,
    MemberHistory,
    PartitionLog,
    Revoked,
    Rule,
    Sought,
    Span,
    Window,
    in_order,
)

P = ("t", 0)
Told = tuple[str, Event]
"""A member, and its event."""


def assigned(member: str, time: float) -> Told:
    return member, Assigned(time, (P,))


def revoked(member: str, time: float, *, lost: bool = False) -> Told:
    return member, Revoked(time, (P,), lost)


def consumed(member: str, time: float, start: int, stop: int) -> Told:
    return member, Consumed(time, time - 0.1, (Span(*P, start, stop),))


def end(member: str, time: float, offset: int) -> Told:
    return member, EndReached(time, time - 0.1, P, offset)


def sought(member: str, time: float, offset: int) -> Told:
    return member, Sought(time, P, offset)


def committed(member: str, time: float, offset: int, error: str | None = None) -> Told:
    return member, Committed(time, {P: offset}, time - 0.1, error)


def judged(*told: Told, judge: Judge | None = None) -> list[Breach]:
    judge = judge or Judge()
    return [breach for member, event in told for breach in judge.apply(member, event)]


HONEST = (
    assigned("a", 1),
    end("a", 2, 0),
    consumed("a", 3, 0, 5),
    end("a", 4, 5),
    committed("a", 5, 3),
    committed("a", 5.5, 9, "no broker"),
    sought("a", 6, 5),
    consumed("a", 7, 5, 6),
    committed("a", 8, 6),
    revoked("a", 9),
    ("a", Left(10)),
    assigned("b", 10),
    consumed("b", 11, 6, 9),
    ("b", Killed(12, {})),
    assigned("c", 13),
    ("c", Died(14, "out of memory")),
    assigned("d", 15),
    revoked("d", 16, lost=True),
)


def test_an_honest_history_breaks_no_rule() -> None:
    judge = Judge()

    assert judged(*HONEST, judge=judge) == []
    assert (judge.log(P).committed, judge.log(P).committed_by) == (6, "a")
    assert judge.log(P).consumed.complete == 9
    assert judge.owners[P] == {}


def test_histories_are_judged_as_what_happens_is() -> None:
    histories: dict[str, list[Event]] = {}
    for member, event in HONEST:
        histories.setdefault(member, []).append(event)

    assert judged(*in_order(histories)) == []


BEGUN = (assigned("a", 1), consumed("a", 2, 0, 3))
HANDED_OVER = (*BEGUN, revoked("a", 3), assigned("b", 4))

LIES: dict[Rule, tuple[tuple[Told, ...], tuple[int, int, int], str]] = {
    # The history, whose last event is the lie; start, stop and the expected offset; in words.
    Rule.TWO_OWNERS: (
        (*BEGUN, assigned("b", 3)),
        (0, 0, 0),
        "b owned t [0] from 3.000 to inf (open), while a owned t [0] from 1.000 to inf (open)",
    ),
    Rule.ASSIGNED_TWICE: ((*BEGUN, assigned("a", 3)), (0, 0, 0), "a was assigned t [0], and owned it"),
    Rule.NOT_ASSIGNED: (
        (*HANDED_OVER, revoked("a", 5)),
        (0, 0, 0),
        "t [0] was revoked of a, which did not own it",
    ),
    Rule.NOT_REVOKED: ((*BEGUN, ("a", Left(3))), (0, 0, 0), "a left, and t [0] was not revoked"),
    Rule.NOT_OWNED: (
        (*HANDED_OVER, consumed("a", 5, 3, 5)),
        (3, 5, 0),
        "a reached t [0], offsets 3-4, and did not own the partition",
    ),
    Rule.STARTED_ELSEWHERE: (
        (*HANDED_OVER, consumed("b", 5, 4, 6)),
        (4, 6, 3),
        "b started at t [0], offsets 4-5; before, 3 was next",
    ),
    Rule.SKIPPED: (
        (*BEGUN, consumed("a", 3, 4, 6)),
        (4, 6, 3),
        "a reached t [0], offsets 4-5, and 3 was next",
    ),
    Rule.WENT_BACK: (
        (*BEGUN, consumed("a", 3, 4, 6), consumed("a", 4, 3, 4)),
        (3, 4, 6),
        "a reached t [0], offset 3, and 6 was next",
    ),
    Rule.WRONG_END: (
        (*BEGUN, end("a", 3, 2)),
        (2, 2, 3),
        "a reached t [0], offset 2, and 3 was next",
    ),
    Rule.CONSUMED_TWICE: (
        (*HANDED_OVER, consumed("b", 5, 1, 6)),
        (1, 3, 6),
        "b received t [0], offsets 1-2 again, after a owned t [0] from 1.000 to 3.000 (revoked)",
    ),
    Rule.COMMIT_WENT_BACK: (
        (*BEGUN, committed("a", 3, 3), committed("a", 4, 2)),
        (2, 2, 3),
        "a committed 2 of t [0], after 3",
    ),
    Rule.COMMIT_BEYOND: (
        (*BEGUN, committed("a", 3, 4)),
        (4, 4, 3),
        "a committed 4 of t [0], and 3 was next",
    ),
}


def test_each_rule_has_a_history_that_breaks_it() -> None:
    assert set(LIES) == set(Rule)


@pytest.mark.parametrize("rule", LIES)
def test_a_history_that_breaks_a_rule_is_found_out_by_its_last_event(rule: Rule) -> None:
    (*truth, lie), offsets, words = LIES[rule]
    judge = Judge()
    judged(*truth, judge=judge)

    (breach,) = judged(lie, judge=judge)

    assert (breach.rule, breach.member, breach.partition, breach.time) == (rule, lie[0], P, lie[1].time)
    assert (breach.start, breach.stop, breach.expected) == offsets
    assert str(breach) == words


def test_a_breach_has_the_windows_of_both_members_which_go_on() -> None:
    judge = Judge()
    (breach,) = judged(*BEGUN, assigned("b", 3), judge=judge)

    assert (breach.window, breach.other) == (judge.owners[P]["b"], judge.owners[P]["a"])
    assert breach.other is not None
    assert breach.other.end == math.inf
    judged(revoked("a", 4), judge=judge)
    assert breach.other.end == 4
    (again,) = judged(consumed("b", 5, 2, 3), judge=judge)
    assert (again.window, again.other) == (breach.window, breach.other)


def test_each_other_owner_is_a_breach() -> None:
    found = judged(assigned("a", 1), assigned("b", 2), assigned("c", 3))

    assert [(each.member, each.other and each.other.member) for each in found] == [
        ("b", "a"),
        ("c", "a"),
        ("c", "b"),
    ]


def test_an_end_belongs_to_an_owner_too_and_is_where_an_owner_may_start() -> None:
    (stray,) = judged(end("a", 1, 4))
    (start,) = judged(assigned("a", 1), end("a", 2, 4))

    assert (stray.rule, stray.span.size) == (Rule.NOT_OWNED, 0)
    assert str(stray) == "a reached t [0], offset 4, and did not own the partition"
    assert (start.rule, start.start, start.expected) == (Rule.STARTED_ELSEWHERE, 4, 0)


def test_messages_come_where_an_owner_has_sought() -> None:
    back = (*BEGUN, sought("a", 3, 1))

    assert [each.rule for each in judged(*back, consumed("a", 4, 1, 4))] == [Rule.CONSUMED_TWICE]
    assert [each.rule for each in judged(*back, consumed("a", 4, 3, 4))] == [Rule.SKIPPED]
    assert [each.rule for each in judged(*back, end("a", 4, 3))] == [Rule.WRONG_END]
    (beyond,) = judged(*BEGUN, sought("a", 3, 4))
    assert (beyond.rule, str(beyond)) == (Rule.SKIPPED, "a reached t [0], offset 4, and 3 was next")
    assert judged(sought("b", 1, 4)) == []


def test_a_part_of_what_comes_may_be_new() -> None:
    found = judged(*BEGUN, consumed("a", 3, 5, 7), consumed("a", 4, 2, 9))

    assert [(each.rule, each.start, each.stop) for each in found] == [
        (Rule.SKIPPED, 5, 7),
        (Rule.WENT_BACK, 2, 7),
        (Rule.CONSUMED_TWICE, 2, 3),
        (Rule.CONSUMED_TWICE, 5, 7),
    ]


def test_the_caller_knows_where_an_owner_may_start() -> None:
    def at_the_last_commit(window: Window, log: PartitionLog) -> set[int]:
        assert window.member == "b" or log.commits == []
        return {log.committed}

    begin = (*BEGUN, committed("a", 3, 2), revoked("a", 4), assigned("b", 5))

    (again,) = judged(*begin, consumed("b", 6, 2, 4), judge=Judge(at_the_last_commit))
    (late, _) = judged(*begin, consumed("b", 6, 1, 4), judge=Judge(at_the_last_commit))
    (early,) = judged(*begin, consumed("b", 6, 3, 4), judge=Judge(at_the_last_commit))

    assert again.rule is Rule.CONSUMED_TWICE
    assert late.rule is early.rule is Rule.STARTED_ELSEWHERE


def test_the_caller_knows_to_which_window_a_message_belongs() -> None:
    class PresentAlone(MemberHistory):
        def window_of(self, partition: TopicPartitionKey, polled: float) -> Window | None:
            del polled
            return self.owned.get(partition)

    fetched_before = (*BEGUN, revoked("a", 3), ("a", Consumed(3.1, 2.9, (Span(*P, 3, 4),))))

    assert judged(*fetched_before) == []
    (breach,) = judged(*fetched_before, judge=Judge(history=lambda name: PresentAlone(name, ())))
    assert breach.rule is Rule.NOT_OWNED


def test_a_topic_that_is_created_again_begins_anew() -> None:
    judge = Judge()
    judged(*BEGUN, committed("a", 3, 3), judge=judge)
    (former,) = judge.owners[P].values()
    judge.create_again("t")

    told = (consumed("a", 4, 3, 4), revoked("a", 5), assigned("b", 6), consumed("b", 7, 0, 1))
    assert judged(*told, committed("b", 8, 1), judge=judge) == []
    assert (judge.log_of(former).consumed.complete, judge.log(P).consumed.complete) == (4, 1)


def test_a_member_that_was_killed_or_died_owns_nothing() -> None:
    for last in (Killed(3, {}), Died(3, "out of memory")):
        assert judged(*BEGUN, ("a", last), assigned("b", 4), consumed("b", 5, 3, 4)) == []
