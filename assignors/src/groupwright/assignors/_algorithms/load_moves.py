"""Moves: the fewest partitions that change their owners until every load is within its limit.

A heuristic. Each step is the one that lowers the total excess most per partition moved. Small groups are
tried several times with perturbed choices; in large ones many partitions are released and placed at once.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from groupwright.assignors._algorithms.claims import Owners
from groupwright.assignors._algorithms.load_placement import ROUNDING, SMALL_GROUP, Placement
from groupwright.assignors._model.arrays import BoolArray, Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED
from groupwright.assignors._model.weight_arrays import FloatArray

_FREE_STEP = 0.25  # cost of a step without a move
_MAX_STEPS = 3_000
_MANY_MOVES = 100  # needed at least, for partitions to be released and placed at once

_NEARLY_ENOUGH = 0.3  # part of an excess that one move has to lower in a larger group

_TRIES = 32
_TRIED_PARTITIONS = 4_000  # in all tries together
_THINNED_TO = 0.7  # part of the partitions that a further try chooses from
_ESCAPES = 6  # steps of a further try that may raise the excess


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


class Mover:
    """Moves partitions from members above the limit to members below it.

    A partition whose home is `UNASSIGNED` moves free of charge, and so does one that has left its home.

    Attributes:
        placement: The assignment in progress.
        home: `(partitions,) int32`: the member that each partition is taken from if it moves.
        limit: The load over capacity to come down to.
    """

    def __init__(self, placement: Placement, home: Owners, limit: float) -> None:
        """Start with a placement without unassigned partitions."""
        self.placement = placement
        self.home = home
        self.limit = limit
        self._chance: random.Random | None = None

    @property
    def cost(self) -> tuple[int, float]:
        """The number of partitions that have moved, and their weight."""
        is_moved = self.is_moved
        return int(np.count_nonzero(is_moved)), float(self.placement.problem.weights[is_moved].sum())

    @property
    def is_moved(self) -> BoolArray:
        """`(partitions,) bool`: the partitions that are not with their home."""
        is_moved: BoolArray = (self.home != UNASSIGNED) & (self.placement.owner != self.home)
        return is_moved

    @property
    def room(self) -> FloatArray:
        """`(members,) float64`: the load that each member can take; negative above the limit."""
        return self.limit * (1 + ROUNDING) * self.placement.problem.capacities - self.placement.loads

    def run(self) -> bool:
        """Bring all loads within the limit; return whether that succeeded."""
        at_least = self._fewest_moves()
        if at_least > _MANY_MOVES:
            has_weight = self.placement.problem.weights > 0
            self.release_and_place(np.maximum(-self.room, 0.0), has_weight, np.inf)
        start, best = self.placement.owner.copy(), None
        for number in range(max(1, min(_TRIES, _TRIED_PARTITIONS // start.size))):
            self._chance = random.Random(number) if number else None  # noqa: S311 - reproducible, not secret
            self.placement.reset(start)
            if not self._come_within():
                continue
            self.send_home()
            if best is None or self.cost < best[0]:
                best = self.cost, self.placement.owner.copy()
            if best[0][0] <= at_least:
                break
        self.placement.reset(start if best is None else best[1])
        return best is not None

    def send_home(self) -> None:
        """Return moved partitions, heaviest first, to homes that have room for them."""
        placement = self.placement
        weights = placement.problem.weights
        moved = np.flatnonzero(self.is_moved)
        for partition in moved[np.argsort(-weights[moved], kind="stable")].tolist():
            home, holder = int(self.home[partition]), int(placement.owner[partition])
            if self.room[home] >= weights[partition] and placement.takers(holder)[home]:
                placement.change(partition, home)

    def release_and_place(self, excess: FloatArray, movable: BoolArray, total: float) -> None:
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
            if (self.home[items] == member).all():
                heaviest = np.sort(self.placement.problem.weights[items])[::-1]
                moves += int(np.searchsorted(np.cumsum(heaviest), -self.room[member])) + 1
        return moves

    def _come_within(self) -> bool:
        """Take the best step until all loads are within the limit; return whether that succeeded."""
        capacities = self.placement.problem.capacities
        escapes = 0 if self._chance is None else _ESCAPES
        for _ in range(_MAX_STEPS):
            room = self.room
            if (room >= 0).all():
                return True
            steps = self._steps(int((room / capacities).argmin()), room)
            step = max(steps, default=None, key=self._key)
            if step is None:
                return False
            if step.value <= self.limit * ROUNDING:
                if not escapes:
                    return False
                escapes -= 1
            for partition, member in step.changes:
                self.placement.change(partition, member)
        return False

    def _key(self, step: _Step) -> tuple[float, float]:
        noise = 1.0 if self._chance is None else 0.6 + 0.8 * self._chance.random()
        return step.value * noise, -step.weight

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
        enough = 1 - ROUNDING if self.home.size <= SMALL_GROUP else _NEARLY_ENOUGH
        homes = self.home[items]
        is_away = (homes != UNASSIGNED) & (homes != giver)
        is_away &= open_room[homes] > -np.inf
        to, to_room = placement.most_room(items, open_room)
        homes = homes[is_away].astype(np.int64)
        for moves in ((items, to, to_room), (items[is_away], homes, open_room[homes])):
            step = self._best_move(giver, *moves)
            if step is not None:
                yield step
                suffices |= step.value >= -room[giver] * enough
        if not suffices:
            partners = np.argsort(-room, kind="stable")[: placement.partner_count()]
            for partner in partners.tolist():
                if partner != giver:
                    yield from self._exchanges(giver, items, partner, room, open_room)

    def _thinned(self, items: Int64Array) -> Int64Array:
        """Return the partitions to choose from: all of them in the first try, a random part in the others."""
        if self._chance is None:
            return items
        chance = self._chance
        return items[[chance.random() < _THINNED_TO for _ in range(items.size)]]

    def _best_move(self, giver: int, items: Int64Array, to: Int64Array, to_room: FloatArray) -> _Step | None:
        if not items.size:
            return None
        weights = self.placement.problem.weights[items]
        can = to_room > -np.inf
        value = _relief(self.room[giver], -weights) + _relief(np.where(can, to_room, 0.0), weights)
        value /= self._prices(items, to)
        value[~can] = -np.inf
        best = int(np.lexsort((weights, -value.round(12)))[0])
        if value[best] == -np.inf:
            return None
        return _Step(float(value[best]), float(weights[best]), ((int(items[best]), int(to[best])),))

    def _exchanges(
        self, giver: int, items: Int64Array, partner: int, room: FloatArray, open_room: FloatArray
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
        at_partner = _relief(room[partner], given - returned)
        can = problem.subscribes[problem.set_of[passed], giver]
        price = np.maximum(to_partner + self._moves(passed, np.full(passed.size, giver)), _FREE_STEP)
        value = np.where(can, (at_partner + _relief(room[giver], returned - given)) / price, -np.inf)
        yield from _best_of(value, given + returned, items, partner, passed, np.full(passed.size, giver))
        open_room = open_room.copy()
        open_room[partner] = -np.inf
        third, third_room = placement.most_room(passed, open_room)
        can = third_room > -np.inf
        if can.any():
            price = np.maximum(to_partner + self._moves(passed, third), _FREE_STEP)
            at_third = _relief(np.where(can, third_room, 0.0), returned)
            value = (at_partner + _relief(room[giver], -given) + at_third) / price
            value = np.where(can, value, -np.inf)
            yield from _best_of(value, given + returned, items, partner, passed, third)

    def _moves(self, partitions: Int64Array, to: Int64Array) -> Int64Array:
        """Return the moves that these changes add, by partition: 1, 0, or -1 for a return home."""
        home, owner = self.home[partitions], self.placement.owner[partitions]
        is_owned = home != UNASSIGNED
        moves: Int64Array = (is_owned & (home != to)).astype(np.int64) - (is_owned & (home != owner))
        return moves

    def _prices(self, partitions: Int64Array, to: Int64Array) -> FloatArray:
        return np.maximum(self._moves(partitions, to), _FREE_STEP)


def _relief(room: FloatArray | float, change: FloatArray) -> FloatArray:
    """Return the decrease of the excess of a member with this room when its load changes."""
    relief: FloatArray = np.maximum(0.0, np.negative(room)) - np.maximum(0.0, change - room)
    return relief


def _best_of(
    value: FloatArray, weight: FloatArray, items: Int64Array, partner: int, passed: Int64Array, to: Int64Array
) -> Iterator[_Step]:
    row, column = divmod(int(value.argmax()), passed.size)
    if value[row, column] > -np.inf:
        changes = (int(items[row]), partner), (int(passed[column]), int(to[column]))
        yield _Step(float(value[row, column]), float(weight[row, column]), changes)
