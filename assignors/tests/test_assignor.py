"""The requirements of an assignor, and the assignors with names."""

import pytest

from groupwright.assignors import (
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    CoPartitionedStickyAssignor,
    Group,
    LoadAwareAssignor,
    PartitionsByTopic,
    Plan,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    Throughput,
    builtin_assignors,
    by_name,
    check_assignor,
)
from groupwright.core.assignor_traits import ASSIGNORS


class Nameless(Assignor):
    def assign(self, group: Group) -> Plan:
        return {member.id: {} for member in group.members}


class Named(Nameless):
    name = "named"


def test_an_assignor_needs_no_more_than_a_name_and_a_method() -> None:
    assignor = Named()
    check_assignor(assignor)
    assert assignor.protocols == {RebalanceProtocol.EAGER}
    assert assignor.user_data(frozenset({"orders"})) is None
    assignor.on_assignment(PartitionsByTopic({"orders": [0]}), 3)


@pytest.mark.parametrize("name", ["", 7, None])
def test_a_name_that_a_group_cannot_agree_on_is_refused(name: str) -> None:
    assignor = Named()
    assignor.name = name
    with pytest.raises(AssignorError, match=rf"Named.name must be a string that is not empty, not {name!r}"):
        check_assignor(assignor)


def test_an_assignor_without_a_name_is_refused() -> None:
    with pytest.raises(AssignorError, match=r"Nameless.name must be a string that is not empty, not None"):
        check_assignor(Nameless())


@pytest.mark.parametrize(
    "protocols", [frozenset(), frozenset({"EAGER"}), RebalanceProtocol.COOPERATIVE, None]
)
def test_an_assignor_without_a_protocol_is_refused(protocols: frozenset[RebalanceProtocol]) -> None:
    assignor = Named()
    assignor.protocols = protocols
    with pytest.raises(AssignorError, match=r"Named.protocols must hold EAGER, COOPERATIVE or both"):
        check_assignor(assignor)


def test_the_built_in_assignors_are_found_by_name() -> None:
    assert isinstance(by_name("range"), RangeAssignor)
    assert isinstance(by_name("roundrobin"), RoundRobinAssignor)
    assert by_name("range") is not by_name("range"), "some remember things"
    assert isinstance(by_name("sticky"), StickyAssignor)
    assert isinstance(by_name("cooperative-sticky"), CooperativeStickyAssignor)
    assert isinstance(by_name("co-partitioned-sticky"), CoPartitionedStickyAssignor)
    by_load = by_name("load-aware")
    assert isinstance(by_load, LoadAwareAssignor)
    assert isinstance(by_load.weights, Throughput)
    assert [assignor.name for assignor in builtin_assignors()] == [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        "co-partitioned-sticky",
        "load-aware",
    ]
    assert [assignor.name for assignor in builtin_assignors()] == list(ASSIGNORS)
    for assignor in builtin_assignors():
        check_assignor(assignor)


def test_the_traits_are_those_of_the_classes() -> None:
    found = {
        each.name: (RebalanceProtocol.COOPERATIVE in each.protocols, each.weights is not None)
        for each in builtin_assignors()
    }
    assert found == {name: (each.cooperative, each.needs_weights) for name, each in ASSIGNORS.items()}


def test_a_name_that_is_not_known_is_answered_with_those_that_are() -> None:
    with pytest.raises(
        AssignorError, match="no assignor is named 'rnage'; there are: co-partitioned-sticky, cooperative-"
    ):
        by_name("rnage")
