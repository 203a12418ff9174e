"""What a leader can tell of its plan."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from groupwright.assignors import Assignment, Assignor, AssignorError, Group, Member, RangeAssignor, assign
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.assignment_stats import (
    MeasuredAssignor,
    PreviousAssignment,
    change_of_members,
)
from groupwright.consumer._protocol.rebalance import OTHERS, Leadership, Timeline, Trigger

LOG = GroupLog(logging.getLogger("groupwright.consumer"), "c", "g")


class Fixed(Assignor):
    name = "fixed"

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.plan = plan

    def assign(self, group: Group) -> Mapping[str, Any]:  # noqa: ARG002 - the interface's
        return self.plan


def group(members: Mapping[str, Mapping[str, tuple[int, ...]]], partitions: int = 4) -> Group:
    return Group(
        [Member(id=name, topics=("t",), owned=owned, generation=1) for name, owned in members.items()],
        {"t": partitions},
    )


def made(plan: Mapping[str, Any]) -> PreviousAssignment:
    return PreviousAssignment(1, frozenset(plan), Assignment(plan))


def test_moves_are_counted_against_what_members_claim() -> None:
    weighed = MeasuredAssignor(Fixed({"a": {"t": [0, 3]}, "b": {"t": [1, 2]}}), None, LOG)

    assign(weighed, group({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}))

    assert weighed.leadership == Leadership(members=2, moved=2, moves_needed=0, imbalance=0)


def test_where_nobody_claims_anything_the_plan_before_says_who_had_what() -> None:
    """Eager members give everything up first."""
    before = made({"a": {"t": [0, 1, 2, 3]}})
    weighed = MeasuredAssignor(RangeAssignor(), before, LOG)

    assign(weighed, group({"a": {}, "b": {}}))

    assert weighed.leadership == Leadership(members=2, moved=2, moves_needed=2, imbalance=0)


def test_without_either_nothing_has_moved() -> None:
    weighed = MeasuredAssignor(RangeAssignor(), None, LOG)

    assign(weighed, group({"a": {}, "b": {}}))

    assert weighed.leadership == Leadership(members=2, moved=0, moves_needed=0, imbalance=0)


def test_imbalance_is_what_exceeds_the_gap_that_must_be() -> None:
    """Three partitions for two members: a gap of 1 cannot be helped, one of 3 can."""
    weighed = MeasuredAssignor(Fixed({"a": {"t": [0, 1, 2]}}), None, LOG)

    assign(weighed, group({"a": {}, "b": {}}, partitions=3))

    assert weighed.leadership == Leadership(members=2, moved=0, moves_needed=0, imbalance=2)


def test_a_group_that_is_too_large_is_assigned_and_not_weighed() -> None:
    weighed = MeasuredAssignor(RangeAssignor(), None, LOG)

    plan = assign(weighed, group({"a": {}}, partitions=600_000))

    assert len(plan["a"]["t"]) == 600_000
    assert weighed.leadership is None


def test_a_plan_that_is_none_is_refused_in_the_words_that_it_had_without_weighing() -> None:
    with pytest.raises(AssignorError) as plain:
        assign(Fixed({"a": {"t": [9]}}), group({"a": {}}))
    with pytest.raises(AssignorError) as weighed:
        assign(MeasuredAssignor(Fixed({"a": {"t": [9]}}), None, LOG), group({"a": {}}))

    assert str(weighed.value) == str(plain.value)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (("a",), ("a", "b"), "a member joined"),
        (("a", "b", "c"), ("a",), "2 members left"),
        (("a", "b"), ("a", "c"), "a member joined and a member left"),
        (("a",), ("a",), None),
        (None, ("a",), None),
    ],
)
def test_the_leader_says_who_came_and_went(
    before: tuple[str, ...] | None, now: tuple[str, ...], said: str | None
) -> None:
    plan = None if before is None else made({name: {} for name in before})

    assert change_of_members(plan, now) == said


def test_a_rebalance_of_two_rounds_adds_its_moves_up_and_keeps_the_trigger_that_it_knew() -> None:
    timeline = Timeline(OTHERS, 0.0)
    timeline.on_leader_elected(Leadership(members=2, moved=3, moves_needed=2, imbalance=4), "a member joined")
    timeline.on_leader_elected(Leadership(members=2, moved=0, moves_needed=0, imbalance=1), "a member left")

    assert timeline.leadership == Leadership(members=2, moved=3, moves_needed=2, imbalance=1)
    assert timeline.reason == "a member joined"
    assert timeline.trigger is Trigger.GROUP
