"""Moves: few partitions change their owners until every load is within its limit.

A heuristic: the moves are not guaranteed to be the fewest. Each step is the one that lowers the total excess
most per partition moved. Members that must be filled (raised to a lowest load) have a shortfall, which counts
as excess. Small groups are tried several times with perturbed choices; in large ones many partitions are
released and placed at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.load_placement import ROUNDING, SMALL_GROUP, Placement
from groupwright.assignors._model.arrays import BoolArray, Int64Array
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.weight_arrays import FloatArray

_FREE_STEP = 0.25  # price of a step that adds no move
_MAX_STEPS = 3_000
_MANY_MOVES = 100  # above this lower bound of the moves, partitions are released and placed at once

_NEARLY_ENOUGH = 0.3  # part of an excess that one move has to lower in a larger group

_TRIES = 32
_TRIED_PARTITIONS = 4_000  # in all tries together
_TRIED_EXCHANGES = 3_000  # comparisons of two members' partitions after which no further try begins
_THINNED_TO = 0.7  # part of the partitions that a further try chooses from
_ESCAPES = 6  # steps of a further try that may raise the excess

_MAX_TAKERS = 8  # members that a step chooses from when it fills one
_MAX_FILLING_CHOICES = 20_000  # partitions that it chooses from, of all these members together


class _Step(NamedTuple):
    """A change of owners, and its value.

    Attributes:
        value: The decrease of the total excess, per move.
        weight: The weight that changes its owner.
        changes: Pairs of a partition and its new owner.
    """

    value: float
    weight: float
    changes: tuple[tuple[int, int], ...]


class Filling(NamedTuple):
    """Members that must be filled.

    Attributes:
        members: `(members,) bool`: these members.
        level: The load over capacity that is enough.
    """

    members: BoolArray
    level: float


class Mover:
    """Moves partitions from members above the limit to members below it, and to members that must be filled.

    A partition whose previous owner is `UNASSIGNED` moves free of charge, and so does one that has left its
    previous owner already.

    Attributes:
        placement: The assignment in progress.
        previous_owner: `(partitions,) int32`: the member that owned each partition before; `UNASSIGNED` if
            none did, or if an earlier candidate has moved the partition already.
        limit: The load over capacity to come down to.
        filling: The members that must be filled, as far as single partitions allow; None for none.
    """

    def __init__(
        self,
        placement: Placement,
        previous_owner: Owners,
        limit: float,
        filling: Filling | None = None,
    ) -> None:
        """Start with a placement without unassigned partitions."""
        self.placement = placement
        self.previous_owner = previous_owner
        self.limit = limit
        self.filling = filling
        # The first try is deterministic; each further try perturbs its choices.
        self._random: random.Random | None = None
        self._is_filled = np.zeros(placement.loads.size, np.bool_)
        """`(members,) bool`: the members that no single partition fills further, in this try."""
        self._exchanged = 0
        """Number of pairs of members whose exchanges were compared, in all tries."""

    @property
    def cost(self) -> tuple[int, float]:
        """The number of partitions that have moved, and their weight."""
        is_moved = self.is_moved
        return int(np.count_nonzero(is_moved)), float(self.placement.problem.weights[is_moved].sum())

    @property
    def is_moved(self) -> BoolArray:
        """`(partitions,) bool`: the partitions that are not with their previous owner."""
        is_moved: BoolArray = (self.previous_owner != UNASSIGNED) & (
            self.placement.owner != self.previous_owner
        )
        return is_moved

    @property
    def room(self) -> FloatArray:
        """`(members,) float64`: the load that each member can take; negative above the limit."""
        return self.limit * (1 + ROUNDING) * self.placement.problem.capacities - self.placement.loads

    def run(self) -> bool:
        """Bring all loads within the limit, and fill members; return whether the former succeeded."""
        at_least = self._fewest_moves()
        if at_least > _MANY_MOVES:
            has_weight = self.placement.problem.weights > 0
            self._release_and_place(np.maximum(-self.room, 0.0), has_weight, np.inf)
        self._fill_at_once()
        start, best = self.placement.owner.copy(), None
        for number in range(max(1, min(_TRIES, _TRIED_PARTITIONS // start.size))):
            if number and self._exchanged > _TRIED_EXCHANGES:
                break
            self._random = random.Random(number) if number else None  # noqa: S311 - reproducible, not secret
            self.placement.reset(start)
            if not self._come_within():
                continue
            self.return_to_owner()
            if best is None or self.cost < best[0]:
                best = self.cost, self.placement.owner.copy()
            if best[0][0] <= at_least:
                break
        self.placement.reset(start if best is None else best[1])
        return best is not None

    def return_to_owner(self) -> None:
        """Return moved partitions, heaviest first, to their previous owners if these have room for them.

        Members that must be filled keep what they need.
        """
        placement = self.placement
        spare = np.full(placement.loads.size, np.inf)
        if self.filling is not None:
            enough = self.filling.level * placement.problem.capacities
            spare = np.where(self.filling.members, placement.loads - enough, np.inf)
        weights = placement.problem.weights
        moved = np.flatnonzero(self.is_moved)
        for partition in moved[np.argsort(-weights[moved], kind="stable")].tolist():
            previous_owner = int(self.previous_owner[partition])
            holder = int(placement.owner[partition])
            weight = weights[partition]
            has_room = self.room[previous_owner] >= weight and spare[holder] >= weight
            if has_room and placement.takers(holder)[previous_owner]:
                placement.change(partition, previous_owner)
                spare[holder] -= weight

    def _release_and_place(self, excess: FloatArray, movable: BoolArray, total: float) -> None:
        """Release partitions, the heaviest first, and place them again.

        Args:
            excess: `(members,) float64`: the weight that each member may lose.
            movable: `(partitions,) bool`: the partitions that may be released.
            total: The weight that all members together may lose.
        """
        placement, weights = self.placement, self.placement.problem.weights
        left = excess.tolist()
        items = np.flatnonzero(movable & (weights <= excess[placement.owner]))
        items = items[np.argsort(-weights[items], kind="stable")]
        released = []
        columns = items.tolist(), placement.owner[items].tolist(), weights[items].tolist()
        for item, owner, weight in zip(*columns, strict=True):
            if weight <= left[owner] and weight <= total:
                released.append(item)
                left[owner] -= weight
                total -= weight
        owners = placement.owner.copy()
        owners[released] = UNASSIGNED
        placement.reset(owners)
        placement.place(np.array(sorted(released), np.int64))

    def _fewest_moves(self) -> int:
        """Return a lower bound of the moves: those that the members above the limit cannot avoid."""
        moves = 0
        for member in np.flatnonzero(self.room < 0).tolist():
            items = self.placement.items(member)
            if (self.previous_owner[items] == member).all():
                heaviest = np.sort(self.placement.problem.weights[items])[::-1]
                moves += int(np.searchsorted(np.cumsum(heaviest), -self.room[member])) + 1
        return moves

    def _come_within(self) -> bool:
        """Take the best step until all loads are within the limit, then fill members.

        Returns:
            True if all loads are within the limit.
        """
        capacities = self.placement.problem.capacities
        escapes = 0 if self._random is None else _ESCAPES
        self._is_filled[:] = False
        for _ in range(_MAX_STEPS):
            room = self.room
            is_within = bool((room >= 0).all())
            if is_within:
                steps = self._filling_steps(room)
            else:
                steps = self._steps(int((room / capacities).argmin()), room)
            step = max(steps, default=None, key=self._key)
            if step is None:
                return is_within
            if not is_within and step.value <= self.limit * ROUNDING:
                if not escapes:
                    return False
                escapes -= 1
            for partition, member in step.changes:
                self.placement.change(partition, member)
        return bool((self.room >= 0).all())

    def _key(self, step: _Step) -> tuple[float, float]:
        """Return the sort key of a step: its perturbed value; of equal values, the lighter step is better."""
        return step.value * self._noise(), -step.weight

    def _noise(self) -> float:
        return 1.0 if self._random is None else 0.6 + 0.8 * self._random.random()

    def _steps(self, giver: int, room: FloatArray) -> Iterator[_Step]:
        """Yield the best moves, and the best exchanges with other members unless one move suffices."""
        placement = self.placement
        items = self._thinned(placement.sample(placement.items(giver)))
        if not items.size:
            return
        takers = placement.takers(giver)
        open_room = np.where(takers, room, -np.inf)
        open_room[giver] = -np.inf
        suffices = False
        enough = 1 - ROUNDING if self.previous_owner.size <= SMALL_GROUP else _NEARLY_ENOUGH
        previous_owners = self.previous_owner[items]
        can_return = (previous_owners != UNASSIGNED) & (previous_owners != giver)
        can_return &= open_room[previous_owners] > -np.inf
        to, to_room = placement.most_room(items, open_room)
        previous_owners = previous_owners[can_return].astype(np.int64)
        returns = items[can_return], previous_owners, open_room[previous_owners]
        for moves in ((items, to, to_room), returns):
            step = self._best_move(giver, *moves)
            if step is not None:
                yield step
                suffices |= step.value >= -room[giver] * enough
        if not suffices:
            partners = np.argsort(-room, kind="stable")[: placement.partner_count()]
            for partner in partners.tolist():
                if partner != giver:
                    self._exchanged += 1
                    yield from self._exchanges(giver, items, partner, open_room)

    # --- Filling -------------------------------------------------------------------------------------

    def _shortfalls(self) -> FloatArray:
        """Return `(members,) float64`: the load that members to be filled lack; 0 for the others."""
        placement = self.placement
        if self.filling is None:
            return np.zeros(placement.loads.size)
        shortfall = self.filling.level * placement.problem.capacities - placement.loads
        return np.where(self.filling.members, np.maximum(0.0, shortfall), 0.0)

    def _fill_at_once(self) -> None:
        """Fill members from those that stay at the same level, if that takes many moves."""
        placement, problem = self.placement, self.placement.problem
        total = float(self._shortfalls().sum())
        if self.filling is None or not total:
            return
        heaviest = np.sort(problem.weights)[::-1]
        if np.searchsorted(np.cumsum(heaviest), total) < _MANY_MOVES:
            return
        can_fill = np.count_nonzero(problem.subscribes[:, self.filling.members], axis=1) > 0
        movable = can_fill[problem.set_of] & (problem.weights > 0)
        excess = placement.loads - self.filling.level * problem.capacities
        self._release_and_place(excess, movable, total)

    def _filling_steps(self, room: FloatArray) -> Iterator[_Step]:
        """Yield the best move to each of the members that must be filled, the least loaded first.

        While members are filled, givers lose load, so a member without a possible move has none later.
        """
        if self.filling is None:
            return
        placement = self.placement
        takers = np.flatnonzero((self._shortfalls() > 0) & ~self._is_filled)
        levels = placement.loads[takers] / placement.problem.capacities[takers]
        left = max(1, min(_MAX_TAKERS, _MAX_FILLING_CHOICES // placement.owner.size))
        for taker in takers[np.argsort(levels, kind="stable")].tolist():
            step = self._best_filling(taker, room, self.filling)
            if step is None:
                self._is_filled[taker] = True
                continue
            yield step
            left -= 1
            if not left:
                return

    def _best_filling(self, taker: int, room: FloatArray, filling: Filling) -> _Step | None:
        """Return the best move to a member, of those that lower the larger of the two loads.

        A member that has load already takes more only from members that stay at the level themselves.
        """
        placement, problem = self.placement, self.placement.problem
        weights, owner = problem.weights, placement.owner
        levels = placement.loads / problem.capacities
        after = levels[taker] + weights / problem.capacities[taker]
        can = (weights > 0) & (weights <= room[taker]) & problem.subscribes[problem.set_of, taker]
        can &= (owner != taker) & (placement.loads[owner] > weights * (1 + ROUNDING))
        can &= after < levels[owner] * (1 - ROUNDING)
        if levels[taker] > filling.level * ROUNDING:
            can &= (placement.loads[owner] - weights) / problem.capacities[owner] >= filling.level
        items = np.flatnonzero(can)
        if not items.size:
            return None
        to = np.full(items.size, taker)
        givers = owner[items].astype(np.int64)
        value = self._relief(givers, -weights[items]) + self._relief(to, weights[items])
        value /= self._prices(items, to)
        if self._random is not None:
            value *= [self._noise() for _ in range(items.size)]
        while (most := value.max()) > 0:
            best = np.flatnonzero(value >= most * (1 - ROUNDING))
            item = int(items[best[weights[items[best]].argmin()]])
            if placement.takers(int(owner[item]))[taker]:
                return _Step(float(most), float(weights[item]), ((item, taker),))
            value[givers == owner[item]] = -np.inf
        return None

    def _thinned(self, items: Int64Array) -> Int64Array:
        """Return the partitions to choose from: all of them in the first try, a random part in the others."""
        if self._random is None:
            return items
        chance = self._random
        return items[[chance.random() < _THINNED_TO for _ in range(items.size)]]

    def _best_move(self, giver: int, items: Int64Array, to: Int64Array, to_room: FloatArray) -> _Step | None:
        if not items.size:
            return None
        weights = self.placement.problem.weights[items]
        can = to_room > -np.inf
        value = self._relief(giver, -weights) + self._relief(to, weights)
        value /= self._prices(items, to)
        value[~can] = -np.inf
        best = int(np.lexsort((weights, -value.round(12)))[0])
        if value[best] == -np.inf:
            return None
        return _Step(float(value[best]), float(weights[best]), ((int(items[best]), int(to[best])),))

    def _exchanges(
        self, giver: int, items: Int64Array, partner: int, open_room: FloatArray
    ) -> Iterator[_Step]:
        """Yield the best exchanges in which the partner takes a partition and passes on another.

        The partner's partition goes to the giver (a swap), or to a third member.
        """
        placement, problem = self.placement, self.placement.problem
        items = items[problem.subscribes[problem.set_of[items], partner]]
        passed = self._thinned(placement.sample(placement.items(partner)))
        if not (items.size and passed.size):
            return
        given, returned = problem.weights[items][:, None], problem.weights[passed]
        to_partner = self._moves(items, np.full(items.size, partner))[:, None]
        at_partner = self._relief(partner, given - returned)
        can = problem.subscribes[problem.set_of[passed], giver]
        price = np.maximum(to_partner + self._moves(passed, np.full(passed.size, giver)), _FREE_STEP)
        value = np.where(can, (at_partner + self._relief(giver, returned - given)) / price, -np.inf)
        yield from _best_of(value, given + returned, items, partner, passed, np.full(passed.size, giver))
        open_room = open_room.copy()
        open_room[partner] = -np.inf
        third, third_room = placement.most_room(passed, open_room)
        can = third_room > -np.inf
        if can.any():
            price = np.maximum(to_partner + self._moves(passed, third), _FREE_STEP)
            at_third = self._relief(third, returned)
            value = (at_partner + self._relief(giver, -given) + at_third) / price
            value = np.where(can, value, -np.inf)
            yield from _best_of(value, given + returned, items, partner, passed, third)

    def _relief(self, member: Int64Array | int, change: FloatArray) -> FloatArray:
        """Return the decrease of the excess and the shortfall of members when their loads change.

        Shortfalls count by their squares, so that a member does not fall as low as the one that it fills.
        """
        room = self.room[member]
        relief: FloatArray = np.maximum(0.0, -room) - np.maximum(0.0, change - room)
        if self.filling is not None:
            enough = self.filling.level * self.placement.problem.capacities[member]
            shortfall = enough - self.placement.loads[member]
            relief += (np.maximum(0.0, shortfall) ** 2 - np.maximum(0.0, shortfall - change) ** 2) / enough
        return relief

    def _moves(self, partitions: Int64Array, to: Int64Array) -> Int64Array:
        """Return, by partition, the moves that these changes add: -1 for a return, else 0 or 1."""
        previous_owner, owner = self.previous_owner[partitions], self.placement.owner[partitions]
        had_owner = previous_owner != UNASSIGNED
        is_moved, was_moved = previous_owner != to, previous_owner != owner
        moves: Int64Array = (had_owner & is_moved).astype(np.int64) - (had_owner & was_moved)
        return moves

    def _prices(self, partitions: Int64Array, to: Int64Array) -> FloatArray:
        """Return the moves that these changes add, by which values are divided; at least `_FREE_STEP`."""
        return np.maximum(self._moves(partitions, to), _FREE_STEP)


def _best_of(
    value: FloatArray, weight: FloatArray, items: Int64Array, partner: int, passed: Int64Array, to: Int64Array
) -> Iterator[_Step]:
    row, column = divmod(int(value.argmax()), passed.size)
    if value[row, column] > -np.inf:
        changes = (int(items[row]), partner), (int(passed[column]), int(to[column]))
        yield _Step(float(value[row, column]), float(weight[row, column]), changes)
