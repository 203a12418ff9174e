"""Reference for the sticky assignors: the rules in plain loops, and an optimum found by scipy."""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from groupwright.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    StickyAssignor,
    Topic,
    assign,
    unassigned,
)

Partition = tuple[str, int]


class Score(NamedTuple):
    """The quality of an assignment: smaller is better, and earlier fields count first."""

    squares: int
    rack_mismatches: int
    moved: int


class Reference:
    """The valid claims of a group, the score of an assignment, and the best score."""

    @staticmethod
    def owners(group: Group) -> dict[Partition, str]:
        """Return the owner of each partition by the members' claims, which are in their subscriptions."""
        claims: dict[Partition, list[tuple[int, Member]]] = {}
        for member in group.members:
            for topic, partitions in member.owned.items():
                for partition in partitions.tolist():
                    if topic in group.topics and 0 <= partition < group.topics[topic].partitions:
                        claims.setdefault((topic, partition), []).append((member.generation, member))
        owners = {}
        for (topic, partition), claimed in claims.items():
            highest = max(generation for generation, _ in claimed)
            holders = [member for generation, member in claimed if generation == highest]
            if len(holders) == 1 and topic in holders[0].topics:
                owners[topic, partition] = holders[0].id
        return owners

    @staticmethod
    def is_rack_mismatch(group: Group, member: Member, topic: str, partition: int) -> bool:
        racks = group.topics[topic].racks
        return bool(member.rack and racks and racks[partition] and member.rack not in racks[partition])

    @classmethod
    def score(cls, group: Group, assignment: Assignment) -> Score:
        owners = cls.owners(group)
        given = [
            (member, topic, partition)
            for member in group.members
            for topic, partitions in assignment[member.id].items()
            for partition in partitions.tolist()
        ]
        return Score(
            squares=sum(share.count**2 for share in assignment.values()),
            rack_mismatches=sum(cls.is_rack_mismatch(group, *place) for place in given),
            moved=sum(owners.get((topic, number), member.id) != member.id for member, topic, number in given),
        )

    @classmethod
    def optimum(cls, group: Group) -> Score:
        """Return the best possible score.

        Every partition gets a seat. A member's first seat costs 1, the second 3, and so on, so that n seats
        cost n². Rack mismatches, and then moves, cost less than the smallest difference in seats.
        """
        owners = cls.owners(group)
        subscribed = {topic for member in group.members for topic in member.topics}
        partitions = [
            (name, number)
            for name, topic in group.topics.items()
            if name in subscribed
            for number in range(topic.partitions)
        ]
        count = len(partitions)
        if not count:
            return Score(0, 0, 0)
        one_mismatch, one_seat = count + 1, (count + 1) ** 2
        costs = np.full((count, len(group.members)), np.inf)
        for column, member in enumerate(group.members):
            for row, place in enumerate(partitions):
                if place[0] in member.topics:
                    moves = owners.get(place, member.id) != member.id
                    costs[row, column] = one_mismatch * cls.is_rack_mismatch(group, member, *place) + moves
        seats = one_seat * (2 * np.arange(count) + 1)
        rows, columns = linear_sum_assignment(
            (costs[:, :, None] + seats).reshape(count, len(group.members) * count)
        )
        total = int((costs[:, :, None] + seats).reshape(count, -1)[rows, columns].sum())
        return Score(total // one_seat, total % one_seat // one_mismatch, total % one_mismatch)


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def eagerly() -> Callable[[Group], Group]:
    """Return a function that moves a group's claims from the subscriptions to the user data of `sticky`."""

    def member(cooperative: Member) -> Member:
        had = StickyAssignor()
        had.on_assignment(cooperative.owned, cooperative.generation)
        return Member(
            cooperative.id,
            cooperative.topics,
            instance_id=cooperative.instance_id,
            rack=cooperative.rack,
            user_data=had.user_data(frozenset(cooperative.topics)),
        )

    return lambda group: Group(map(member, group.members), group.topics)


class CooperativeGroup:
    """Members under `cooperative-sticky` that follow KIP-429; `sticky` does not need it."""

    def __init__(self) -> None:
        self.assignor = CooperativeStickyAssignor()

    def round(self, group: Group) -> Assignment:
        """Return one rebalance's assignment, after checking that it leaves no partition with two owners.

        A partition may be given to a member that has it, or to one if no other has it.
        """
        assignment = assign(self.assignor, group)
        owners = Reference.owners(group)
        claimants: dict[Partition, set[str]] = {}
        for member in group.members:
            for topic, partitions in member.owned.items():
                for partition in partitions.tolist():
                    claimants.setdefault((topic, partition), set()).add(member.id)
        for id_, share in assignment.items():
            for topic, partitions in share.items():
                for partition in partitions.tolist():
                    place = topic, partition
                    assert owners.get(place) == id_ or not claimants.get(place), (place, id_)
        return assignment

    @staticmethod
    def rejoined(group: Group, assignment: Assignment, generation: int) -> Group:
        """Return the group when all members have revoked what they must, and rejoin."""
        return Group(
            [
                Member(
                    member.id,
                    member.topics,
                    owned=assignment[member.id],
                    generation=generation,
                    instance_id=member.instance_id,
                    rack=member.rack,
                )
                for member in group.members
            ],
            group.topics,
        )

    def settle(self, group: Group) -> Assignment:
        """Return the assignment in which the group settles, at the latest that of the second round."""
        first = self.round(group)
        again = self.rejoined(group, first, 1000)
        second = self.round(again)
        assert unassigned(group, second) == PartitionsByTopic()
        for id_, share in first.items():
            for topic, partitions in share.items():
                assert set(partitions.tolist()) <= set(second[id_].get(topic, np.empty(0)).tolist())
        third = self.rejoined(group, second, 1001)
        assert self.assignor.assign(third) == second, "a group at rest stays as it is"
        return second


@pytest.fixture(scope="session")
def cooperative() -> CooperativeGroup:
    return CooperativeGroup()


def make_owned(rng: random.Random, topics: Mapping[str, Topic], likely: float) -> dict[str, list[int]]:
    """Return claims to partitions, of which some do not exist."""
    return {
        name: [number for number in range(-1, topic.partitions + 1) if rng.random() < likely]
        for name, topic in [*topics.items(), ("vanished", Topic(3))]
        if rng.random() < 0.5
    }


def make_topics(
    rng: random.Random, names: Iterable[str], most: int, racks: Collection[str]
) -> dict[str, Topic]:
    def racks_of(partitions: int) -> list[list[str]] | None:
        if not racks or rng.random() < 0.2:
            return None
        return [rng.sample(sorted(racks), rng.randint(0, len(racks))) for _ in range(partitions)]

    sizes = {name: rng.randint(0, most) for name in names}
    return {name: Topic(size, racks_of(size)) for name, size in sizes.items()}


@pytest.fixture(scope="session")
def arbitrary_group() -> Callable[[random.Random], Group]:
    """A function that makes a small group: any subscriptions, any claims, with racks or without."""

    def make(rng: random.Random) -> Group:
        names = [f"topic-{number}" for number in range(rng.randint(1, 6))]
        racks = rng.sample("abcd", rng.randint(1, 4)) if rng.random() < 0.5 else []
        topics = make_topics(rng, names, rng.choice((3, 8, 8, 20)), racks)
        in_common = rng.sample(names, rng.randint(1, len(names))) if rng.random() < 0.2 else None
        likely = rng.choice((0.0, 0.1, 0.3, 0.6, 0.9))
        members = [
            Member(
                f"member-{number}",
                in_common or rng.sample(names, rng.randint(1, len(names))),
                owned=make_owned(rng, topics, likely),
                generation=rng.randint(-1, 2),
                rack=rng.choice([*racks, "elsewhere", None]) if racks else None,
            )
            for number in range(rng.randint(1, 8))
        ]
        return Group(members, topics)

    return make


@pytest.fixture(scope="session")
def eventful_group() -> Callable[[random.Random, int], Group]:
    """A function that makes a group at rest, to which so many things have happened since."""

    def make(rng: random.Random, events: int) -> Group:
        names = [f"topic-{number}" for number in range(rng.randint(2, 7))]
        racks = rng.sample("abc", rng.randint(2, 3)) if rng.random() < 0.5 else []
        topics = make_topics(rng, names, rng.choice((4, 9, 16)), racks)
        alike = rng.random() < 0.25

        def joiner(number: int) -> Member:
            wanted = names if alike else rng.sample(names, rng.randint(1, len(names)))
            return Member(f"member-{number:02}", wanted, rack=rng.choice([*racks, None]) if racks else None)

        group = Group(map(joiner, range(rng.randint(2, 9))), topics)
        group = CooperativeGroup.rejoined(group, CooperativeStickyAssignor().assign(group), 5)
        for event in range(events):
            group = happen(rng, group, joiner(20 + event), racks)
        return group

    return make


def happen(rng: random.Random, group: Group, joiner: Member, racks: Collection[str]) -> Group:
    """Return the group after one more event."""
    members, topics = list(group.members), dict(group.topics)
    match rng.randrange(5):
        case 0:
            members.append(joiner)
        case 1 if len(members) > 1:
            members.pop(rng.randrange(len(members)))
        case 2:
            at = rng.randrange(len(members))
            was = members[at]
            members[at] = Member(
                was.id, joiner.topics, owned=was.owned, generation=was.generation, rack=was.rack
            )
        case 3:
            name = rng.choice(sorted(topics))
            more = make_topics(rng, [name], topics[name].partitions + 4, racks)[name]
            if more.partitions >= topics[name].partitions:
                topics[name] = more
        case _:
            del topics[rng.choice(sorted(topics))]
            topics = topics or {"topic-0": Topic(3)}
    return Group(members, topics)
