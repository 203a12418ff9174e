"""Oracle for assignment by load: exact optima by integer programming (scipy's HiGHS), and random groups."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from groupwright.assignors import (
    Assignment,
    Group,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    SimulatedEvent,
    Topic,
    simulate,
    unassigned,
)
from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.load_problem import LoadProblem, weights_of
from groupwright.assignors._model.weight_arrays import fill_unknown
from groupwright.assignors._wire.load_data import MemberLoadData, decode_load_data, encode_load_data
from groupwright.assignors._wire.owned import OwnedColumns

Floats = npt.NDArray[np.float64]
Owners = npt.NDArray[np.int32]


class Oracle:
    """A group's integer program: one variable for each partition and each of its subscribers."""

    def __init__(self, group: Group) -> None:
        self.indexed = IndexedGroup.of(group)
        members = {member.id: member for member in group.members}
        capacities = [decode_load_data(members[id_].user_data).capacity for id_ in self.indexed.members]
        weights = fill_unknown(weights_of(group, self.indexed), self.indexed.starts)
        self.problem = LoadProblem.of(self.indexed, weights, np.array(capacities))
        subscribes = self.problem.subscribes[self.problem.set_of]
        self._partition, self._member = np.nonzero(subscribes)
        variables = self._partition.size
        self._assigned = np.zeros((weights.size, variables))
        self._assigned[self._partition, np.arange(variables)] = 1
        self._loads = np.zeros((len(capacities), variables))
        self._loads[self._member, np.arange(variables)] = self.problem.weights[self._partition]

    def owners(self, assignment: Assignment) -> Owners:
        return self.indexed.owners_of(assignment)

    def owned(self, group: Group) -> Owners:
        """Return the owners by the members' claims."""
        claims = OwnedColumns.of_members(group, self.indexed.members)
        return resolve_claims(self.indexed, claims).owner

    def peak(self, owners: Owners) -> float:
        """Return the largest load over capacity of an assignment."""
        capacities = self.problem.capacities
        return float((np.bincount(owners, self.problem.weights, capacities.size) / capacities).max())

    def least_peak(self, seconds: float) -> tuple[float, float]:
        """Return the smallest possible peak, as far as the solver proves it in this time.

        Returns:
            A proven lower bound, and the smallest peak found.
        """
        variables = self._partition.size
        least = self._least()
        result = milp(
            np.append(np.zeros(variables), 1.0),
            constraints=[
                LinearConstraint(np.column_stack([self._assigned, np.zeros(len(self._assigned))]), 1, 1),
                LinearConstraint(np.column_stack([self._loads, -self.problem.capacities]), -np.inf, 0),
            ],
            bounds=Bounds(np.append(np.zeros(variables), least), np.append(np.ones(variables), np.inf)),
            integrality=np.append(np.ones(variables, np.int64), 0),
            options={"mip_rel_gap": 1e-3, "time_limit": seconds},
        )
        assert result.x is not None
        return max(least, float(result.mip_dual_bound)), float(result.fun)

    def _least(self) -> float:
        """Return a simple lower bound of the peak, which spares the solver most of its work."""
        weights, capacities = sorted(self.problem.weights.tolist()), self.problem.capacities.tolist()
        least = max(sum(weights) / sum(capacities), weights[-1] / max(capacities))
        if len(weights) > len(capacities):  # two of the heaviest share a member
            pair = weights[-len(capacities) - 1 :][:2]
            least = max(least, sum(pair) / max(capacities))
        return float(least)

    def fewest_moves(self, owned: Owners, limit: float, at_least: Floats | None = None) -> int:
        """Return the fewest moves after which no load over capacity exceeds the limit.

        Args:
            owned: `(partitions,) int32`: the owner of each partition, or -1.
            limit: The limit.
            at_least: `(members,) float64`: the least load of each member.
        """
        owner = owned[self._partition]
        least = np.zeros(len(self._loads)) if at_least is None else at_least
        result = milp(
            ((owner >= 0) & (owner != self._member)).astype(np.float64),
            constraints=[
                LinearConstraint(self._assigned, 1, 1),
                LinearConstraint(
                    self._loads, least * (1 - 1e-9), limit * self.problem.capacities * (1 + 1e-9)
                ),
            ],
            bounds=Bounds(0, 1),
            integrality=np.ones(owner.size, np.int64),
            options={"time_limit": 20},
        )
        assert result.x is not None
        return round(result.fun)


def member(
    id_: str,
    topics: list[str],
    owned: dict[str, list[int]] | None = None,
    capacity: float = 1.0,
    since: int = 5,
) -> Member:
    """Return a member of generation 5."""
    sent = encode_load_data(MemberLoadData(since, capacity))
    return Member(id_, topics, owned=owned or {}, generation=since if owned else -1, user_data=sent)


class EagerLoadAware(LoadAwareAssignor):
    """Rebalances eagerly, as a member does that offers an eager assignor beside `load-aware`."""

    protocols = frozenset({RebalanceProtocol.EAGER})


def eagerly(group: Group, *events: Callable[[Group], Group], tolerance: float = 0.1) -> list[SimulatedEvent]:
    """Return the eager rebalances of a group, at the beginning and after each event."""
    capacities = {each.id: decode_load_data(each.user_data).capacity for each in group.members}

    def assignor(of_member: Member) -> EagerLoadAware:
        return EagerLoadAware(tolerance=tolerance, capacity=capacities.get(of_member.id, 1.0))

    members = [replace(each, user_data=None) for each in group.members]
    return simulate(Group(members, group.topics), assignor, events)


def settle(assignor: LoadAwareAssignor, group: Group) -> Group:
    """Return the group at rest: after at most two rebalances no member has to revoke a partition."""
    (played,) = simulate(group, assignor, max_rebalances=3)
    assert unassigned(played.group, played.assignment) == PartitionsByTopic()
    return played.group


def rejoined(group: Group, assignment: Assignment, generation: int) -> Group:
    """Return the group when all members have revoked what they must, and join again."""
    return Group(
        [
            Member(
                each.id,
                each.topics,
                owned=assignment[each.id],
                generation=generation,
                user_data=each.user_data,
            )
            for each in group.members
        ],
        group.topics,
    )


def some_weights(rng: random.Random, count: int, kind: str) -> list[float]:
    match kind:
        case "even":
            return [rng.uniform(1, 10) for _ in range(count)]
        case "skewed":
            return [rng.choice([1, 1, 1, 1, 10, 50]) * rng.uniform(0.8, 1.2) for _ in range(count)]
        case "heavy-tailed":
            return [rng.paretovariate(1.1) for _ in range(count)]
        case "with zeros":
            return [rng.choice([0, 0, 1, 5, rng.random() * 10]) for _ in range(count)]
        case _:
            return [rng.randint(1, 9) for _ in range(count)]


def fresh_group(rng: random.Random) -> Group:
    """Return a group without owned partitions: any weights, subscriptions and capacities."""
    names = [f"t{number}" for number in range(rng.randint(1, 5))]
    kind = rng.choice(["even", "skewed", "heavy-tailed", "with zeros", "integers"])
    sizes = [rng.choice([1, 2, 3, 5, 8]) for _ in names]
    topics = {
        name: Topic(size, weights=some_weights(rng, size, kind))
        for name, size in zip(names, sizes, strict=True)
    }
    is_equal, has_capacities = rng.random() < 0.4, rng.random() < 0.35
    members = [
        member(
            f"m{number}",
            names if is_equal else rng.sample(names, rng.randint(1, len(names))),
            capacity=rng.choice([0.5, 1, 1, 2, 4]) if has_capacities else 1,
        )
        for number in range(rng.randint(2, 6))
    ]
    return Group(members, topics)


def drifted(rng: random.Random, group: Group, deviation: float) -> Group:
    """Return the group with other weights, of which the logarithms have this standard deviation."""
    topics = {
        name: Topic(
            topic.partitions, weights=[weight * rng.lognormvariate(0, deviation) for weight in topic.weights]
        )
        for name, topic in group.topics.items()
        if topic.weights is not None
    }
    return Group(group.members, topics)


def owning_group(rng: random.Random) -> Group:
    """Return a group that was balanced, whose weights or members have changed; or any owners."""
    group = fresh_group(rng)
    if rng.random() < 0.2:
        return with_any_owners(rng, group)
    group = rejoined(group, LoadAwareAssignor().assign(group), 5)
    members = list(group.members)
    match rng.randrange(4):
        case 0 if len(members) > 1:
            members.pop(rng.randrange(len(members)))
        case 1:
            members.append(member("new", list(rng.choice(members).topics)))
        case _:
            pass
    return drifted(rng, Group(members, group.topics), rng.choice([0, 0.1, 0.3, 0.8]))


def with_any_owners(rng: random.Random, group: Group) -> Group:
    """Return the group with owners chosen at random."""
    owned: dict[str, dict[str, list[int]]] = {each.id: {} for each in group.members}
    for name, subscribers in group.subscribers().items():
        for partition in range(group.topics[name].partitions):
            owner = rng.choice([*subscribers, None])
            if owner is not None:
                owned[owner.id].setdefault(name, []).append(partition)
    members = [
        Member(each.id, each.topics, owned=owned[each.id], generation=5, user_data=each.user_data)
        for each in group.members
    ]
    return Group(members, group.topics)


class Load:
    """Helpers of the tests of assignment by load."""

    Oracle = Oracle
    member = staticmethod(member)
    settle = staticmethod(settle)
    eagerly = staticmethod(eagerly)
    rejoined = staticmethod(rejoined)
    drifted = staticmethod(drifted)
    fresh_group = staticmethod(fresh_group)
    owning_group = staticmethod(owning_group)


@pytest.fixture(scope="session")
def load() -> type[Load]:
    return Load
