"""Rebalances played offline: members behave as Kafka's, and a group settles after each event."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from groupwright.assignors import (
    UNASSIGNED,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    RangeAssignor,
    RebalanceProtocol,
    SimulatedEvent,
    StickyAssignor,
    Topic,
    evaluate,
    simulate,
    unassigned,
)
from groupwright.assignors.indexed import IndexedGroup, Owners, simulate_cooperative, sticky_owners

Event = Callable[[Group], Group]

T = ["t"]
TWO = Group([Member("a", T), Member("b", T)], {"t": 4})


def joins(id_: str, topics: Sequence[str] = ("t",)) -> Event:
    return lambda group: Group([*group.members, Member(id_, topics)], group.topics)


def leaves(id_: str) -> Event:
    return lambda group: Group([each for each in group.members if each.id != id_], group.topics)


def subscribes(id_: str, *topics: str) -> Event:
    return lambda group: Group(
        [replace(each, topics=topics) if each.id == id_ else each for each in group.members], group.topics
    )


def has_topics(topics: Mapping[str, int | Topic]) -> Event:
    return lambda group: Group(group.members, topics)


def figures(played: SimulatedEvent) -> tuple[int, int, int]:
    """Return the numbers of rebalances, moved partitions and revoked partitions."""
    return len(played.rebalances), played.moved.count, played.revoked.count


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        (RangeAssignor(), [(1, 0, 0), (1, 3, 6), (1, 2, 6), (1, 1, 4)]),
        (StickyAssignor(), [(1, 0, 0), (1, 2, 6), (1, 0, 6), (1, 0, 5)]),
        (CooperativeStickyAssignor(), [(1, 0, 0), (2, 2, 2), (1, 0, 0), (1, 0, 0)]),
        (LoadAwareAssignor(), [(1, 0, 0), (2, 2, 2), (1, 0, 0), (1, 0, 0)]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_member_joins_the_topic_grows_and_a_member_leaves(
    assignor: Assignor, expected: list[tuple[int, int, int]]
) -> None:
    group = Group(TWO.members, {"t": 6})
    played = simulate(group, assignor, [joins("c"), has_topics({"t": 7}), leaves("a")])
    assert [sorted(share.count for share in each.assignment.values()) for each in played] == [
        [3, 3],
        [2, 2, 2],
        [2, 2, 3],
        [3, 4],
    ]
    assert [figures(each) for each in played] == expected
    for each in played:
        assert unassigned(each.group, each.assignment) == {}
        assert {member.id: member.owned for member in each.group.members} == each.assignment
        before = {member.id: member.owned for member in each.before.members}
        assert each.moved.count == evaluate(each.group, each.assignment, before).moves


def test_weights_change() -> None:
    def weigh(weights: list[float]) -> Event:
        return has_topics({"t": Topic(4, weights=weights)})

    group = weigh([1, 1, 1, 1])(TWO)
    _, noise, shift = simulate(group, LoadAwareAssignor(), [weigh([1.05, 1, 1, 1]), weigh([9, 3, 3, 3])])
    assert figures(noise) == (1, 0, 0)
    assert figures(shift) == (2, 1, 1)
    assert next(share for share in shift.assignment.values() if 0 in share["t"]) == {"t": [0]}


def test_a_member_that_unsubscribes_revokes_before_it_joins() -> None:
    """As Java's `ConsumerCoordinator.onJoinPrepare`, so that no second rebalance is needed."""
    _, played = simulate(TWO, CooperativeStickyAssignor(), [subscribes("b", "u")])
    assert played.assignment == {"a": {"t": [0, 1, 2, 3]}, "b": {}}
    assert len(played.rebalances) == 1
    assert played.moved == {}, "b could not have kept them"
    assert played.revoked.count == 2


def test_claims_at_the_beginning_are_sent_as_they_are() -> None:
    """The group may be any that a leader can receive."""
    late = Member("late", T, owned={"t": [0, 9], "u": [0]}, generation=4)
    owner = Member("owner", T, owned={"t": [0, 1]}, generation=5)
    (played,) = simulate(Group([late, owner], {"t": 2, "u": 1}), CooperativeStickyAssignor())
    first = played.rebalances[0]
    assert first.group.members[0].owned == late.owned
    assert {member.id: lost for member, lost in first.revoked()}["late"] == late.owned
    assert [member.generation for member in played.group.members] == [5 + len(played.rebalances)] * 2


def test_a_group_without_members_or_topics_has_nothing_to_play() -> None:
    empty, joined, again = simulate(Group([], {}), RangeAssignor(), [joins("a"), leaves("a")])
    assert figures(empty) == (0, 0, 0)
    assert empty.assignment == {}
    assert joined.assignment == {"a": {}}
    assert figures(joined) == (1, 0, 0)
    assert again.group == empty.group


class Recorder(Assignor):
    """Range, which records the calls of one member."""

    name = "recorder"

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        self.calls.append(sorted(topics))
        return b"%d" % len(self.calls)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        self.calls.append((assignment.as_tuples(), generation))

    def assign(self, group: Group) -> Any:
        assert not any(member.owned for member in group.members), "the protocol is eager"
        self.calls.append([member.user_data for member in group.members])
        return RangeAssignor().assign(group)


def test_every_member_has_an_assignor_which_is_called_as_in_a_consumer() -> None:
    made: dict[str, Recorder] = {}
    members = [Member("a", T, owned={"t": [0]}, generation=7), Member("b", T, user_data=b"own")]
    group = Group(members, {"t": 2})
    played = simulate(group, lambda each: made.setdefault(each.id, Recorder()), [leaves("b")])
    assert made["a"].calls == [
        ({"t": (0,)}, 7),
        ["t"],
        [b"2", b"own"],
        ({"t": (0,)}, 8),
        ["t"],
        [b"5"],
        ({"t": (0, 1)}, 9),
    ]
    assert made["b"].calls == [({"t": (1,)}, 8)]
    assert [member.user_data for member in played[0].group.members] == [None, b"own"]


def test_an_assignor_is_copied_and_the_group_is_not_changed() -> None:
    recorder = Recorder()
    before = repr(TWO)
    simulate(TWO, recorder, [joins("c")])
    assert recorder.calls == []
    assert repr(TWO) == before


def test_an_assignor_may_be_frozen() -> None:
    """It does not know the rebalance protocol."""

    @dataclass(frozen=True)
    class Frozen(RangeAssignor):
        region: str = "eu"

    frozen, original = (simulate(TWO, each, [joins("c")])[-1] for each in (Frozen(), RangeAssignor()))
    assert frozen.assignment == original.assignment


def test_a_member_that_comes_back_is_new() -> None:
    made: list[Assignor] = []

    def make(_: Member) -> Assignor:
        made.append(Recorder())
        return made[-1]

    simulate(TWO, make, [leaves("b"), joins("b")])
    assert len(made) == 3


class HandsOver(Assignor):
    """Assigns a partition to the last member, without waiting until its owner has revoked it."""

    name = "hands-over"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, group: Group) -> Any:
        return {max(member.id for member in group.members): {"t": [0]}}


class Swaps(HandsOver):
    """Replaces a member's partition by another one in each rebalance."""

    name = "swaps"

    def assign(self, group: Group) -> Any:
        return {"a": {"t": [1 if group.members[0].owned == {"t": [0]} else 0]}}


@pytest.mark.parametrize("most", [3, 8])
def test_an_assignor_that_does_not_settle_is_an_error(most: int) -> None:
    group = Group([Member("a", T, owned={"t": [0]}, generation=1)], {"t": 2})
    with pytest.raises(AssignorError) as caught:
        simulate(group, Swaps(), max_rebalances=most)
    assert str(caught.value) == (
        f"assignor 'swaps' does not settle: in rebalance {most}, 'a' still has to revoke "
        f"{{'t': [{1 - most % 2}]}}"
    )


def test_a_partition_that_another_member_owns_is_an_error() -> None:
    with pytest.raises(AssignorError, match=r"'hands-over': .* assigns 't' \[0\] to 'c' while 'b' owns it"):
        simulate(TWO, HandsOver(), [joins("c")])


def test_an_invalid_result_and_an_invalid_assignor_are_errors() -> None:
    class Wrong(HandsOver):
        def assign(self, group: Group) -> Any:  # noqa: ARG002 - the point
            return {"nobody": {}}

    with pytest.raises(AssignorError, match="member 'nobody' is in the assignment, but not in the group"):
        simulate(TWO, Wrong())
    nameless = Wrong()
    nameless.name = ""
    with pytest.raises(AssignorError, match=r"Wrong\.name must be a string"):
        simulate(TWO, nameless)


@pytest.mark.slow
@pytest.mark.parametrize("history", range(20))
@pytest.mark.parametrize(
    "assignor",
    [RangeAssignor(), StickyAssignor(), CooperativeStickyAssignor(), LoadAwareAssignor()],
    ids=lambda each: each.name,
)
def test_in_any_history_a_group_settles_in_two_rebalances(
    seeded: Callable[[int], random.Random], assignor: Assignor, history: int
) -> None:
    rng = seeded(history)
    names = ["t", "u", "v"]
    sizes = {name: rng.randint(1, 9) for name in names}

    def some() -> list[str]:
        return rng.sample(names, rng.randint(1, 3))

    def happens(group: Group) -> Group:
        chosen = rng.choice(group.members).id
        match rng.randrange(4):
            case 0:
                return joins(f"m{rng.getrandbits(40)}", some())(group)
            case 1 if len(group.members) > 1:
                return leaves(chosen)(group)
            case 2:
                return subscribes(chosen, *some())(group)
            case _:
                sizes[rng.choice(names)] += rng.randint(1, 4)
                return has_topics(sizes)(group)

    start = Group([Member("first", names)], sizes)
    is_cooperative = RebalanceProtocol.COOPERATIVE in assignor.protocols
    for played in simulate(start, assignor, [happens] * 15, max_rebalances=2):
        assert unassigned(played.group, played.assignment) == {}
        owner = places(played.assignment)
        before = places({member.id: member.owned for member in played.before.members})
        wants = {member.id: member.topics for member in played.before.members}
        assert set(places({"": played.moved})) == {
            place
            for place, former in before.items()
            if place in owner and owner[place] != former and place[0] in wants[former]
        }
        assert set(places({"": played.revoked})) == {
            place for place, former in before.items() if not is_cooperative or owner.get(place) != former
        }


def places(shares: Mapping[str, PartitionsByTopic]) -> dict[tuple[str, int], str]:
    """Return the owner of each partition."""
    return {
        (topic, partition): id_
        for id_, share in shares.items()
        for topic, partitions in share.items()
        for partition in partitions.tolist()
    }


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(3))
def test_its_form_on_arrays_gives_the_same_owners_and_rebalances(random_groups: Any, seed: int) -> None:
    """What-if studies simulate millions of rebalances on arrays; `simulate` is what they must agree with."""
    for group in random_groups(seed, 100):
        left = Group(group.members[1:], group.topics)
        (settled,) = simulate(left, CooperativeStickyAssignor())
        indexed = IndexedGroup.of(group)
        if not indexed.topics or not left.members:
            continue
        members = {member.id: member for member in settled.group.members}
        joined = Group(
            [members.get(each.id, replace(each, owned={})) for each in group.members], group.topics
        )
        owners = indexed.owners_of(settled.assignment)

        def best(owners: Owners, group: Group = joined, indexed: IndexedGroup = indexed) -> Owners:
            return sticky_owners(group, indexed, owners)

        (eager,) = simulate(joined, StickyAssignor())
        (cooperative,) = simulate(joined, CooperativeStickyAssignor())
        by_index, rebalances = simulate_cooperative(best, owners)

        assert indexed.assignment_of(best(owners)) == eager.assignment
        assert indexed.assignment_of(by_index) == cooperative.assignment
        assert rebalances == len(cooperative.rebalances)


def test_its_form_on_arrays_refuses_an_assignor_that_never_settles() -> None:
    owners = np.array([0, UNASSIGNED], np.int32)
    with pytest.raises(AssignorError, match="does not settle"):
        simulate_cooperative(lambda owned: np.where(owned == UNASSIGNED, np.int32(0), 1 - owned), owners)
