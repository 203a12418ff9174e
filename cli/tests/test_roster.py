"""The roster: who owns what, and when a change of the group has come to its end."""

import pytest

from groupwright.cli.demo.offsets import Span
from groupwright.cli.demo.reports import Consumed, Rebalanced, Revoked, Started
from groupwright.cli.demo.roster import NO_GENERATION, Roster, Status, compact, moved


def roster_of(**owned: tuple[int, ...]) -> Roster:
    """Four partitions, and members that have settled in generation 2."""
    roster = Roster(4)
    for name, partitions in owned.items():
        roster.enter(name)
        roster.report(name, Started("http://127.0.0.1:1/metrics"))
        roster.report(name, Rebalanced(2, 0.1, partitions))
    return roster


def status_of(roster: Roster, name: str) -> Status:
    return roster.members[name].status


def test_one_owner_for_each_partition_in_one_generation_is_settled() -> None:
    roster = roster_of(a=(0, 1), b=(2, 3))
    assert roster.settled(after=1)
    assert roster.ownership() == {0: "a", 1: "a", 2: "b", 3: "b"}


def test_a_member_may_own_nothing() -> None:
    assert roster_of(a=(0, 1, 2, 3), b=()).settled(after=1)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ((0, 1), (3,), "partition 2 is owned by nobody"),
        ((0, 1, 2), (2, 3), "partition 2 is owned by a and b"),
        ((0, 1), (1, 3), "partition 1 is owned by a and b, partition 2 is owned by nobody"),
    ],
    ids=["no owner", "two owners", "both"],
)
def test_a_partition_with_no_owner_or_two_is_not_settled(
    a: tuple[int, ...], b: tuple[int, ...], words: str
) -> None:
    roster = roster_of(a=a, b=b)
    assert not roster.settled(after=1)
    assert roster.unsettled(after=1) == words


def test_the_generation_before_the_change_does_not_count() -> None:
    """Its ownership is whole too, as long as the reports of the next one are under way."""
    roster = roster_of(a=(0, 1), b=(2, 3))
    assert not roster.settled(after=2)
    assert "not in one generation after 2: a is in 2, b is in 2" in roster.unsettled(after=2)


def test_members_in_two_generations_are_not_settled() -> None:
    """Together they seem to own everything once, but one of them is behind."""
    roster = roster_of(a=(0, 1), b=(2, 3))
    roster.report("a", Rebalanced(3, 0.1, (0, 1)))
    assert not roster.settled(after=1)
    roster.report("b", Rebalanced(3, 0.1, (2, 3)))
    assert roster.settled(after=1)


def test_a_member_that_has_not_joined_yet_is_waited_for() -> None:
    roster = roster_of(a=(0, 1, 2, 3))
    roster.enter("b")
    assert roster.members["b"].generation == NO_GENERATION
    assert not roster.settled(after=1)


def test_a_killed_member_owns_nothing_whatever_it_reported_last() -> None:
    roster = roster_of(a=(0, 1), b=(2, 3))
    roster.become("b", Status.KILLED)
    roster.report("b", Rebalanced(2, 0.1, (2, 3)))
    roster.become("b", Status.KILLED)
    assert roster.members["b"].owned == ()
    assert [member.name for member in roster.live] == ["a"]
    roster.report("a", Rebalanced(3, 0.1, (0, 1, 2, 3)))
    assert roster.settled(after=2)


def test_a_rebalance_counts_what_was_given_up_for_it() -> None:
    roster = roster_of(a=(0, 1, 2, 3))
    roster.report("a", Revoked((0, 1, 2, 3)))
    assert status_of(roster, "a") is Status.REBALANCING
    assert roster.members["a"].owned == ()
    roster.report("a", Rebalanced(3, 0.5, (0, 1)))
    roster.report("a", Rebalanced(4, 0.5, (0, 1)))
    assert status_of(roster, "a") is Status.CONSUMING
    assert [each.revoked for each in roster.members["a"].rebalances] == [0, 4, 0]


def test_what_a_member_consumed_adds_up() -> None:
    roster = roster_of(a=(0, 1, 2, 3))
    roster.report("a", Consumed((Span(0, 0, 5), Span(1, 3, 4))))
    roster.report("a", Consumed((Span(0, 5, 6),)))
    assert roster.members["a"].consumed == 7


def test_a_member_that_leaves_keeps_its_status_while_it_gives_up() -> None:
    roster = roster_of(a=(0, 1), b=(2, 3))
    roster.become("b", Status.LEAVING)
    roster.report("b", Revoked((2, 3)))
    assert roster.members["b"].status is Status.LEAVING
    assert roster.members["b"].owned == ()


def test_partitions_with_another_owner_have_moved() -> None:
    assert moved({0: "a", 1: "a", 2: "b"}, {0: "a", 1: "b", 2: "c"}) == 2
    assert moved({}, {0: "a", 1: "b"}) == 0


@pytest.mark.parametrize(
    ("partitions", "words"), [((), "-"), ((3,), "3"), ((0, 1, 2, 8), "0-2 8"), ((11, 0, 1), "0-1 11")]
)
def test_partitions_are_written_in_short(partitions: tuple[int, ...], words: str) -> None:
    assert compact(partitions) == words
