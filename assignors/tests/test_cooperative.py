"""Any assignor becomes cooperative if it withholds partitions that other members still claim."""

import pytest

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    Group,
    InvalidInputError,
    Member,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    withhold_claimed,
)
from groupwright.testing.assignors import check, random_groups


class Cooperative(Assignor):
    """Carries out another assignor's plans in two rebalances."""

    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def __init__(self, planner: Assignor) -> None:
        self.name = f"cooperative-{planner.name}"
        self._planner = planner

    def assign(self, group: Group) -> Assignment:
        return withhold_claimed(group, self._planner.assign(group))


@pytest.mark.slow
@pytest.mark.parametrize("planner", [RangeAssignor(), RoundRobinAssignor()], ids=lambda planner: planner.name)
def test_plans_are_carried_out_in_two_rebalances(planner: Assignor) -> None:
    report = check(Cooperative(planner), random_groups(5, 60))
    assert report.most_rounds == 2
    eager = check(planner, random_groups(5, 60))
    assert (report.balanced, report.moves, report.rack_mismatches) == (
        eager.balanced,
        eager.moves,
        eager.rack_mismatches,
    )


def owner(id_: str, generation: int, *owned: int, topics: tuple[str, ...] = ("t",)) -> Member:
    return Member(id_, topics, owned={"t": owned}, generation=generation)


@pytest.mark.parametrize(
    ("members", "given"),
    [
        pytest.param([owner("a", 1), owner("b", 1)], {"a": [0], "b": [1]}, id="no member owns any"),
        pytest.param(
            [owner("a", 1, 0), owner("b", 1, 1)], {"a": [0], "b": [1]}, id="all own what they are to get"
        ),
        pytest.param([owner("a", 1, 1), owner("b", 1, 0)], {}, id="each owns the other's"),
        pytest.param([owner("a", 1, 0, 1), owner("b", 1)], {"a": [0]}, id="one owns the other's"),
        pytest.param(
            [owner("a", 2, 0), owner("b", 1, 0)], {"a": [0], "b": [1]}, id="another's claim is older"
        ),
        pytest.param([owner("a", 1, 0), owner("b", 2, 0)], {"b": [1]}, id="another's claim is newer"),
        pytest.param(
            [owner("a", 1, 0), owner("b", 1, 0)], {"b": [1]}, id="two claims are as new as each other"
        ),
        pytest.param(
            [owner("a", 1), owner("b", 1), owner("c", 1, 0, topics=())],
            {"b": [1]},
            id="one owns a partition of a topic that it no longer subscribes to",
        ),
        pytest.param(
            [owner("a", 1, 7), owner("b", -1, 0)], {"b": [1]}, id="a partition that does not exist is claimed"
        ),
    ],
)
def test_a_partition_that_another_may_own_is_withheld(
    members: list[Member], given: dict[str, list[int]]
) -> None:
    group = Group(members, {"t": 2})
    assert withhold_claimed(group, {"a": {"t": [0]}, "b": {"t": [1]}}) == {
        member.id: {"t": given[member.id]} if member.id in given else {} for member in members
    }


def test_a_group_without_partitions_gets_none() -> None:
    assert withhold_claimed(Group([Member("a", ["none"])], {}), {}) == {"a": {}}


def test_an_invalid_plan_is_refused() -> None:
    group = Group([Member("a", ["t"])], {"t": 1})
    with pytest.raises(AssignorError, match="member 'b' is in the assignment, but not in the group"):
        withhold_claimed(group, {"b": {"t": [0]}})
    with pytest.raises(InvalidInputError, match="a plan must map"):
        withhold_claimed(group, {"a": None})  # type: ignore[dict-item]  # what is refused here too
