"""The ledger and its check: who owned what, what is lost, what came twice, and whether there was a reason."""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    ANY_END,
    Assigned,
    Committed,
    Consumed,
    Died,
    End,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Faulted,
    GuaranteeViolatedError,
    HistoryReader,
    HistoryWriter,
    Killed,
    Ledger,
    Left,
    MemberHistory,
    Produced,
    Rebalanced,
    Redelivery,
    Report,
    Revoked,
    Sought,
    Span,
    Started,
    now,
)

T = "t"


@dataclass(frozen=True, slots=True)
class Restocked(Event):
    """An event of an application."""

    partition: TopicPartitionKey
    good: str


class Story:
    """Events, one a second, in a ledger."""

    def __init__(self, *produced: tuple[int, int, int]) -> None:
        self.ledger = Ledger()
        self._clock = itertools.count(1)
        if produced:
            self.ledger.record_produced(
                Produced(next(self._clock), tuple(Span(T, *each) for each in produced))
            )

    def assign(self, member: str, *partitions: int) -> None:
        keys = tuple((T, number) for number in partitions)
        self.ledger.record(member, Assigned(next(self._clock), keys))

    def revoke(self, member: str, *partitions: int, lost: bool = False) -> None:
        keys = tuple((T, number) for number in partitions)
        self.ledger.record(member, Revoked(next(self._clock), keys, lost))

    def consume(self, member: str, start: int, stop: int, partition: int = 0) -> None:
        time = next(self._clock)
        self.ledger.record(member, Consumed(time, time - 0.5, (Span(T, partition, start, stop),)))

    def commit(self, member: str, offset: int) -> None:
        self.ledger.record(member, Committed(next(self._clock), {(T, 0): offset}))

    def kill(self, member: str, stored: int | None = None) -> None:
        self.ledger.record(member, Killed(next(self._clock), {} if stored is None else {(T, 0): stored}))

    def fault(self, member: str, *, begins: bool) -> None:
        self.ledger.record(member, Faulted(next(self._clock), "suspend", begins))

    def own_and_consume(self, member: str, start: int, stop: int) -> None:
        self.assign(member, 0)
        self.consume(member, start, stop)

    def report(self) -> Report:
        return self.ledger.check()


def again(start: int, stop: int, before: str, by: str) -> tuple[Redelivery, ...]:
    return (Redelivery(Span(T, 0, start, stop), before, by),)


def test_what_was_produced_and_consumed_once_is_in_order() -> None:
    story = Story((0, 0, 100), (1, 0, 50))
    story.assign("a", 0, 1)
    story.consume("a", 0, 60)
    story.consume("a", 0, 50, partition=1)
    story.revoke("a", 0)
    story.own_and_consume("b", 60, 100)

    report = story.report()

    report.raise_for_violations()
    assert (report.produced, report.consumed, story.ledger.unconsumed_count) == (150, 150, 0)
    assert (report.explained, report.foreign) == ((), ())
    assert story.ledger.owners() == {(T, 0): ["b"], (T, 1): ["a"]}
    assert story.ledger.owners_at(3) == {(T, 0): ["a"], (T, 1): ["a"]}


def test_what_no_member_consumed_is_lost() -> None:
    """A gap in the middle of a partition, the end of another, and all of a third."""
    story = Story((0, 0, 10), (1, 0, 10), (2, 5, 7))
    story.assign("a", 0, 1, 2)
    story.consume("a", 0, 4)
    story.consume("a", 6, 10)
    story.consume("a", 0, 9, partition=1)

    report = story.report()

    assert report.lost == (Span(T, 0, 4, 6), Span(T, 1, 9, 10), Span(T, 2, 5, 7))
    assert story.ledger.unconsumed_count == 5
    assert not story.ledger.is_consumed({(T, 0): 5})
    assert story.ledger.is_consumed({(T, 0): 4})
    with pytest.raises(GuaranteeViolatedError, match=r"lost: t \[0\], offsets 4-5"):
        report.raise_for_violations()


def test_messages_at_the_end_of_a_partition_may_be_late_rather_than_lost() -> None:
    story = Story((0, 0, 10), (1, 0, 3))
    story.assign("a", 0, 1)
    story.consume("a", 0, 2)
    story.consume("a", 4, 7)

    report = story.ledger.check(waited=8)

    assert report.lost == (Span(T, 0, 2, 4),)
    assert report.violations == [
        "lost: t [0], offsets 2-3",
        "not consumed within 8 s: 3 messages at the end of t [0]",
        "not consumed within 8 s: 3 messages at the end of t [1]",
    ]
    assert story.ledger.unconsumed({(T, 0): 8}) == (Span(T, 0, 2, 4), Span(T, 0, 7, 8))


def test_the_end_of_a_partition_may_have_gaps_between_the_produced_messages() -> None:
    """Markers of transactions and messages of another producer are in between."""
    story = Story((0, 0, 4), (0, 5, 8), (0, 9, 12), (1, 0, 4), (1, 5, 8))
    story.assign("a", 0, 1)
    story.consume("a", 0, 2)
    story.consume("a", 0, 3, partition=1)
    story.consume("a", 4, 7, partition=1)

    report = story.ledger.check(waited=8)

    assert report.lost == (Span(T, 1, 3, 4),)
    assert report.unconsumed == (Span(T, 0, 2, 4), Span(T, 0, 5, 8), Span(T, 0, 9, 12), Span(T, 1, 7, 8))
    assert report.violations == [
        "lost: t [1], offset 3",
        "not consumed within 8 s: 8 messages at the end of t [0]",
        "not consumed within 8 s: 1 messages at the end of t [1]",
    ]


def test_a_loss_is_not_made_up_for_by_a_duplicate() -> None:
    """Counting alone would not see it: ten produced, ten consumed."""
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 9)
    story.revoke("a", 0)
    story.own_and_consume("b", 8, 9)

    report = story.report()

    assert report.consumed == report.produced
    assert report.lost == (Span(T, 0, 9, 10),)
    assert report.unexplained == again(8, 9, "a", "b")
    assert story.ledger.redelivered_count == 1


def test_what_was_not_produced_is_foreign_and_violates_no_guarantee() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 12)

    report = story.report()

    assert report.foreign == (Span(T, 0, 10, 12),)
    assert report.violations == []


def test_a_message_of_a_partition_that_is_not_owned_is_a_stray() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 9)
    story.revoke("a", 0)
    story.consume("a", 9, 10)

    assert story.report().violations == ["not owned: a consumed t [0], offset 9, at 5.000"]


def test_what_a_killed_member_had_not_committed_may_come_twice() -> None:
    story = Story((0, 0, 100))
    story.own_and_consume("b", 0, 60)
    story.commit("b", 40)
    story.kill("b", 40)
    story.own_and_consume("a", 40, 100)

    report = story.report()

    assert report.explained == again(40, 60, "b", "a")
    assert report.violations == []
    assert report.consumed == 120


def test_below_the_last_commit_there_is_no_excuse() -> None:
    """The next owner began before the committed offset: a part of it is explained, the rest is not."""
    story = Story((0, 0, 60))
    story.own_and_consume("b", 0, 60)
    story.commit("b", 40)
    story.kill("b", 40)
    story.own_and_consume("a", 30, 60)

    report = story.report()

    assert report.unexplained == again(30, 40, "b", "a")
    assert report.explained == again(40, 60, "b", "a")
    assert report.violations == ["consumed twice: t [0], offsets 30-39: by b and again by a"]


@pytest.mark.parametrize(
    ("reported", "stored", "committed"),
    [(40, 50, 50), (40, None, 40), (None, None, 0)],
    ids=["a commit that was not reported", "a commit that the coordinator forgot", "no commit"],
)
def test_the_last_commit_is_what_either_the_member_or_the_coordinator_knows(
    reported: int | None, stored: int | None, committed: int
) -> None:
    story = Story((0, 0, 60))
    story.own_and_consume("b", 0, 60)
    if reported is not None:
        story.commit("b", reported)
    story.kill("b", stored)
    story.own_and_consume("a", 0, 60)

    report = story.report()

    assert report.unexplained == (again(0, committed, "b", "a") if committed else ())
    assert report.explained == again(committed, 60, "b", "a")


def test_a_member_that_revoked_is_no_excuse_unless_any_change_is() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 10)
    story.commit("a", 8)
    story.revoke("a", 0)
    story.own_and_consume("b", 8, 10)

    assert story.report().unexplained == again(8, 10, "a", "b")
    assert story.ledger.check(ANY_END).explained == again(8, 10, "a", "b")


def test_two_owners_at_once_are_a_conflict_and_not_excused_by_a_later_death() -> None:
    """Both consumed it while both lived; the kill comes after, and explains nothing."""
    story = Story((0, 0, 10))
    story.own_and_consume("b", 0, 10)
    story.own_and_consume("a", 0, 10)
    story.kill("b", 0)

    report = story.report()

    assert report.unexplained == again(0, 10, "b", "a")
    assert report.conflicts == (
        "a owned t [0] from 4.000 to inf (open), while b owned t [0] from 2.000 to 6.000 (killed)",
    )


def test_a_death_explains_one_redelivery_and_not_the_next() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("b", 0, 10)
    story.kill("b")
    story.own_and_consume("a", 0, 10)
    story.revoke("a", 0)
    story.own_and_consume("c", 9, 10)

    report = story.report()

    assert [each.before for each in report.explained] == ["b"]
    assert report.unexplained == again(9, 10, "a", "c")


def test_a_member_that_consumes_the_same_again_is_not_excused() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 10)
    story.consume("a", 4, 6)

    assert story.report().unexplained == again(4, 6, "a", "a")


def test_what_comes_after_later_messages_is_out_of_order() -> None:
    """Counting offsets would not see it: each is consumed once."""
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 2)
    story.consume("a", 4, 10)
    story.consume("a", 2, 5)

    report = story.report()

    assert report.disordered == ("a consumed t [0], offsets 2-3, after offset 9",)
    assert report.unexplained == again(4, 5, "a", "a")
    assert report.lost == ()
    assert "out of order: a consumed t [0], offsets 2-3, after offset 9" in report.violations


def test_a_suspended_member_cannot_know_and_what_it_has_in_hand_may_come_twice() -> None:
    story = Story((0, 0, 20))
    story.own_and_consume("a", 0, 10)
    story.fault("a", begins=True)
    story.own_and_consume("b", 0, 20)
    story.fault("a", begins=False)
    story.consume("a", 10, 12)
    story.revoke("a", 0, lost=True)

    report = story.report()

    assert report.violations == []
    assert [(each.before, each.again) for each in report.explained] == [("a", "b"), ("b", "a")]


@pytest.mark.parametrize(("began", "conflicts"), [(2.5, 0), (4.5, 1)], ids=["in time", "too late"])
def test_a_member_that_was_suspended_in_on_revoke_had_been_called_in_time(
    began: float, conflicts: int
) -> None:
    story = Story((0, 0, 20))
    story.assign("a", 0)
    story.fault("a", begins=True)
    story.assign("b", 0)
    story.fault("a", begins=False)
    story.ledger.record("a", Revoked(6, ((T, 0),), lost=False, began=began))

    assert len(story.report().conflicts) == conflicts


def test_a_member_that_keeps_what_it_lost_has_no_excuse() -> None:
    """It woke long ago, and has heard of nothing."""
    story = Story((0, 0, 20))
    story.own_and_consume("a", 0, 10)
    story.fault("a", begins=True)
    story.assign("b", 0)
    story.fault("a", begins=False)
    for offset in range(10, 14):
        story.consume("a", offset, offset + 1)
    story.revoke("a", 0, lost=True)

    assert len(story.report().conflicts) == 1


PAUSE, SUSPEND = "pause polling", "suspend"


@pytest.mark.parametrize(
    ("faults", "times"),
    [
        ([(PAUSE, True), (SUSPEND, True), (SUSPEND, False), (PAUSE, False)], [(1, 4), (2, 3)]),
        ([(PAUSE, True), (SUSPEND, True), (PAUSE, False), (SUSPEND, False)], [(1, 3), (2, 4)]),
        ([(PAUSE, True), (PAUSE, False), (PAUSE, False)], [(1, 2)]),
        ([(SUSPEND, True), (SUSPEND, True), (SUSPEND, False)], [(1, 3)]),
        ([(PAUSE, True), (SUSPEND, False)], [(1, math.inf)]),
        ([(SUSPEND, False)], []),
    ],
    ids=["nested", "crossed", "ended twice", "begun twice", "another one ended", "ended without a begin"],
)
def test_each_fault_lasts_from_its_begin_to_its_end(
    faults: list[tuple[str, bool]], times: list[tuple[float, float]]
) -> None:
    events = [Faulted(time, name, begins) for time, (name, begins) in enumerate(faults, start=1)]

    assert MemberHistory("a", events).faults == times


def test_a_fault_that_ended_within_another_is_no_excuse_later() -> None:
    story = Story((0, 0, 20))
    story.own_and_consume("a", 0, 10)
    for name, begins in ((PAUSE, True), (SUSPEND, True), (SUSPEND, False), (PAUSE, False)):
        story.ledger.record("a", Faulted(3.5, name, begins))
    story.own_and_consume("b", 0, 20)
    story.revoke("a", 0, lost=True)

    assert len(story.report().conflicts) == 1


def test_the_state_of_members_is_known_at_any_time() -> None:
    story = Story()
    ledger = story.ledger
    ledger.record("a", Rebalanced(1, 2, 0.5, "completed", ((T, 0),)), Rebalanced(1, 3, 0.5, "failed", ()))
    ledger.record("a", Failed(1, "no broker"))
    assert not ledger.was_assigned("a")
    story.assign("a")
    story.commit("a", 7)
    story.commit("a", 5)
    ledger.record("a", Committed(9, {(T, 0): 8}, 8.5, "fenced"))

    assert ledger.was_assigned("a")
    assert ledger.generations == {"a": 2}
    assert (ledger.commits["a"], ledger.committed()) == (2, {(T, 0): 7})
    assert ledger.errors("a") == ["no broker"]


def test_all_events_come_back_from_a_history_and_a_line_that_was_cut_short_waits(tmp_path: Path) -> None:
    events: list[Event] = [
        Started(1.5, {"metrics": "here"}),
        Assigned(2, ((T, 0), ("u", 1))),
        Rebalanced(3, 1, None, "completed", ((T, 0),)),
        Consumed(4, 3.5, (Span(T, 0, 1, 2), Span("u", 1, 5, 9))),
        Consumed(4, 3.5, (Span(T, 0, 2, 4),), ("a", "b")),
        EndReached(4.1, 4, (T, 0), 4),
        Sought(4.15, (T, 0), 2),
        ErrorReturned(4.2, "UNKNOWN_TOPIC_OR_PART", None, "no such topic"),
        Committed(5, {(T, 0): 2, ("u", 1): 9}),
        Committed(5, {(T, 0): 4}, 4.9, "fenced"),
        Failed(5.5, "no broker"),
        Faulted(6, "suspend", begins=True),
        Revoked(7, ((T, 0),), lost=True),
        Revoked(7, ((T, 0),), lost=False, began=6.9),
        Killed(8, {(T, 0): 1}),
        Died(8.5, "out of memory"),
        Left(9),
        Produced(10, (Span(T, 0, 0, 1),)),
        Produced(10, (Span(T, 0, 1, 2),), ("b",)),
        Restocked(10.5, (T, 0), "tea"),
    ]
    path = tmp_path / "history"
    reader = HistoryReader(path)
    assert list(reader.read()) == []
    writer = HistoryWriter(path)
    writer.write(*events[:3])
    assert list(reader.read()) == events[:3]
    writer.write(*events[3:])
    writer.close()
    with path.open("ab") as file:
        file.write(b'["Left",')
        file.flush()
        assert list(reader.read()) == events[3:]
        assert list(reader.read()) == []
        file.write(b"11.0]\n")

    assert list(reader.read()) == [Left(11)]


def test_an_event_of_an_application_needs_a_name_of_its_own() -> None:
    with pytest.raises(TypeError, match=r"_groups\.events has an event 'Consumed': give this one another"):
        type("Consumed", (Event,), {"__module__": __name__})


def test_the_messages_of_a_deleted_topic_are_forgotten() -> None:
    story = Story((0, 0, 10), (1, 0, 10))
    ledger = story.ledger
    story.own_and_consume("a", 0, 8)
    story.commit("a", 8)
    story.revoke("a", 0)

    ledger.forget(T)
    assert (ledger.unconsumed_count, ledger.redelivered_count, ledger.committed()) == (0, 0, {})
    later = now() + 1
    ledger.record_produced(Produced(later, (Span(T, 0, 0, 3),)))
    assert ledger.unconsumed() == (Span(T, 0, 0, 3),)
    ledger.record("b", Assigned(later, ((T, 0),)), Consumed(later + 1, later, (Span(T, 0, 0, 3),)))

    report = ledger.check()
    assert report.violations == []
    assert (report.produced, report.consumed, ledger.redelivered_count) == (3, 3, 0)


def test_a_partition_is_owned_until_on_revoke_returns() -> None:
    story = Story((0, 0, 10))
    story.own_and_consume("a", 0, 10)
    story.ledger.record("a", Committed(90, {(T, 0): 10}), Revoked(100, ((T, 0),), lost=False, began=80))
    story.ledger.record("b", Assigned(95, ((T, 0),)))

    (first, _) = story.ledger.ownership()

    assert (first.revoking, first.end, first.committed) == (80, 100, 10)
    assert len(story.report().conflicts) == 1


def test_the_ends_of_ownership_are_told_apart() -> None:
    story = Story()
    story.assign("a", 0, 1, 2, 3)
    story.revoke("a", 0)
    story.revoke("a", 1, lost=True)
    story.kill("a")
    story.assign("b", 4)
    story.ledger.record("b", Left(100))
    story.assign("c", 5)
    story.assign("d", 6)
    story.ledger.record("d", Died(100, "out of memory"))

    assert [window.ended_by for window in story.ledger.ownership()] == [
        *(End.REVOKED, End.LOST, End.KILLED, End.KILLED),
        *(End.REVOKED, End.OPEN, End.DIED),
    ]
