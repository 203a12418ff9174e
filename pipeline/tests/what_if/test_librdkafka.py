"""librdkafka's own cooperative-sticky assignor, beside Groupwright's."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from groupwright.assignors import (
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    SimulatedEvent,
    simulate,
)
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.librdkafka_assignor import (
    LIBRDKAFKA_ASSIGNOR,
    LibrdkafkaCooperativeSticky,
    librdkafka_assignor,
)
from groupwright.pipeline._what_if.librdkafka_leader import LibrdkafkaLeader
from groupwright.pipeline._what_if.loading import LoadedAssignor, load_assignor
from groupwright.pipeline._what_if.replay import replay_group


@pytest.fixture(scope="module")
def leader() -> Iterator[LibrdkafkaLeader]:
    with closing(LibrdkafkaLeader("cooperative-sticky")) as leader:
        yield leader


def test_it_is_librdkafkas_and_not_ours(leader: LibrdkafkaLeader) -> None:
    """librdkafka's leaves this group unbalanced, as Java's does: the move from c to a goes by way of b."""
    owned = {
        "a": {"audit": range(9)},
        "b": {"audit": range(9, 15), "orders": range(4)},
        "c": {"orders": range(4, 15)},
    }
    members = [
        Member(id_, sorted(share), owned=PartitionsByTopic(share), generation=3)
        for id_, share in owned.items()
    ]
    group = Group(members, {"audit": 15, "orders": 15})
    (theirs,) = simulate(group, lambda _: LibrdkafkaCooperativeSticky(leader))
    (ours,) = simulate(group, CooperativeStickyAssignor())
    assert sizes(theirs) == [9, 10, 11]
    assert sizes(ours) == [10, 10, 10]


def test_with_equal_subscriptions_it_moves_as_few_as_ours(
    leader: LibrdkafkaLeader, joins_and_leaves: Callable[..., Any]
) -> None:
    group = Group([Member("m-0", ["orders"])], {"orders": 12})
    theirs = simulate(group, lambda _: LibrdkafkaCooperativeSticky(leader), joins_and_leaves(5, "orders", 8))
    ours = simulate(group, CooperativeStickyAssignor(), joins_and_leaves(5, "orders", 8))
    assert [(moves(e), sizes(e), len(e.rebalances)) for e in theirs] == [
        (moves(e), sizes(e), len(e.rebalances)) for e in ours
    ]
    assert sum(map(moves, ours)) > 0


def test_a_process_that_ends_is_an_error_of_that_call(leader: LibrdkafkaLeader) -> None:
    group = Group([Member("a", ["orders"]), Member("b", ["orders"])], {"orders": 4})
    assignor = LibrdkafkaCooperativeSticky(leader)
    assignor.assign(group)
    assert leader._member is not None
    leader._member._process.kill()
    with pytest.raises(AssignorError, match="has ended its process with -9"):
        assignor.assign(group)
    assert sorted(len(share["orders"]) for share in assignor.assign(group).values()) == [2, 2]


def test_a_group_that_librdkafka_cannot_assign_is_an_error(leader: LibrdkafkaLeader) -> None:
    """Its leader joins again without an assignment, as it would for ever."""
    topics = {"m0": ["t0", "t1", "t3"], "m1": ["t0", "t1"], "m2": ["t2", "t3"]}
    members = [Member(id_, of_member) for id_, of_member in topics.items()]
    group = Group(members, {"t0": 1, "t1": 1, "t2": 1, "t3": 3})

    def leave(group: Group) -> Group:
        return Group(list(group.members)[1:], group.topics)

    with pytest.raises(AssignorError, match="librdkafka's assignor has failed"):
        simulate(group, lambda _: LibrdkafkaCooperativeSticky(leader), [leave])


def test_a_history_is_replayed_with_it(leader: LibrdkafkaLeader, past: Any) -> None:
    past.generation(1, {"a": {"orders": range(6)}})
    past.generation(2, {"a": {"orders": range(3)}, "b": {"orders": range(3, 6)}})
    past.generation(3, {"a": {"orders": [0, 1]}, "b": {"orders": [3, 4]}, "c": {"orders": [2, 5]}})
    past.generation(4, {"b": {"orders": [0, 3, 4]}, "c": {"orders": [1, 2, 5]}})
    make = librdkafka_assignor(LIBRDKAFKA_ASSIGNOR, leader)
    assignors = [
        load_assignor("cooperative-sticky"),
        LoadedAssignor(LIBRDKAFKA_ASSIGNOR, make, is_cached=False),
    ]
    rows = replay_group("billing", past.table(), assignors, {}, AssignmentCache()).to_pylist()
    ours, theirs = (
        [
            [row[name] for name in ("generation", "moved", "rounds", "stopped", "imbalance", "error")]
            for row in rows
            if row["assignor"] == assignor.name
        ]
        for assignor in assignors
    )
    assert theirs == ours
    assert [row[1] for row in theirs] == [0, 3, 2, 0]


def test_it_has_one_name(leader: LibrdkafkaLeader) -> None:
    assert LIBRDKAFKA_ASSIGNOR == "librdkafka:cooperative-sticky"
    assert isinstance(librdkafka_assignor(LIBRDKAFKA_ASSIGNOR, leader)(), LibrdkafkaCooperativeSticky)
    with pytest.raises(AssignorError, match="librdkafka's assignor: librdkafka:cooperative-sticky"):
        librdkafka_assignor("librdkafka:range", leader)


def moves(event: SimulatedEvent) -> int:
    return sum(map(len, event.moved.values()))


def sizes(event: SimulatedEvent) -> list[int]:
    return sorted(sum(map(len, share.values())) for share in event.assignment.values())
