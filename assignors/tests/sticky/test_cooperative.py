"""Rebalances under `cooperative-sticky`: never two owners at once, settled in two rounds."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    assign,
    unassigned,
)
from integration_tests.harness.endurance import first_of

if TYPE_CHECKING:
    from assignors.tests.sticky.conftest import CooperativeGroup, Reference

T = ["topic"]


def test_what_moves_is_withheld_for_a_round() -> None:
    members = [
        Member("c1", T, owned={"topic": [0, 1]}, generation=1),
        Member("c2", T, owned={"topic": [2, 3]}, generation=1),
        Member("c3", T),
    ]
    group = Group(members, {"topic": 4})
    assignment = assign(CooperativeStickyAssignor(), group)
    assert sorted(share.count for share in assignment.values()) == [0, 1, 2]
    assert assignment["c3"].count == 0
    assert unassigned(group, assignment).count == 1


def test_a_partition_that_two_members_claim_is_withheld_from_both() -> None:
    """Both may be consuming it, so both must stop before anyone goes on; Kafka's does so too."""
    members = [
        Member("c1", T, owned={"topic": [0, 1]}, generation=1),
        Member("c2", T, owned={"topic": [0, 2]}, generation=1),
        Member("c3", T),
    ]
    assert assign(CooperativeStickyAssignor(), Group(members, {"topic": 3})) == {
        "c1": {"topic": [1]},
        "c2": {"topic": [2]},
        "c3": {},
    }


def test_a_late_members_claim_takes_nothing_from_the_owner() -> None:
    """The owner goes on; the late member finds out from its own assignment that it has lost the partition."""
    members = [
        Member("c1", T, owned={"topic": [0, 1]}, generation=5),
        Member("late", T, owned={"topic": [0, 1]}, generation=4),
    ]
    assignment = assign(CooperativeStickyAssignor(), Group(members, {"topic": 2}))
    assert assignment["c1"].count == 1
    assert assignment["late"].count == 0


def test_what_a_member_owns_and_does_not_subscribe_to_any_more_is_withheld_until_it_lets_go(
    cooperative: "CooperativeGroup",
) -> None:
    members = [
        Member("c1", ["other"], owned={"topic": [0], "other": [0]}, generation=5),
        Member("c2", [*T, "other"], owned={"other": [1]}, generation=5),
    ]
    group = Group(members, {"topic": 1, "other": 2})
    first = cooperative.round(group)
    assert first == {"c1": {"other": [0]}, "c2": {"other": [1]}}
    second = cooperative.round(cooperative.rejoined(group, first, 6))
    assert second == {"c1": {"other": [0]}, "c2": {"other": [1], "topic": [0]}}


def test_members_that_give_everything_up_get_everything_at_once() -> None:
    """The same assignor serves a group that rebalances eagerly, until its last member cooperates."""
    members = [Member(f"c{number}", T) for number in range(3)]
    group = Group(members, {"topic": 9})
    assert unassigned(group, assign(CooperativeStickyAssignor(), group)) == PartitionsByTopic()


@pytest.mark.slow
def test_the_second_round_moves_nothing_else(
    cooperative: "CooperativeGroup", seeded: Callable[[int], random.Random]
) -> None:
    """KAFKA-8767: Java's second round assigned the withheld partitions anew, and moved others again."""
    for seed in range(150):
        rng = seeded(8767 + seed)
        names = [f"t{number}" for number in range(rng.randint(1, 5))]
        topics = {name: rng.randint(1, 15) for name in names}
        members = [
            Member(f"c{number}", rng.sample(names, rng.randint(1, len(names)))) for number in range(12)
        ]
        few = Group(members[: rng.randint(1, 6)], topics)
        group = cooperative.rejoined(few, cooperative.settle(few), 7)
        cooperative.settle(Group([*group.members, *members[6 : rng.randint(7, 12)]], topics))


@pytest.mark.slow
@pytest.mark.parametrize("history", first_of(60, 15))
def test_a_long_history_never_has_two_owners_and_settles_in_two_rounds(
    cooperative: "CooperativeGroup",
    reference: "type[Reference]",
    seeded: Callable[[int], random.Random],
    history: int,
) -> None:
    """Members join, leave, resubscribe and make false claims, and topics grow and shrink.

    Such events also come between the two rounds of a rebalance. False claims are of partitions: a false
    generation cannot be detected, since a claim of a later generation wins without waiting (KIP-792).
    """
    rng = seeded(history)
    names = [f"t{number}" for number in range(rng.randint(2, 6))]
    world = World(rng, names)
    for generation in range(1, 40):
        world.something_happens()
        group = world.group()
        assignment = cooperative.round(group)
        world.everybody_takes(shares_of(assignment), generation)
        if rng.random() < 0.5:
            continue  # the next event comes between this round and the next
        settled = cooperative.round(world.group())
        assert unassigned(world.group(), settled) == PartitionsByTopic()
        assert reference.score(world.group(), settled)[:2] == reference.optimum(world.group())[:2]
        world.everybody_takes(shares_of(settled), generation)
        assert cooperative.round(world.group()) == settled


Shares = dict[str, dict[str, list[int]]]


def shares_of(assignment: Assignment) -> Shares:
    return {
        id_: {topic: partitions.tolist() for topic, partitions in share.items()}
        for id_, share in assignment.items()
    }


class World:
    """Topics and members, and what each of them has and since when."""

    def __init__(self, rng: random.Random, names: list[str]) -> None:
        self._rng = rng
        self._names = names
        self._topics = {name: rng.randint(1, 8) for name in names}
        self._wants: dict[str, list[str]] = {}
        self._has: Shares = {}
        self._since: dict[str, int] = {}
        self._lies: Shares = {}
        self._joined = 0
        self._join()

    def group(self) -> Group:
        """Return the group as it joins; some members also claim partitions that they do not own."""
        members = [
            Member(id_, wants, owned=self._claims(id_), generation=self._since.get(id_, -1))
            for id_, wants in self._wants.items()
        ]
        return Group(members, self._topics)

    def everybody_takes(self, shares: Shares, generation: int) -> None:
        """Apply the assignment, after checking that no other member owns any of it."""
        had = {
            (topic, partition): id_
            for id_, share in self._has.items()
            for topic, partitions in share.items()
            for partition in partitions
        }
        for id_, share in shares.items():
            for topic, partitions in share.items():
                for partition in partitions:
                    assert had.get((topic, partition), id_) == id_
        self._has = shares
        self._since = dict.fromkeys(shares, generation)
        self._lies = {}

    def something_happens(self) -> None:
        rng = self._rng
        match rng.randrange(7):
            case 0 | 1:
                self._join()
            case 2 if len(self._wants) > 1:
                gone = rng.choice(sorted(self._wants))
                del self._wants[gone]
                self._has.pop(gone, None)
            case 3:
                self._topics[rng.choice(self._names)] = rng.randint(1, 12)
            case 4:
                changed = rng.choice(sorted(self._wants))
                self._wants[changed] = self._some_topics()
            case 5:
                liar = rng.choice(sorted(self._wants))
                self._lies[liar] = {name: rng.sample(range(12), 4) for name in self._some_topics()}
                self._since[liar] = rng.choice((-1, 0, self._since.get(liar, -1)))
            case _:
                name = rng.choice(self._names)
                self._topics[name] = self._topics.get(name, 0) + rng.randint(1, 4)
        for share in self._has.values():  # partitions that are gone have no owner
            for topic, partitions in share.items():
                share[topic] = [number for number in partitions if number < self._topics[topic]]

    def _join(self) -> None:
        self._joined += 1
        self._wants[f"c{self._joined:02}"] = self._some_topics()

    def _some_topics(self) -> list[str]:
        return self._rng.sample(self._names, self._rng.randint(1, len(self._names)))

    def _claims(self, id_: str) -> dict[str, list[int]]:
        has, lies = self._has.get(id_, {}), self._lies.get(id_, {})
        return {name: [*has.get(name, ()), *lies.get(name, ())] for name in self._names}
