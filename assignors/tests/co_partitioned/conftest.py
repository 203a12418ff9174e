"""Reference for `co-partitioned-sticky`: its rules in plain loops, and an optimum found by scipy."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from groupwright.assignors import (
    Assignment,
    Assignor,
    Group,
    Member,
    PartitionsByTopic,
    Topic,
    assign,
    unassigned,
)

Partition = tuple[str, int]
Joined = Sequence[Sequence[str]] | None


@dataclass(frozen=True)
class Bundle:
    """Partitions that belong together, and the ids of the members that subscribe to all their topics."""

    partitions: tuple[Partition, ...]
    subscribers: tuple[str, ...]


class Score(NamedTuple):
    """The quality of an assignment: smaller is better, and earlier fields count first."""

    squares: int
    rack_mismatches: int
    moved: int


class Reference:
    """The bundles of a group, and the best score of an assignment of them."""

    def __init__(self, group: Group, joined: Joined) -> None:
        self.group = group
        self.members = sorted(group.members, key=lambda m: (not m.instance_id, m.instance_id or "", m.id))
        self.partition_owners = self._partition_owners()
        self.bundles = sorted(self._bundles(joined), key=lambda bundle: bundle.partitions[0])
        self.owners = self._owners()

    def _subscribers(self, topics: Sequence[str]) -> tuple[str, ...]:
        return tuple(member.id for member in self.members if set(topics) <= set(member.topics))

    def _bundles(self, joined: Joined) -> Iterator[Bundle]:
        sizes = {
            name: topic.partitions for name, topic in self.group.topics.items() if self._subscribers([name])
        }
        if joined is None:
            alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
            for name, size in sizes.items():
                alike.setdefault((size, self._subscribers([name])), []).append(name)
            joined = list(alike.values())
        listed = {name for names in joined for name in names}
        for names in [*joined, *([name] for name in sizes if name not in listed)]:
            for number in range(max((sizes.get(name, 0) for name in names), default=0)):
                topics = sorted(name for name in names if sizes.get(name, 0) > number)
                together = [topics] if self._subscribers(topics) else [[name] for name in topics]
                for each in together:
                    yield Bundle(tuple((name, number) for name in each), self._subscribers(each))

    def _partition_owners(self) -> dict[Partition, str]:
        """Return the owner of each partition by the members' claims."""
        claims: dict[Partition, list[tuple[int, Member]]] = {}
        for member in self.group.members:
            for topic, partitions in member.owned.items():
                for partition in partitions.tolist():
                    claims.setdefault((topic, partition), []).append((member.generation, member))
        owners = {}
        for place, claimed in claims.items():
            highest = max(generation for generation, _ in claimed)
            holders = [member for generation, member in claimed if generation == highest]
            if len(holders) == 1 and place[0] in holders[0].topics:
                owners[place] = holders[0].id
        return owners

    def _owners(self) -> dict[Bundle, str]:
        """Return the owner of each bundle."""
        loads: Counter[str] = Counter()
        owners, ties = {}, []
        for bundle in self.bundles:
            held = Counter(self.partition_owners.get(place) for place in bundle.partitions)
            most = max((held[id_] for id_ in bundle.subscribers), default=0)
            holders = [id_ for id_ in bundle.subscribers if held[id_] == most]
            if most and len(holders) == 1:
                owners[bundle] = holders[0]
                loads[holders[0]] += 1
            elif most:
                ties.append((bundle, holders))
        for bundle, holders in ties:
            owners[bundle] = min(holders, key=loads.__getitem__)
            loads[owners[bundle]] += 1
        return owners

    def _is_rack_mismatch(self, bundle: Bundle, id_: str) -> bool:
        rack = next(member.rack for member in self.members if member.id == id_)
        for topic, number in bundle.partitions:
            racks = self.group.topics[topic].racks
            if rack and racks and racks[number] and rack not in racks[number]:
                return True
        return False

    def score(self, assignment: Assignment) -> Score:
        """Return the score, after checking that every bundle has one owner that subscribes to all of it."""
        given = {
            (topic, partition): id_
            for id_, share in assignment.items()
            for topic, partitions in share.items()
            for partition in partitions.tolist()
        }
        loads: Counter[str] = Counter()
        mismatches = moved = 0
        for bundle in self.bundles:
            owners = {given.pop(place) for place in bundle.partitions}
            assert len(owners) == 1, (bundle, owners)
            (owner,) = owners
            assert owner in bundle.subscribers, (bundle, owner)
            loads[owner] += 1
            mismatches += self._is_rack_mismatch(bundle, owner)
            moved += self.owners.get(bundle, owner) != owner
        assert not given, "partitions of subscribed topics are in bundles"
        return Score(sum(load**2 for load in loads.values()), mismatches, moved)

    def moved_partitions(self, assignment: Assignment) -> int:
        """Return how many partitions leave their owner."""
        return sum(
            number not in assignment[id_].get(topic, ())
            for (topic, number), id_ in self.partition_owners.items()
            if number < self.group.topics.get(topic, Topic(0)).partitions
        )

    def optimum(self, *, in_partitions: bool = False) -> Score:
        """Return the best possible score.

        Every bundle gets a seat. A member's first seat costs 1, the second 3, and so on, so that n seats cost
        n². Rack mismatches, and then moves, cost less than the smallest difference in seats.

        Args:
            in_partitions: Whether to count the moved partitions instead of the moved bundles.
        """
        if not self.bundles:
            return Score(0, 0, 0)
        count = len(self.bundles)
        one_mismatch = 1 + sum(len(bundle.partitions) for bundle in self.bundles)
        one_seat = one_mismatch * (count + 1)
        costs = np.full((count, len(self.members)), np.inf)
        for row, bundle in enumerate(self.bundles):
            for column, member in enumerate(self.members):
                if member.id in bundle.subscribers:
                    if in_partitions:
                        owners = (self.partition_owners.get(place, member.id) for place in bundle.partitions)
                        moves = sum(owner != member.id for owner in owners)
                    else:
                        moves = self.owners.get(bundle, member.id) != member.id
                    costs[row, column] = one_mismatch * self._is_rack_mismatch(bundle, member.id) + moves
        seats = one_seat * (2 * np.arange(count) + 1)
        seated = (costs[:, :, None] + seats).reshape(count, -1)
        rows, columns = linear_sum_assignment(seated)
        total = int(seated[rows, columns].sum())
        return Score(total // one_seat, total % one_seat // one_mismatch, total % one_mismatch)


class CooperativeGroup:
    """Members that follow KIP-429."""

    def __init__(self, assignor: Assignor, joined: Joined) -> None:
        self.assignor = assignor
        self.joined = joined

    def round(self, group: Group) -> Assignment:
        """Return one rebalance's assignment, after checking it.

        No partition has two owners, only claimed partitions are withheld, and no two members are assigned
        partitions of one bundle.
        """
        assignment = assign(self.assignor, group, cooperative=True)
        claimed = {
            (topic, partition)
            for member in group.members
            for topic, partitions in member.owned.items()
            for partition in partitions.tolist()
        }
        for topic, partitions in unassigned(group, assignment).items():
            assert {(topic, partition) for partition in partitions.tolist()} <= claimed
        given = {
            (topic, partition): id_
            for id_, share in assignment.items()
            for topic, partitions in share.items()
            for partition in partitions.tolist()
        }
        for bundle in Reference(group, self.joined).bundles:
            owners = {given[place] for place in bundle.partitions if place in given}
            assert len(owners) <= 1, (bundle, owners)
            assert owners <= set(bundle.subscribers), (bundle, owners)
        return assignment

    @staticmethod
    def rejoined(group: Group, assignment: Assignment, generation: int) -> Group:
        """Return the group when all members have revoked what they must, and rejoin."""
        members = [
            Member(
                member.id,
                member.topics,
                owned=assignment[member.id],
                generation=generation,
                instance_id=member.instance_id,
                rack=member.rack,
            )
            for member in group.members
        ]
        return Group(members, group.topics)

    def settle(self, group: Group) -> Assignment:
        """Return the assignment in which the group settles, at the latest that of the second round."""
        first = self.round(group)
        second = self.round(self.rejoined(group, first, 1000))
        assert unassigned(group, second) == PartitionsByTopic()
        for id_, share in first.items():
            for topic, partitions in share.items():
                assert set(partitions.tolist()) <= set(second[id_].get(topic, np.empty(0)).tolist())
        assert self.round(self.rejoined(group, second, 1001)) == second, "a group at rest stays as it is"
        return second


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def cooperative() -> type[CooperativeGroup]:
    return CooperativeGroup


NAMES = ("audit", "invoices", "orders", "payments", "refunds", "returns")


def make_topics(rng: random.Random, sizes: Sequence[int], racks: Sequence[str]) -> dict[str, Topic]:
    def racks_of(partitions: int) -> list[list[str]] | None:
        if not racks or rng.random() < 0.2:
            return None
        return [rng.sample(racks, rng.randint(0, len(racks))) for _ in range(partitions)]

    chosen = {name: rng.choice(sizes) for name in NAMES[: rng.randint(1, len(NAMES))]}
    return {name: Topic(size, racks_of(size)) for name, size in chosen.items()}


def make_owned(rng: random.Random, names: Sequence[str], members: int) -> list[dict[str, list[int]]]:
    """Return claims of each member: to whole bundles or to single partitions, of which some do not exist."""
    owned: list[dict[str, list[int]]] = [{} for _ in range(members)]
    likely, split, twice = rng.choice((0.0, 0.5, 1.0)), rng.choice((0.0, 0.3, 1.0)), rng.choice((0.0, 0.2))
    for number in range(-1, 13):
        together = int(members * rng.random() ** 3)  # the first members have the most
        for name in names:
            claimant = rng.randrange(members) if rng.random() < split else together
            if rng.random() < likely:
                owned[claimant].setdefault(name, []).append(number)
            if rng.random() < twice:
                owned[rng.randrange(members)].setdefault(name, []).append(number)
    return owned


@pytest.fixture(scope="session")
def arbitrary_group() -> Callable[[random.Random], Group]:
    """A function that makes a small group: any subscriptions, any claims, with racks or without."""

    def make(rng: random.Random) -> Group:
        racks = rng.sample("abc", rng.randint(1, 3)) if rng.random() < 0.4 else []
        topics = make_topics(rng, rng.choice(((4,), (0, 3, 7), (2, 5, 9, 12))), racks)
        names = list(topics)
        in_common = rng.sample(names, rng.randint(1, len(names))) if rng.random() < 0.5 else None
        owned = make_owned(rng, [*names, "vanished"], rng.randint(1, 6))
        members = [
            Member(
                f"member-{number}",
                in_common or rng.sample(names, rng.randint(1, len(names))),
                owned=claims,
                generation=rng.randint(-1, 2),
                instance_id=f"host-{rng.randrange(100)}-{number}" if rng.random() < 0.2 else None,
                rack=rng.choice([*racks, "elsewhere", None]) if racks else None,
            )
            for number, claims in enumerate(owned)
        ]
        return Group(members, topics)

    return make


@pytest.fixture(scope="session")
def some_lists() -> Callable[[random.Random, Group], list[list[str]]]:
    """A function that joins some of a group's topics, and one that does not exist."""

    def make(rng: random.Random, group: Group) -> list[list[str]]:
        names = rng.sample(sorted(group.topics), len(group.topics))
        first, second = sorted(rng.randint(0, len(names)) for _ in range(2))
        return [[*names[:first], "nowhere"], names[first:second]]

    return make
