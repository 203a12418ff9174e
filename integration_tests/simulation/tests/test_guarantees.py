"""The checks of guarantees find out reports that cannot be true, and excuse what a fault allows."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from groupwright.core import ErrorCode
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import State
from groupwright.testing._simulation.scheduler import SECOND, Process, Scheduler
from integration_tests.simulation.guarantees import Guarantees
from integration_tests.simulation.guarantees_by_hand import HandGuarantees
from integration_tests.simulation.records import BrokenGuaranteeError, Member
from integration_tests.simulation.scenario import GROUP, Commits, MemberPlan

if TYPE_CHECKING:
    from groupwright.testing._simulation.cluster import Cluster

P, Q = ("t", 0), ("t", 1)


class Reporter:
    """Reports events a second apart, of a group whose members `a` and `b` are in its generation."""

    def __init__(self, commits: Commits = Commits.AUTO, *, by_hand: bool = False) -> None:
        self.scheduler = Scheduler(0)
        self.group = SimpleNamespace(
            members={"id-a": None, "id-b": None}, generation_id=1, state=State.STABLE
        )
        coordinator = SimpleNamespace(group=lambda _name: self.group)
        cluster = cast("Cluster", SimpleNamespace(coordinator=coordinator))
        self.guarantees = Guarantees(self.scheduler, cluster, 10 * SECOND)
        if by_hand:
            self.guarantees = HandGuarantees(self.scheduler, cluster, 10 * SECOND, commits, self.guarantees)
        self.members: dict[str, Any] = {}
        for name in ("a", "b"):
            process = Process(name, self.scheduler)
            self.members[name] = SimpleNamespace(
                name=name,
                ended=False,
                commits_late=False,
                plan=MemberPlan(name, commits=commits),
                group=GROUP,
                process=process,
                session_until=None,
            )
            self._answer(
                name,
                msg.JoinGroupRequest(GROUP),
                msg.JoinGroupResponse(generation_id=1, member_id=f"id-{name}"),
            )
        self.commits = commits

    def _answer(self, name: str, request: Any, response: Any) -> None:
        self.scheduler.now += SECOND
        self.guarantees.answered(self.members[name].process, request, response)

    def _member(self, name: str) -> Member:
        self.scheduler.now += SECOND
        return cast("Member", self.members[name])

    def assign(self, name: str, *keys: tuple[str, int]) -> None:
        self.guarantees.assigned(self._member(name), list(keys or (P,)))

    def revoke(self, name: str, *keys: tuple[str, int], lost: bool = False) -> None:
        member = self._member(name)
        self.guarantees.revoked(member, list(keys or (P,)), lost=lost, commits=self.commits)

    def deliver(self, name: str, *offsets: int, **how: Any) -> None:
        for offset in offsets:
            self.guarantees.delivered(self._member(name), P, offset, **{"session_until": None, **how})

    def end(self, name: str, offset: int, *, paused: bool = False) -> None:
        self.guarantees.reached_end(self._member(name), P, offset, paused=paused)

    def seek(self, name: str, offset: int) -> None:
        self.guarantees.sought(self._member(name), P, offset)

    def move(self, name: str, offset: int) -> None:
        self.guarantees.moved(self._member(name), P, offset)

    def commit(self, name: str, offset: int) -> None:
        request = msg.OffsetCommitRequest(GROUP, ((P, msg.CommittedOffset(offset)),), f"id-{name}", 1)
        self._answer(name, request, msg.OffsetCommitResponse(((P, ErrorCode.NONE),)))

    def fault(self, name: str | None = None) -> None:
        self.guarantees.record_fault(name)

    def close(self, name: str) -> None:
        self.guarantees.closed(self._member(name))

    def kill(self, name: str) -> None:
        self.guarantees.killed(self._member(name))


Story = Callable[[Reporter], object]


def handed_over(told: Reporter) -> None:
    told.assign("a", P, Q)
    told.end("a", 0)
    told.deliver("a", 0, 1, 2)
    told.commit("a", 3)
    told.revoke("a", P, Q)
    told.close("a")
    told.assign("b", P)


def test_a_true_story_breaks_no_guarantee() -> None:
    told = Reporter()
    handed_over(told)
    told.deliver("b", 3, 4)
    told.end("b", 5)
    told.commit("b", 5)
    told.seek("b", 3)
    told.deliver("b", 3, 4)
    told.kill("b")
    told.assign("a", P)
    told.deliver("a", 5)

    told.guarantees.check()
    assert told.guarantees.owners(P) == ["a"]
    assert told.guarantees.complete(P) == 6
    assert told.guarantees.unconsumed({"t": [8, 0]}) == ["t[0]: 6 of 8"]
    assert (told.guarantees.rebalances, told.guarantees.delivered_count) == (3, 8)


def after_handover(name: str, *arguments: Any, **how: Any) -> Story:
    def told(reporter: Reporter) -> None:
        handed_over(reporter)
        getattr(reporter, name)(*arguments, **how)

    return told


def both(*stories: Story) -> Story:
    return lambda reporter: [story(reporter) for story in stories]


def must_return(reporter: Reporter) -> None:
    reporter.guarantees.must_return(reporter.members["b"], "nothing comes after unsubscribe")


@pytest.mark.parametrize(
    ("story", "guarantee"),
    [
        (after_handover("assign", "a", P), "a partition has one owner"),
        (after_handover("assign", "b", P), "callbacks are paired"),
        (after_handover("revoke", "a", P), "callbacks are paired"),
        (after_handover("close", "b"), "callbacks are paired"),
        (after_handover("deliver", "a", 3), "only the owner gets messages"),
        (after_handover("deliver", "b", 3, session_until=0), "only the owner gets messages"),
        (after_handover("deliver", "b", 3, paused=True), "a paused partition returns no message"),
        (
            both(handed_over, must_return, lambda told: told.deliver("b", 3)),
            "nothing comes after unsubscribe",
        ),
        (after_handover("deliver", "b", 4), "no message is lost"),
        (after_handover("deliver", "b", 2), "none is delivered twice"),
        (after_handover("deliver", "b", 3, 5), "no message is lost"),
        (after_handover("deliver", "b", 3, 4, 3), "none is delivered twice"),
        (after_handover("end", "a", 3), "the end of a partition comes where the application is"),
        (after_handover("end", "b", 3, paused=True), "the end of a partition comes where the application is"),
        (
            both(after_handover("deliver", "b", 3), lambda told: told.end("b", 3)),
            "the end of a partition comes where the application is",
        ),
        (after_handover("commit", "b", 4), "no commit is beyond what was delivered"),
        (after_handover("commit", "a", 2), "commits never go backwards"),
        (
            both(
                after_handover("deliver", "b", 3),
                lambda told: told.seek("b", 3),
                lambda told: told.deliver("b", 4),
            ),
            "no message is lost",
        ),
        (
            both(
                after_handover("deliver", "b", 3, 4),
                lambda told: told.commit("b", 5),
                lambda told: told.seek("b", 3),
                lambda told: told.commit("b", 3),
            ),
            "an automatic commit goes back at the end alone",
        ),
        (
            both(
                after_handover("deliver", "b", 3),
                lambda told: told.revoke("b", P),
                lambda told: told.assign("a", P),
            ),
            "what was consumed before a clean revocation is committed",
        ),
        (
            both(
                after_handover("deliver", "b", 3),
                lambda told: told.guarantees.was_busy(told.members["b"], told.scheduler.now),
            ),
            "automatic commits go on while the application is busy",
        ),
    ],
)
def test_a_lie_breaks_a_guarantee(story: Story, guarantee: str) -> None:
    told = Reporter()

    with pytest.raises(BrokenGuaranteeError) as caught:
        story(told)

    assert caught.value.guarantee == guarantee
    with pytest.raises(BrokenGuaranteeError):
        told.guarantees.check()


def test_a_member_that_the_group_has_removed_may_not_know_it_yet() -> None:
    told = Reporter()
    handed_over(told)
    del told.group.members["id-b"]

    told.assign("a", P)
    told.deliver("a", 3)

    assert told.guarantees.owners(P) == ["a", "b"]


def test_a_fault_may_cost_the_commit_of_a_revocation() -> None:
    told = Reporter()
    handed_over(told)
    told.deliver("b", 3)
    told.fault("b")
    told.revoke("b", P)
    told.assign("a", P)

    told.deliver("a", 3)


def test_a_late_answer_moves_a_partition_soon_after_a_fault_alone() -> None:
    def moved(told: Reporter) -> None:
        handed_over(told)
        told.deliver("b", 3, 4)
        told.move("b", 3)
        told.end("b", 5)
        told.deliver("b", 3, 4)
        told.commit("b", 5)
        told.commit("b", 4)

    told = Reporter(Commits.SYNC)
    told.fault("b")
    moved(told)
    with pytest.raises(BrokenGuaranteeError, match="none is delivered twice"):
        moved(Reporter(Commits.SYNC))


def test_nothing_is_guaranteed_of_a_topic_that_was_deleted() -> None:
    told = Reporter()
    handed_over(told)
    told.guarantees.renewed("t")

    told.deliver("b", 0, 5, 1)
    told.end("b", 7)
    told.commit("b", 1)

    assert told.guarantees.complete(P) == 0
    assert told.guarantees.unconsumed({"t": [9]}) == []


# --- Applications that assign by hand


def by_hand(commits: Commits, starts: dict[tuple[str, int], int | None]) -> Reporter:
    told = Reporter(commits, by_hand=True)
    cast("HandGuarantees", told.guarantees).changed(told.members["a"], [], starts)
    return told


def test_an_assignment_by_hand_begins_where_it_was_told_or_at_the_newest_commit() -> None:
    told = by_hand(Commits.AUTO, {P: None})
    told.deliver("a", 0, 1, 2)
    hand = cast("HandGuarantees", told.guarantees)
    hand.changed(told.members["a"], [P], {P: 1})
    told.deliver("a", 1, 2)
    hand.changed(told.members["a"], [P], {P: None})
    told.deliver("a", 3)  # an automatic commit of it is under way
    told.commit("a", 4)
    told.close("a")


def test_a_commit_by_hand_over_a_connection_that_was_cut_off_waits_for_its_timeout() -> None:
    told = by_hand(Commits.AUTO, {P: None})
    told.deliver("a", 0, 1, 2)
    told.fault("a")
    told.scheduler.run_until(told.scheduler.now + 30 * SECOND)
    told.guarantees.was_busy(told.members["a"], told.scheduler.now)
    told.scheduler.run_until(told.scheduler.now + 61 * SECOND)
    with pytest.raises(BrokenGuaranteeError, match="automatic commits go on"):
        told.guarantees.was_busy(told.members["a"], told.scheduler.now)


@pytest.mark.parametrize(
    ("starts", "offset", "guarantee"),
    [
        ({P: None}, 1, "no message is lost"),
        ({P: 3}, 2, "none is delivered twice"),
        ({Q: None}, 0, "only the owner gets messages"),
    ],
)
def test_an_assignment_by_hand_begins_nowhere_else(
    starts: dict[tuple[str, int], int | None], offset: int, guarantee: str
) -> None:
    told = by_hand(Commits.SYNC, starts)

    with pytest.raises(BrokenGuaranteeError) as caught:
        told.deliver("a", offset)

    assert caught.value.guarantee == guarantee


def test_what_an_application_has_consumed_by_hand_is_committed_when_it_has_closed() -> None:
    told = by_hand(Commits.AUTO, {P: None})
    told.deliver("a", 0)

    with pytest.raises(BrokenGuaranteeError, match="committed when close returns"):
        told.close("a")
