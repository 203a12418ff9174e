"""Long histories of a group under `co-partitioned-sticky`: never two owners, settled in two rounds."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import (
    Assignment,
    CoPartitionedStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    unassigned,
)

if TYPE_CHECKING:
    from assignors.tests.co_partitioned.conftest import CooperativeGroup, Joined, Reference

NAMES = ["audit", "invoices", "orders", "payments"]
LISTS = [["orders", "payments"], ["audit", "invoices"]]

Shares = dict[str, dict[str, list[int]]]


@pytest.mark.slow
@pytest.mark.parametrize("joined", [None, LISTS, [NAMES]], ids=["default", "pairs", "all"])
@pytest.mark.parametrize("history", range(20))
def test_a_long_history_never_splits_a_bundle_and_settles_in_two_rounds(
    cooperative: "type[CooperativeGroup]",
    reference: "type[Reference]",
    seeded: Callable[[int], random.Random],
    joined: "Joined",
    history: int,
) -> None:
    """Members join, leave, resubscribe and make false claims, and topics are created, grow and shrink.

    Such events also come between the two rounds of a rebalance.
    """
    rng = seeded(history)
    rounds = cooperative(CoPartitionedStickyAssignor(joined, allow_unequal=True), joined)
    world = World(rng)
    for generation in range(1, 30):
        world.something_happens()
        group = world.group()
        assignment = rounds.round(group)
        world.all_apply(assignment, generation)
        if rng.random() < 0.5:
            continue  # the next event comes between this round and the next
        group = world.group()
        settled = rounds.round(group)
        assert unassigned(group, settled) == PartitionsByTopic()
        known = reference(group, joined)
        assert known.score(settled) == known.optimum()
        assert known.moved_partitions(settled) == 0
        world.all_apply(settled, generation)
        assert rounds.round(world.group()) == settled


class World:
    """Topics and members, and what each of them has and since when."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._topics = dict.fromkeys(NAMES[1:], 4)
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

    def all_apply(self, assignment: Assignment, generation: int) -> None:
        """Apply the assignment, after checking that no other member owns any of it."""
        had = {
            (topic, partition): id_
            for id_, share in self._has.items()
            for topic, partitions in share.items()
            for partition in partitions
        }
        self._has = {
            id_: {topic: partitions.tolist() for topic, partitions in share.items()}
            for id_, share in assignment.items()
        }
        for id_, share in self._has.items():
            for topic, partitions in share.items():
                assert all(had.get((topic, partition), id_) == id_ for partition in partitions)
        self._since = dict.fromkeys(self._has, generation)
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
                self._topics[rng.choice(NAMES)] = rng.randint(1, 8)
            case 4:
                self._wants[rng.choice(sorted(self._wants))] = self._some_topics()
            case 5:
                liar = rng.choice(sorted(self._wants))
                self._lies[liar] = {name: rng.sample(range(8), 3) for name in self._some_topics()}
                self._since[liar] = rng.choice((-1, 0, self._since.get(liar, -1)))
            case _:
                more = rng.randint(1, 3)
                for name in rng.choice(LISTS):
                    self._topics[name] = self._topics.get(name, 0) + more
        for share in self._has.values():  # partitions that are gone have no owner
            for topic, partitions in share.items():
                share[topic] = [number for number in partitions if number < self._topics[topic]]

    def _join(self) -> None:
        self._joined += 1
        self._wants[f"c{self._joined:02}"] = self._some_topics()

    def _some_topics(self) -> list[str]:
        return NAMES if self._rng.random() < 0.6 else self._rng.sample(NAMES, self._rng.randint(1, 4))

    def _claims(self, id_: str) -> dict[str, list[int]]:
        has, lies = self._has.get(id_, {}), self._lies.get(id_, {})
        return {name: [*has.get(name, ()), *lies.get(name, ())] for name in NAMES}
