"""Statistics of the leader's assignment."""

from collections.abc import Mapping

import pytest

from groupwright.assignors import Assignment, Group, Member, RangeAssignor, Topic, assign
from groupwright.consumer._coordinator.assignment_stats import evaluate_assignment
from groupwright.consumer._coordinator.leader import change_of_members
from groupwright.consumer._protocol.timeline import GROUP_REBALANCING, Timeline
from groupwright.core import GroupLoad, Leadership, Trigger


def group(members: Mapping[str, Mapping[str, tuple[int, ...]]], partitions: int = 4) -> Group:
    return Group(
        [Member(id=name, topics=("t",), owned=owned, generation=1) for name, owned in members.items()],
        {"t": partitions},
    )


def test_moves_are_counted_against_the_claims_of_the_members() -> None:
    claiming = group({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})
    assignment = Assignment({"a": {"t": [0, 3]}, "b": {"t": [1, 2]}})

    assert evaluate_assignment(claiming, assignment, None) == Leadership(2, moved=2, min_moves=0, imbalance=0)


def test_without_claims_the_previous_assignment_names_the_owners() -> None:
    """Eager members revoke everything before they join."""
    joined = group({"a": {}, "b": {}})
    previous = Assignment({"a": {"t": [0, 1, 2, 3]}})

    found = evaluate_assignment(joined, assign(RangeAssignor(), joined), previous)

    assert found == Leadership(members=2, moved=2, min_moves=2, imbalance=0)


def test_without_claims_or_a_previous_assignment_nothing_has_moved() -> None:
    joined = group({"a": {}, "b": {}})

    found = evaluate_assignment(joined, assign(RangeAssignor(), joined), None)

    assert found == Leadership(members=2, moved=0, min_moves=0, imbalance=0)


def test_imbalance_is_what_exceeds_the_smallest_possible_gap() -> None:
    """With three partitions for two members a gap of 1 is inevitable, one of 3 is not."""
    joined = group({"a": {}, "b": {}}, partitions=3)

    found = evaluate_assignment(joined, Assignment({"a": {"t": [0, 1, 2]}}, members=["b"]), None)

    assert found == Leadership(members=2, moved=0, min_moves=0, imbalance=2)


def test_the_loads_are_those_of_the_members_by_weight() -> None:
    claiming = group({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})
    weighed = Group(claiming.members, {"t": Topic(4, weights=[6, 4, 1, 1])})

    found = evaluate_assignment(weighed, Assignment({"a": {"t": [0]}, "b": {"t": [1, 2, 3]}}), None)

    assert found is not None
    assert found.load == GroupLoad({"a": 6, "b": 6}, busiest="a", peak=1, bound=1, moved_load=4)
    assert (found.moved, found.load.shares) == (1, {"a": 0.5, "b": 0.5})
    assert str(found.load) == (
        "busiest member 'a' at 1.00 of average, no assignment below 1.00, 33% of the load moved"
    )


def test_no_assignment_can_be_below_the_bound_of_the_loads() -> None:
    """One partition weighs more than all others. Without claims, the last assignment names the owners."""
    joined = Group(group({"a": {}, "b": {}}).members, {"t": Topic(4, weights=[9, 1, 1, 1])})
    previous = Assignment({"a": {"t": [1, 2, 3]}, "b": {"t": [0]}})

    found = evaluate_assignment(joined, Assignment({"a": {"t": [2, 3]}, "b": {"t": [0, 1]}}), previous)

    assert found is not None
    assert found.load == GroupLoad({"a": 2, "b": 10}, "b", peak=10 / 6, bound=9 / 6, moved_load=1)


def test_a_group_without_load_is_even() -> None:
    """Such as one whose topics have no partitions: nothing is divided by 0."""
    joined = Group(group({"a": {}}).members, {"t": Topic(0, weights=[])})

    found = evaluate_assignment(joined, Assignment({}, members=["a"]), None)

    assert found is not None
    assert found.load == GroupLoad({"a": 0}, "a", peak=1, bound=1, moved_load=0)
    assert (found.load.shares, found.load.moved_share) == ({"a": 0}, 0)


def test_a_group_that_is_too_large_is_not_evaluated() -> None:
    joined = group({"a": {}}, partitions=600_000)

    assert evaluate_assignment(joined, assign(RangeAssignor(), joined), None) is None


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
    plan = None if before is None else Assignment({name: {} for name in before})

    assert change_of_members(plan, now) == said


def test_a_rebalance_of_two_rounds_adds_its_moves_up_and_keeps_the_trigger_that_it_knew() -> None:
    timeline = Timeline(GROUP_REBALANCING, 0.0)
    timeline.assignment_computed("a member joined", {"c": "malformed subscription"})
    first = GroupLoad({"a": 4, "b": 0}, "a", peak=2, bound=1.5, moved_load=3)
    second = GroupLoad({"a": 4, "b": 4}, "a", peak=1, bound=1, moved_load=1)
    timeline.assignment_evaluated(Leadership(members=2, moved=3, min_moves=2, imbalance=4, load=first))
    timeline.assignment_computed("a member left", {})
    timeline.assignment_evaluated(Leadership(members=2, moved=0, min_moves=0, imbalance=1, load=second))

    both = GroupLoad({"a": 4, "b": 4}, "a", peak=1, bound=1, moved_load=4)
    assert timeline.leadership == Leadership(members=2, moved=3, min_moves=2, imbalance=1, load=both)
    assert both.moved_share == 0.5
    assert timeline.undecodable == {"c": "malformed subscription"}, "which has left in the second round"
    assert timeline.reason == "a member joined"
    assert timeline.trigger is Trigger.GROUP
