"""Each rule of the checker is violated by a hand-made history; a correct history passes."""

import math
from collections.abc import Sequence

import pytest

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    Assigned,
    Committed,
    Consumed,
    Died,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Faulted,
    Killed,
    Left,
    Produced,
    Revoked,
    Sought,
    Span,
    Started,
)
from integration_tests.soak.checker import Findings, Records, check, summary
from integration_tests.soak.events import (
    Busy,
    Closing,
    FaultInjected,
    Interrupted,
    Starved,
    WakeupRaised,
)
from integration_tests.soak.stored import StoredCommit, StoredGeneration, StoredRecord, StoredRemoval
from integration_tests.soak.timing import Timing

TIMING = Timing(session=4, heartbeat=0.3, max_poll=6, silence=7.5, poll=0.2, commit=0.3, grace=1)
P: TopicPartitionKey = ("t", 0)
MemberFault = tuple[str, tuple[Event, ...]]
"""A member's name, and the events that the run adds to its history."""


def consumed(time: float, polled: float, partition: TopicPartitionKey, offset: int, value: str) -> Consumed:
    return Consumed(time, polled, (Span(*partition, offset, offset + 1),), (value,))


def produced_message(time: float, partition: TopicPartitionKey, offset: int, value: str) -> Produced:
    return Produced(time, (Span(*partition, offset, offset + 1),), (value,))


class Script:
    """Builder of one member's history, in call order."""

    def __init__(
        self, name: str, start: float = 0.0, instance: str | None = None, *, guest: bool = False
    ) -> None:
        self.name = name
        static = {"instance": instance} if instance else {}
        details = {"commits": "sync", "guest": str(guest), **static}
        self.events: list[Event] = [Started(start, details)]

    def does(self, *events: Event) -> "Script":
        self.events += events
        return self

    def gains(self, time: float, partition: TopicPartitionKey = P) -> "Script":
        self.events.append(Assigned(time, (partition,)))
        return self

    def revokes(self, time: float, *, lost: bool = False) -> "Script":
        self.events.append(Revoked(time, (P,), lost, time - 0.01))
        return self

    def consumes(self, time: float, *offsets: int, polled: float | None = None) -> "Script":
        for offset in offsets:
            begun = time - 0.001 if polled is None else polled
            self.events.append(consumed(time, begun, P, offset, f"m{offset}"))
        return self

    def commits(self, time: float, offset: int, error: str | None = None) -> "Script":
        self.events.append(Committed(time, {P: offset}, time - 0.005, error))
        return self

    def busy(self, begin: float, end: float) -> "Script":
        self.events += [Busy(begin, begin), Busy(end, begin)]
        return self

    def fails(self, time: float) -> "Script":
        self.events.append(Failed(time, "boom"))
        return self

    def ends(self, time: float) -> "Script":
        self.events.append(Left(time))
        return self


def findings_of(
    *scripts: Script,
    produced: int = 0,
    faults: Sequence[FaultInjected | MemberFault] = (),
    stored: Sequence[StoredRecord] | None = None,
    settled: float | None = None,
) -> Findings:
    histories = {script.name: list(script.events) for script in scripts}
    for fault in faults:
        if isinstance(fault, tuple):
            histories[fault[0]] += fault[1]
    if stored is None:  # as acknowledged, in the order of time
        commits = sorted(
            (event for script in scripts for event in script.events if isinstance(event, Committed)),
            key=lambda commit: commit.time,
        )
        stored = [StoredCommit("g", P, commit.offsets[P], "") for commit in commits if commit.error is None]
    feed = [produced_message(0.0, P, offset, f"m{offset}") for offset in range(produced)]
    injected = [fault for fault in faults if isinstance(fault, FaultInjected)]
    return check(Records({"g": histories}, feed, injected, stored, settled), TIMING)


def rules(*scripts: Script, **records: object) -> list[str]:
    return sorted(summary(findings_of(*scripts, **records).violations))  # type: ignore[arg-type]


def killed(name: str, at: float) -> MemberFault:
    return name, (Faulted(at, "kill", begins=True), Killed(at, {}))


def stalled(name: str, begin: float, end: float) -> list[MemberFault]:
    return [(name, (Faulted(begin, "suspend", begins=True), Faulted(end, "suspend", begins=False)))]


def handed_over() -> tuple[Script, Script]:
    first = Script("a").gains(1).consumes(2, 0, 1, 2).commits(3, 3).revokes(4).ends(5)
    return first, Script("b").gains(4.1).consumes(4.2, 3, 4).commits(5, 5).revokes(6).ends(7)


def test_a_clean_handover_breaks_nothing() -> None:
    findings = findings_of(*handed_over(), produced=5)

    assert findings.violations == []
    assert (findings.messages, findings.deliveries, findings.duplicates, findings.commits) == (5, 5, 0, 2)


# --- Owners


def test_two_members_that_own_a_partition_at_once_are_told() -> None:
    first = Script("a").gains(1).revokes(4).ends(5)
    second = Script("b").gains(3.99).revokes(6).ends(7)

    (violation,) = findings_of(first, second).violations

    assert violation.rule == "two owners"
    assert violation.members == ("a", "b")
    assert violation.text == (
        "a owned t [0] from 1.000 to 4.000 (revoked), and b owned t [0] from 3.990 to 6.000 (revoked)"
    )


def test_a_member_that_was_stopped_for_longer_than_its_session_may_be_replaced() -> None:
    first = Script("a").gains(1).revokes(9.1, lost=True).ends(10)
    second = Script("b").gains(7).revokes(11).ends(12)

    findings = findings_of(first, second, faults=stalled("a", 3, 9))

    assert findings.violations == []
    assert (findings.overlaps, findings.losses) == (1, 1)


def test_but_not_before_its_session_could_have_ended() -> None:
    first = Script("a").gains(1).revokes(9.1, lost=True).ends(10)
    second = Script("b").gains(5).revokes(11).ends(12)

    assert rules(first, second, faults=stalled("a", 3, 9)) == ["two owners"]


def test_a_short_stop_costs_nobody_a_partition() -> None:
    first = Script("a").gains(1).revokes(6, lost=True).ends(10)
    second = Script("b").gains(5.5).revokes(11).ends(12)

    assert rules(first, second, faults=stalled("a", 3, 4)) == ["two owners", "unexplained loss"]


def test_a_killed_member_owns_until_its_session_could_have_ended() -> None:
    dead = Script("a").gains(1)
    early, late = (Script("b").gains(time).revokes(11).ends(12) for time in (4.0, 7.0))

    assert rules(dead, early, faults=[killed("a", 3)]) == ["two owners"]
    assert rules(dead, late, faults=[killed("a", 3)]) == []


def test_the_heir_of_a_killed_static_member_owns_at_once_what_it_had() -> None:
    dead = Script("a", instance="i").gains(1)
    successor = Script("b", start=3.1, instance="i").gains(3.5).revokes(11).ends(12)

    assert rules(dead, successor, faults=[killed("a", 3)]) == []


def test_a_member_that_does_not_poll_may_be_replaced_after_the_poll_interval() -> None:
    first = Script("a").gains(1).busy(3, 11).revokes(11.1, lost=True).ends(12)
    early, late = (Script("b").gains(time).revokes(13).ends(14) for time in (5.0, 9.0))

    assert rules(first, early) == ["two owners"]
    assert rules(first, late) == []


def test_a_member_whose_session_a_silent_broker_ended_may_be_replaced_while_it_does_not_poll() -> None:
    """The member waits for a commit, then is busy: only its next poll reveals the expired session."""
    silence = [FaultInjected(2, "pause broker", "", 7.5)]
    first = Script("a").gains(1)
    first.events.append(Committed(8, {P: 0}, 5.5, "no answer in time"))
    first.busy(8.001, 15).revokes(15.1, lost=True).ends(16)
    second = Script("b").gains(8.1).revokes(20).ends(21)

    assert rules(first, second, faults=silence) == []
    assert rules(first, second) == ["two owners"]


def test_but_one_that_polls_hears_of_it() -> None:
    silence = [FaultInjected(2, "pause broker", "", 7.5)]
    first = Script("a").gains(1).busy(8.5, 15).revokes(15.1, lost=True).ends(16)
    second = Script("b").gains(8.1).revokes(20).ends(21)

    assert rules(first, second, faults=silence) == ["two owners"]


def test_a_stalled_member_may_not_be_given_another_message_when_it_wakes() -> None:
    faults = stalled("a", 3, 9)
    late = Script("a").gains(1).consumes(9.01, 0, polled=9.001).revokes(9.1, lost=True).ends(10)
    in_hand = Script("a").gains(1).consumes(9.01, 0, polled=2.999).revokes(9.1, lost=True).ends(10)
    second = Script("b").gains(7).consumes(7.5, 0).revokes(11).ends(12)

    assert rules(late, second, faults=faults) == ["stale delivery"]
    assert rules(in_hand, second, faults=faults) == []


def test_a_stalled_member_may_not_commit_for_the_new_owner() -> None:
    first = Script("a").gains(1).consumes(2, 0).commits(9.05, 1).revokes(9.1, lost=True).ends(10)
    second = Script("b").gains(7).revokes(11).ends(12)

    assert rules(first, second, faults=stalled("a", 3, 9)) == ["commit by a former owner"]


def test_a_commit_that_was_asked_for_before_the_stall_may_have_been_taken() -> None:
    first = Script("a").gains(1).consumes(2, 0)
    first.events.append(Committed(9.05, {P: 1}, 2.99))
    second = Script("b").gains(7).revokes(11).ends(12)

    assert rules(first.revokes(9.1, lost=True).ends(10), second, faults=stalled("a", 3, 9)) == []


def test_what_another_owns_already_is_lost_not_revoked() -> None:
    first = Script("a").gains(1).revokes(9.1).ends(10)
    second = Script("b").gains(7).revokes(11).ends(12)

    assert rules(first, second, faults=stalled("a", 3, 9)) == ["revoked, not lost"]


def test_a_loss_needs_a_reason() -> None:
    member = Script("a").gains(1).revokes(3, lost=True).ends(4)

    assert rules(member) == ["unexplained loss"]
    assert rules(member, faults=[FaultInjected(1.5, "crash broker", "", 2.5)]) == []


def test_what_was_lost_cannot_be_committed() -> None:
    member = Script("a").gains(1).consumes(2, 0)
    member.events += [Committed(9.1, {P: 1}, 9.05), Revoked(9.2, (P,), lost=True, began=9.0), Left(10)]

    assert rules(member, faults=stalled("a", 3, 9)) == ["commit after loss"]


def test_nothing_is_assigned_twice_in_a_row() -> None:
    assert rules(Script("a").gains(1).gains(2).revokes(3).ends(4)) == ["assigned twice"]


def test_what_is_revoked_was_assigned_and_what_was_assigned_is_revoked() -> None:
    assert rules(Script("a").gains(1).revokes(2).revokes(3).ends(4)) == ["not assigned"]
    assert rules(Script("a").gains(1).ends(4)) == ["not revoked"]


# --- Messages


def test_a_message_that_nobody_consumed_is_lost() -> None:
    (violation,) = findings_of(*handed_over(), produced=6).violations

    assert violation.rule == "lost message"
    assert violation.text == "offset 5 (m5) was acknowledged and never consumed"


def test_a_message_holds_what_was_written() -> None:
    member = Script("a").gains(1).consumes(2, 0).commits(2.5, 1).revokes(3).ends(4)
    member.events[2] = consumed(2, 1.9, P, 0, "other")

    assert rules(member, produced=1) == ["wrong message"]


def test_no_message_comes_from_a_partition_that_is_not_owned() -> None:
    member = Script("a").gains(1).revokes(3).consumes(3.5, 0).ends(4)

    assert rules(member) == ["not owned"]


def test_an_owner_that_begins_too_late_skips_messages_even_if_another_reads_them_later() -> None:
    first = Script("a").gains(1).consumes(2, 0).commits(2.5, 1).revokes(3).ends(4)
    second = Script("b").gains(3.1).consumes(3.2, 2)
    third = Script("c").gains(9).consumes(9.1, 1, 2).commits(9.5, 3).revokes(10).ends(11)

    assert rules(first, second, third, produced=3, faults=[killed("b", 4)]) == ["started elsewhere"]


def test_a_gap_within_an_assignment_is_skipped_too() -> None:
    assert rules(Script("a").gains(1).consumes(2, 0, 2).revokes(3).ends(4)) == ["skipped"]


def test_after_a_kill_what_was_not_committed_comes_again() -> None:
    dead = Script("a").gains(1).consumes(2, 0, 1, 2).commits(2.5, 1)
    successor = Script("b").gains(8).consumes(8.1, 1, 2).commits(8.5, 3).revokes(9).ends(10)

    findings = findings_of(dead, successor, produced=3, faults=[killed("a", 3)])

    assert findings.violations == []
    assert findings.duplicates == 2


def test_but_no_further_back_than_the_last_commit() -> None:
    dead = Script("a").gains(1).consumes(2, 0, 1, 2).commits(2.5, 2)
    successor = Script("b").gains(8).consumes(8.1, 1, 2).commits(8.5, 3).revokes(9).ends(10)

    (violation,) = findings_of(dead, successor, faults=[killed("a", 3)]).violations

    assert violation.rule == "behind the commit"
    assert violation.text == "b started at t [0], offset 1; before, 3 was next; 2 had been committed before"


def test_nothing_comes_again_after_a_handover_in_good_order() -> None:
    first = Script("a").gains(1).consumes(2, 0, 1).commits(2.5, 1).revokes(3).ends(4)
    second = Script("b").gains(3.1).consumes(3.2, 1).commits(3.5, 2).revokes(9).ends(10)

    assert rules(first, second) == ["consumed twice"]


def test_unless_the_commit_of_the_handover_failed() -> None:
    first = Script("a").gains(1).consumes(2, 0, 1).commits(2.5, 1).commits(2.9, 2, "no broker")
    second = Script("b").gains(3.1).consumes(3.2, 1).commits(3.5, 2).revokes(9).ends(10)

    assert rules(first.revokes(3).ends(4), second) == []


def test_after_a_seek_the_sought_message_comes() -> None:
    def member(*offsets: int) -> Script:
        script = Script("a").gains(1).consumes(2, 0, 1, 2).does(Sought(2.5, P, 1))
        return script.consumes(3, *offsets).commits(3.5, 4).revokes(4).ends(5)

    assert rules(member(1, 2, 3), produced=4) == []
    assert rules(member(3), produced=4) == ["skipped"]
    assert rules(member(2, 3), produced=4) == ["skipped"]


def test_a_seek_back_is_a_reason_for_duplicates_and_no_other_start_is() -> None:
    def second(*events: Event) -> Script:
        return Script("b").gains(3.1).does(*events).consumes(3.3, 1, 2).commits(3.5, 3).revokes(9).ends(10)

    def first() -> Script:
        return Script("a").gains(1).consumes(2, 0, 1).commits(2.5, 2).revokes(3).ends(4)

    assert rules(first(), second(Sought(3.2, P, 1)), produced=3) == []
    assert rules(first(), second(), produced=3) == ["behind the commit", "consumed twice"]


def test_a_seek_goes_no_further_than_what_was_given() -> None:
    member = Script("a").gains(1).does(Sought(1.5, P, 2)).consumes(2, 2).revokes(3).ends(4)

    assert rules(member) == ["skipped"]


def test_an_end_is_where_the_next_message_comes() -> None:
    def member(end: int, *offsets: int) -> Script:
        script = Script("a").gains(1).consumes(2, 0, 1).does(EndReached(2.5, 2.4, P, end))
        return script.consumes(3, *offsets).commits(3.5, 4).revokes(4).ends(5)

    assert rules(member(2, 2, 3), produced=4) == []
    assert rules(member(3), produced=2) == ["wrong end"]
    assert rules(member(1), produced=2) == ["wrong end"]


def test_an_end_may_come_first_and_not_beyond_what_was_given() -> None:
    assert rules(Script("a").gains(1).does(EndReached(2, 1.9, P, 0)).revokes(3).ends(4)) == []
    assert rules(Script("a").gains(1).does(EndReached(2, 1.9, P, 1)).revokes(3).ends(4)) == [
        "started elsewhere"
    ]
    assert rules(Script("a").does(EndReached(2, 1.9, P, 0)).ends(4)) == ["not owned"]


def test_an_interrupted_poll_may_lose_the_message_in_hand_and_no_other() -> None:
    def member(polled: float, *offsets: int) -> Script:
        script = Script("a").gains(1).consumes(2, 0).does(Interrupted(polled + 0.01, polled))
        return script.consumes(3, *offsets).commits(3.5, 9).revokes(4).ends(5)

    findings = findings_of(member(2.5, 2), produced=3)

    assert findings.violations == []
    assert findings.excused == 1
    assert rules(member(2.5, 3), produced=4) == ["lost message", "skipped"]
    # The interruption must lie between.
    assert rules(member(1.5, 2), produced=3) == ["lost message", "skipped"]
    assert rules(member(3.2, 2), produced=3) == ["lost message", "skipped"]


def test_each_interruption_is_blamed_for_the_loss_that_has_no_other() -> None:
    """Either interruption explains the first loss; only the earlier one explains the second."""
    other: TopicPartitionKey = ("t", 1)
    member = Script("a").gains(1).gains(1, other).consumes(2, 0)
    member.does(consumed(2.01, 2.005, other, 0, ""), Interrupted(2.1, 2.05))
    member.does(consumed(2.2, 2.15, other, 2, ""), Interrupted(2.4, 2.3))
    member.consumes(3, 2).commits(3.5, 3).revokes(4).does(Revoked(4.1, (other,), lost=False)).ends(5)

    assert rules(member) == []


def test_what_was_in_hand_when_the_member_left_is_missing_at_the_next_owner() -> None:
    first = Script("a").gains(1).consumes(2, 0).does(Interrupted(2.5, 2.4)).revokes(3).ends(4)
    second = Script("b").gains(3.1).consumes(3.2, 2).commits(3.5, 3).revokes(9).ends(10)

    assert rules(first, second, produced=3) == []


def test_the_last_message_of_all_may_have_been_in_hand() -> None:
    member = Script("a").gains(1).consumes(2, 0).does(Interrupted(2.5, 2.4)).revokes(3).ends(4)

    assert rules(member, produced=2) == []
    assert rules(member, produced=3) == ["lost message"]


def test_what_is_in_hand_when_another_thread_closes_belongs_to_the_closed_assignment() -> None:
    def member(*events: Event, polled: float = 2.9) -> Script:
        return Script("a").gains(1).does(*events).revokes(3).consumes(3.05, 0, polled=polled).ends(4)

    successor = Script("b").gains(3.1).consumes(3.2, 0).commits(3.5, 1).revokes(9).ends(10)

    assert rules(member(Closing(2.95)), successor, produced=1) == []
    assert rules(member(Closing(2.95), polled=3.01), successor, produced=1) == ["not owned"]
    assert rules(member(), successor, produced=1) == ["not owned"]


def test_a_message_may_be_consumed_while_another_threads_close_commits_what_was_processed() -> None:
    def member(consumed: float) -> Script:
        begin = Script("a").gains(1).consumes(2.8, 0).does(Closing(2.95)).consumes(consumed, 1)
        return begin.commits(3.1, 1).does(Revoked(3.1, (P,), lost=False, began=3)).ends(4)

    successor = Script("b").gains(3.2).consumes(3.3, 1).commits(3.5, 2).revokes(9).ends(10)

    assert rules(member(consumed=3.05), successor, produced=2) == []
    assert rules(member(consumed=2.97), successor, produced=2) == ["consumed twice"]


# --- Deleted and re-created topics

DELETED = [FaultInjected(4, "delete topic", "t", 4.5), FaultInjected(10, "make topic", "t", 10.5)]


def test_each_incarnation_of_a_topic_begins_anew() -> None:
    first = Script("a").gains(1).consumes(2, 0, 1).commits(2.5, 2).revokes(6).ends(7)
    second = Script("b").gains(11).consumes(12, 0, 1).commits(12.5, 2).revokes(13).ends(14)
    stored: list[StoredRecord] = [
        StoredCommit("g", P, 2, ""),
        StoredRemoval("g", P),
        StoredCommit("g", P, 1, ""),
        StoredCommit("g", P, 2, ""),
    ]

    assert rules(first, second, faults=DELETED, stored=stored) == []
    assert rules(first, second, stored=stored) == ["behind the commit", "consumed twice"]
    assert rules(first, second, faults=DELETED, stored=[stored[0], *stored[2:]]) == ["commit went back"]


def test_messages_of_a_deleted_topic_need_not_be_consumed_and_those_of_its_last_incarnation_must() -> None:
    first = Script("a").gains(1).revokes(6).ends(7)
    second = Script("b").gains(11).consumes(12, 0).commits(12.5, 1).revokes(13).ends(14)

    def rules_with(*produced: Produced) -> list[str]:
        commits = [StoredCommit("g", P, 1, "")]
        histories = {"g": {"a": first.events, "b": second.events}}
        return sorted(summary(check(Records(histories, produced, DELETED, commits), TIMING).violations))

    assert rules_with(produced_message(3, P, 5, "old"), produced_message(11, P, 0, "m0")) == []
    assert rules_with(produced_message(11, P, 0, "m0"), produced_message(11.5, P, 1, "m1")) == [
        "lost message"
    ]
    assert rules_with(produced_message(11, P, 0, "other")) == ["wrong message"]


def test_messages_of_a_topic_that_is_left_deleted_need_not_be_consumed() -> None:
    left = [
        *DELETED,
        FaultInjected(20, "delete topic", "t", 20.5),
        FaultInjected(21, "leave topic deleted", "t", 21),
    ]
    second = Script("b").gains(11).consumes(12, 0).commits(12.5, 1).revokes(22).ends(23)
    produced = [produced_message(11, P, 0, "m0"), produced_message(11.5, P, 1, "m1")]

    def rules_with(faults: list[FaultInjected]) -> list[str]:
        records = Records({"g": {"b": second.events}}, produced, faults, [StoredCommit("g", P, 1, "")], 30)
        return sorted(summary(check(records, TIMING).violations))

    assert rules_with(left) == []
    assert rules_with(DELETED) == ["lost message", "not settled"]


def test_a_member_is_told_of_a_missing_topic_only_while_it_is_missing() -> None:
    def member(time: float, code: str = "UNKNOWN_TOPIC_OR_PART") -> Script:
        return Script("a").does(ErrorReturned(time, code, "t", "gone")).ends(40)

    assert rules(member(5), faults=DELETED) == []
    assert rules(member(3), faults=DELETED) == ["unexplained error"]
    assert rules(member(39), faults=DELETED) == ["unexplained error"]
    assert rules(member(5, "_TRANSPORT"), faults=DELETED) == ["unexplained error"]


def test_a_member_that_keeps_a_deleted_topic_is_told() -> None:
    assert rules(Script("a").ends(1), faults=[FaultInjected(5, "keep deleted topic", "a", 5)]) == ["kept"]


# --- Guests, and other calls

FORBIDDEN = ErrorReturned(2, "TOPIC_AUTHORIZATION_FAILED", "t", "not for you")


def test_a_guest_is_told_what_it_may_not_read_and_nobody_else_is() -> None:
    assert rules(Script("a", guest=True).does(FORBIDDEN).ends(20)) == []
    assert rules(Script("a").does(FORBIDDEN).ends(20)) == ["unexplained error"]
    assert rules(Script("a", guest=True).ends(20)) == ["no error"]
    assert rules(Script("a", guest=True).ends(5)) == []
    assert rules(Script("a", guest=True).ends(20), faults=[FaultInjected(6, "pause broker", "", 14)]) == []


def test_a_guest_consumes_nothing_of_it() -> None:
    guest = Script("a", guest=True).does(FORBIDDEN).gains(3).consumes(4, 0).revokes(5).ends(6)

    assert rules(guest) == ["forbidden"]


def test_each_wakeup_wakes_once() -> None:
    asked = [FaultInjected(2, "wakeup", "a", 2)]

    def member(*events: Event) -> Script:
        return Script("a").gains(1).does(*events).consumes(5, 0).commits(6, 1).revokes(7).ends(8)

    assert rules(member(WakeupRaised(2.1)), faults=asked) == []
    assert rules(member(), faults=asked) == ["wakeup without effect"]
    assert rules(member(WakeupRaised(2.1))) == ["wakeup without a call"]
    assert rules(member(WakeupRaised(2.1), WakeupRaised(2.2)), faults=asked) == ["wakeup without a call"]


def test_one_that_was_stopped_within_on_revoke_had_been_asked_in_time() -> None:
    second = Script("b").gains(7).revokes(11).ends(12)

    def first(begun: float) -> Script:
        return Script("a").gains(1).does(Revoked(9.1, (P,), lost=False, began=begun)).ends(10)

    assert rules(first(2.9), second, faults=stalled("a", 3, 9)) == []
    assert rules(first(9.0), second, faults=stalled("a", 3, 9)) == ["revoked, not lost"]


def test_one_that_was_stopped_at_the_entry_of_on_assign_owns_from_then_on() -> None:
    second = Script("b").gains(9.0).revokes(9.3).ends(10)

    def first(*events: Event) -> Script:
        return Script("a").does(*events).gains(9.2).revokes(9.4, lost=True).ends(10)

    assert rules(first(Starved(9.195, 3.0)), second) == []
    assert rules(first(Starved(9.1, 3.0)), second, faults=stalled("a", 3, 9.1)) == ["two owners"]
    assert rules(first(Starved(9.195, 3.0)).consumes(9.3, 0), second, produced=1) == ["stale delivery"]


# --- Commits


def test_stored_offsets_never_go_back() -> None:
    stored: list[StoredRecord] = [
        StoredGeneration("g", 1, "range", {P: "a"}),
        StoredCommit("g", P, 7, "a"),
        StoredCommit("g", P, 5, "a"),
    ]

    assert rules(Script("a").ends(1), stored=stored) == ["commit went back"]


def test_only_the_owner_in_the_stored_generation_stores_offsets() -> None:
    stored: list[StoredRecord] = [
        StoredGeneration("g", 1, "range", {P: "a"}),
        StoredCommit("g", P, 5, "a"),
        StoredGeneration("g", 2, "range", {P: "b"}),
        StoredCommit("g", P, 6, "a"),
    ]

    (violation,) = findings_of(Script("a").ends(1), stored=stored).violations

    assert violation.rule == "commit by another"
    assert violation.text == "a committed 6; in generation 2 the partition belongs to b"


def test_who_has_to_let_go_of_a_partition_in_a_cooperative_rebalance_may_commit_it_once_more() -> None:
    """The leader leaves the partition unassigned in that generation; on_revoke runs afterwards."""
    stored: list[StoredRecord] = [
        StoredGeneration("g", 1, "cooperative-sticky", {P: "a"}),
        StoredGeneration("g", 2, "cooperative-sticky", {}),
        StoredCommit("g", P, 5, "a"),
        StoredGeneration("g", 3, "cooperative-sticky", {P: "b"}),
    ]

    assert rules(Script("a").ends(1), stored=stored) == []
    late = [*stored, StoredCommit("g", P, 6, "a")]
    assert rules(Script("a").ends(1), stored=late) == ["commit by another"]


def test_what_is_acknowledged_is_stored() -> None:
    member = Script("a").gains(1).consumes(2, 0).commits(2.5, 1).revokes(3).ends(4)

    assert rules(member, stored=[]) == ["commit not stored"]


# --- Processes


def test_a_member_that_raises_or_dies_by_itself_is_told() -> None:
    assert rules(Script("a").fails(2).ends(3)) == ["failure"]
    assert rules(Script("a").gains(1)) == ["died"]
    assert rules(Script("a"), faults=[FaultInjected(5, "hang", "a", 9)]) == ["hung"]


def test_a_member_that_died_owns_nothing_any_more() -> None:
    """A violation is reported once, not again with each later owner."""
    dead = Script("a").gains(1).consumes(2, 0).does(Died(3, "boom"))
    successor = Script("b").gains(8).consumes(8.1, 0).commits(8.5, 1).revokes(9).ends(10)

    assert rules(dead, successor, produced=1) == ["died", "failure"]


@pytest.mark.parametrize(("settled", "expected"), [(4.05, ["not settled"]), (5, [])])
def test_in_the_end_each_partition_has_one_owner(settled: float, expected: list[str]) -> None:
    assert rules(*handed_over(), produced=5, settled=settled) == expected


def test_a_member_that_was_never_up_says_nothing() -> None:
    findings = check(Records({"g": {"a": [Killed(1, {})]}}, [], [], []), TIMING)

    assert findings.violations == []
    assert findings.members == []


def test_a_life_that_was_not_ended_has_open_windows() -> None:
    findings = findings_of(Script("a").gains(1))

    assert [window.end for window in findings.members[0].windows] == [math.inf]
