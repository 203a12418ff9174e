"""Placement of weighted partitions: largest first onto the lowest load, then steps that lower the peak.

The peak is the largest load over capacity. A step moves one partition off the busiest member, swaps one for
a lighter one, or passes one on through a third member.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heapreplace
from typing import NamedTuple

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.load_problem import LoadProblem
from groupwright.assignors._model.arrays import BoolArray, Int64Array
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.weight_arrays import FloatArray

ROUNDING = 1e-9
"""Relative difference of loads that counts as none."""

_PAIR = 2
_MAX_ITEMS = 200  # partitions of one member that a step chooses from
SMALL_GROUP = 1_000
"""Partitions of a group in which the best step is taken, and not the first that is good enough."""

_FEW_ITEMS = 8  # up to which a step chooses from all, including interchangeable ones
_MAX_PARTNERS = 12  # members that a step tries as partners of the busiest


class CountLimits(NamedTuple):
    """Limits of the members' numbers of partitions: `max_skew`.

    Attributes:
        base: `(members,) int64`: the average number of partitions in each member's block, rounded down (see
            `Balance`): the number in the most even assignment, or one less. The skew is that of the
            differences from it.
        max_skew: The largest allowed difference between two members' numbers.
    """

    base: Int64Array
    max_skew: int


class Step(NamedTuple):
    """One or two partitions that change their owners.

    Attributes:
        peak: The largest load over capacity of the members involved, afterwards.
        changes: Pairs of a partition and its new owner.
    """

    peak: float
    changes: tuple[tuple[int, int], ...]


class Placement:
    """An assignment in progress.

    Attributes:
        problem: The problem.
        owner: `(partitions,) int32`: the owner of each partition, or `UNASSIGNED`.
        loads: `(members,) float64`: the weight of each member's partitions.
        counts: `(members,) int64`: the number of each member's partitions.
        limits: The limits of the members' numbers of partitions; None for none.
    """

    def __init__(self, problem: LoadProblem, owner: Owners, limits: CountLimits | None = None) -> None:
        """Start with these owners."""
        self.problem = problem
        self.limits = limits
        self.reset(owner)

    def reset(self, owner: Owners) -> None:
        """Start again with these owners."""
        self.owner = owner.copy()
        has_owner = owner != UNASSIGNED
        of, members = owner[has_owner], self.problem.members
        self.loads: FloatArray = np.bincount(of, self.problem.weights[has_owner], members).astype(np.float64)
        self.counts: Int64Array = np.bincount(of, minlength=members)

    @property
    def peak(self) -> float:
        """The largest load over capacity."""
        return float((self.loads / self.problem.capacities).max())

    @property
    def skew(self) -> int:
        """The largest difference between two members' numbers of partitions; 0 without limits."""
        return 0 if self.limits is None else int(np.ptp(self.counts - self.limits.base))

    @property
    def is_within_skew(self) -> bool:
        """True if the numbers of partitions are within their limits."""
        return self.limits is None or self.skew <= self.limits.max_skew

    def items(self, member: int, movable: BoolArray | None = None) -> Int64Array:
        """Return the partitions of a member, ascending; with `movable`, those of them that may move."""
        is_item = self.owner == member
        return np.flatnonzero(is_item if movable is None else is_item & movable)

    def change(self, partition: int, member: int) -> None:
        """Give a partition to another member."""
        weight, before = self.problem.weights[partition], self.owner[partition]
        if before != UNASSIGNED:
            self.loads[before] -= weight
            self.counts[before] -= 1
        self.owner[partition] = member
        self.loads[member] += weight
        self.counts[member] += 1

    # --- Placing -------------------------------------------------------------------------------------

    def place(self, partitions: Int64Array, preference: Int64Array | None = None) -> None:
        """Place partitions without an owner: the heaviest first, where the load over capacity is then least.

        Of equal weights, those with the fewest subscribers come first. Partitions without weight come last,
        and go where the number of partitions over capacity is then least.

        Args:
            partitions: The partitions.
            preference: `(members,) int64`: all members; of members that would have the same load, the first
                here is chosen. By default, those whose subscribed topics have the least weight come first.
        """
        if preference is None:
            preference = self.problem.least_flexible_first
        weights, sets = self.problem.weights[partitions], self.problem.set_of[partitions]
        order = np.lexsort((self.problem.subscriber_counts[sets], -weights))
        heavy = int(np.count_nonzero(weights))
        weighted, weightless = partitions[order[:heavy]], partitions[order[heavy:]]
        self._place(weighted, self.problem.weights[weighted], self.loads, preference)
        self._place(weightless, np.ones(weightless.size), self.counts.astype(np.float64), preference)
        self.reset(self.owner)  # sums in the order of partitions, whatever the order of the placing

    def _place(
        self, partitions: Int64Array, amounts: FloatArray, levels: FloatArray, preference: Int64Array
    ) -> None:
        problem = self.problem
        if not partitions.size:
            return
        levels = levels[preference]
        if problem.has_equal_subscriptions and problem.has_equal_capacities:
            self.owner[partitions] = preference[_lowest_first(amounts, levels)]
            return
        not_subscribed = np.where(problem.subscribes[:, preference], 0.0, np.inf)
        after, capacities, chosen = np.empty_like(levels), problem.capacities[preference], []
        is_equal = problem.has_equal_capacities
        sets = problem.set_of[partitions].tolist()
        for amount, subscriber_set in zip(amounts.tolist(), sets, strict=True):
            if is_equal:
                np.add(levels, not_subscribed[subscriber_set], out=after)
            else:
                np.add(levels, amount, out=after)
                after /= capacities
                after += not_subscribed[subscriber_set]
            member = after.argmin()
            levels[member] += amount
            chosen.append(member)
        self.owner[partitions] = preference[chosen]

    # --- Improving -----------------------------------------------------------------------------------

    def improve(self, target: float, movable: BoolArray | None = None) -> None:
        """Lower the peak to the target, or until no step lowers it.

        Args:
            target: The load over capacity that is low enough.
            movable: `(partitions,) bool`: the partitions that may move; None for all.
        """
        for _ in range(4 * self.problem.members + 100):
            busiest = int((self.loads / self.problem.capacities).argmax())
            peak = self.loads[busiest] / self.problem.capacities[busiest]
            if peak <= target:
                return
            step = min(self._steps(busiest, peak, target, movable), default=None, key=_peak_of)
            if step is None or step.peak >= peak * (1 - ROUNDING):
                return
            for partition, member in step.changes:
                self.change(partition, member)

    def _steps(self, busiest: int, peak: float, target: float, movable: BoolArray | None) -> Iterator[Step]:
        """Yield the best move, and the best exchanges with other members, until one lowers it enough."""
        items = self.sample(self.items(busiest, movable))
        if not items.size:
            return
        move = self._best_move(busiest, items, peak)
        if move is not None:
            yield move
            if move.peak <= target:
                return
        enough = target if self.owner.size <= SMALL_GROUP else (peak + target) / 2
        spare = peak * self.problem.capacities - self.loads
        partners = np.argsort(-spare, kind="stable")
        for partner in partners[: self.partner_count()].tolist():
            if partner != busiest:
                for exchange in self._exchanges(busiest, items, partner, movable):
                    yield exchange
                    if exchange.peak <= enough:
                        return

    def partner_count(self) -> int:
        """The number of members that a step tries as partners: all of a small group."""
        return max(_MAX_PARTNERS, min(self.problem.members, 20_000 // self.owner.size))

    def sample(self, items: Int64Array) -> Int64Array:
        """Return the partitions with weight that a step chooses from.

        Of more than a few, it is one of each weight and subscriber set, and `_MAX_ITEMS` at most, from the
        heaviest to the lightest.
        """
        items = items[self.problem.weights[items] > 0]
        if items.size <= _FEW_ITEMS:
            return items
        weights, sets = self.problem.weights[items], self.problem.set_of[items]
        order = np.lexsort((sets, -weights))
        weights, sets = weights[order], sets[order]
        is_new = np.append(True, (weights[1:] != weights[:-1]) | (sets[1:] != sets[:-1]))
        items = items[order[is_new]]
        if items.size > _MAX_ITEMS:
            items = items[np.linspace(0, items.size - 1, _MAX_ITEMS).astype(np.int64)]
        return items

    def takers(self, giver: int) -> BoolArray:
        """Return `(members,) bool`: the members that may take over a partition of the giver."""
        if self.limits is None:
            return np.ones(self.counts.size, np.bool_)
        counts = self.counts - self.limits.base
        counts[giver] -= 1
        fewest = counts.min()
        can_take: BoolArray = counts + 1 - fewest <= self.limits.max_skew
        return can_take if counts.max() - fewest <= self.limits.max_skew else np.zeros_like(can_take)

    def most_room(self, items: Int64Array, spare: FloatArray) -> tuple[Int64Array, FloatArray]:
        """Return, for each partition, the subscriber with the most spare load, and that load.

        Args:
            items: The partitions.
            spare: `(members,) float64`: the load that each member can take; -inf for excluded members.
        """
        sets, index = np.unique(self.problem.set_of[items], return_inverse=True)
        of_sets = np.where(self.problem.subscribes[sets], spare, -np.inf)
        best = of_sets.argmax(axis=1)
        return best[index], of_sets[np.arange(sets.size), best][index]

    def _best_move(self, busiest: int, items: Int64Array, peak: float) -> Step | None:
        capacities, weights = self.problem.capacities, self.problem.weights[items]
        spare = np.where(self.takers(busiest), peak * capacities - self.loads, -np.inf)
        spare[busiest] = -np.inf
        to, room = self.most_room(items, spare)
        after = np.maximum(
            (self.loads[busiest] - weights) / capacities[busiest], (self.loads[to] + weights) / capacities[to]
        )
        after[room == -np.inf] = np.inf
        best = int(after.argmin())
        return (
            None if after[best] == np.inf else Step(float(after[best]), ((int(items[best]), int(to[best])),))
        )

    def _exchanges(
        self, busiest: int, items: Int64Array, partner: int, movable: BoolArray | None
    ) -> Iterator[Step]:
        """Yield the best exchanges in which the partner takes a partition and passes on another.

        The partner's partition goes to the busiest member (a swap), or to a third.
        """
        problem = self.problem
        capacities, loads = problem.capacities, self.loads
        items = items[problem.subscribes[problem.set_of[items], partner]]
        passed = self.sample(self.items(partner, movable))
        if not (items.size and passed.size):
            return
        given, returned = problem.weights[items][:, None], problem.weights[passed]
        at_partner = (loads[partner] + given - returned) / capacities[partner]
        at_busiest = (loads[busiest] - given + returned) / capacities[busiest]
        after = np.maximum(at_partner, at_busiest)
        after[:, ~problem.subscribes[problem.set_of[passed], busiest]] = np.inf
        yield from _best_of(after, items, partner, passed, np.full(passed.size, busiest))
        if problem.members > _PAIR:
            spare = np.where(self.takers(busiest), -loads / capacities, -np.inf)
            spare[[busiest, partner]] = -np.inf
            third, room = self.most_room(passed, spare)
            at_third = np.where(room == -np.inf, np.inf, (loads[third] + returned) / capacities[third])
            at_busiest = (loads[busiest] - given) / capacities[busiest]
            yield from _best_of(
                np.maximum(np.maximum(at_partner, at_busiest), at_third), items, partner, passed, third
            )


def _peak_of(step: Step) -> float:
    return step.peak


def _best_of(
    after: FloatArray, items: Int64Array, partner: int, passed: Int64Array, to: Int64Array
) -> Iterator[Step]:
    row, column = divmod(int(after.argmin()), passed.size)
    if after[row, column] < np.inf:
        changes = (int(items[row]), partner), (int(passed[column]), int(to[column]))
        yield Step(float(after[row, column]), changes)


def _lowest_first(amounts: FloatArray, levels: FloatArray) -> list[int]:
    """Return the member with the lowest level for each amount in turn, which is then added to it."""
    heap = list(zip(levels.tolist(), range(levels.size), strict=True))
    heapify(heap)
    chosen = []
    for amount in amounts.tolist():
        level, member = heap[0]
        heapreplace(heap, (level + amount, member))
        chosen.append(member)
    return chosen
