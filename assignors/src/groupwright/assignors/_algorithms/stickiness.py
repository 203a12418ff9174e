"""Stickiness: the most balanced flow with the fewest rack mismatches and, of those, the fewest moves."""

from __future__ import annotations

import numpy as np

from groupwright.assignors._algorithms.balance import balance
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._algorithms.partition_classes import NO_ARC, PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import Int64Array

_MOVE = 1  # cost of a move
_UNLIMITED = 2**31
_MAX_PASSED_UNITS = 100  # missing units up to which `_fill_through_others` is tried


def best_flow(classes: PartitionClasses) -> Int64Array:
    """Return `(arcs,) int64`: the partitions of the class that each member is assigned.

    No flow has more even loads. Of the flows with these loads, none has fewer rack mismatches, and of those,
    none takes fewer partitions from members that own them.
    """
    sticky_flow = _StickyFlow(
        classes, np.zeros(classes.members, np.int64), np.zeros(classes.sizes.size, np.int64)
    )
    if sticky_flow.fill():
        # All loads are the average, rounded up or down, so all members are one block (see `Balance`).
        return sticky_flow.flow
    without_racks = classes.without_racks()
    balanced = balance(without_racks)
    if without_racks is classes and (classes.rack_match.all() and (balanced.flow >= classes.owned).all()):
        return balanced.flow  # all racks match, and no owned partition moves
    if balanced.block_of.any():  # otherwise all members are one block, and the flow so far is a valid start
        sticky_flow = _StickyFlow(classes, balanced.block_of, balanced.class_block[classes.subscriber_set])
    if not sticky_flow.fill():
        sticky_flow.solve()
    return sticky_flow.flow


class _StickyFlow:
    """Starts from the owned partitions, and moves as few as the loads and racks require.

    A unit is one partition of a class, or one dummy unit. Missing units are assigned to no member yet; excess
    units are those above the largest load of the member's block.

    A class is assigned within its block only (see `Balance`). All members of a block end with as many units
    as its largest load: partitions, and at most one dummy unit. There are exactly enough dummy units, the
    dummy supply of an unbalanced transportation problem.

    Initially each member has the partitions that it owns and whose racks it matches, at no cost. `fill` then
    assigns most of the missing and excess units to rack-matching members with room, for one move each; no
    path is cheaper, so the flow stays optimal. `solve` assigns the remainder by a min-cost flow, in which a
    rack mismatch costs more than all moves together. It starts from potentials at which the flow so far is
    optimal, so its result is optimal too.

    Attributes:
        flow: `(arcs,) int64`: the partitions of the class that the member is assigned so far.
    """

    def __init__(self, classes: PartitionClasses, block_of: Int64Array, class_block: Int64Array) -> None:
        """Start with the owned partitions; see `Balance` for the blocks."""
        self._classes = classes
        self._block_of = block_of
        self._class_block = class_block
        self._allowed = class_block[classes.class_of_arc] == block_of[classes.member_of_arc]
        self._open = self._allowed & classes.rack_match
        self.flow = np.where(self._open, classes.owned, 0)
        self._left = classes.sizes - classes.totals(self.flow)  # the missing units of each class
        total = np.bincount(class_block, classes.sizes, int(block_of.max()) + 1).astype(np.int64)
        members = np.bincount(block_of)
        largest_load = -(-total // members)
        self._room = largest_load[block_of] - classes.loads(self.flow)
        self._had_room = self._room > 0
        self._dummies = self._assign_dummy_units(members * largest_load - total)
        self._total_room = int(self._room.clip(0).sum())

    def _assign_dummy_units(self, dummies: Int64Array) -> Int64Array:
        """Assign each block's dummy units to the members with most room; return `(members,) int64` of 0, 1.

        Args:
            dummies: `(blocks,) int64`: the number of dummy units of each block.
        """
        order = np.lexsort((-self._room, self._block_of))
        firsts = np.searchsorted(self._block_of[order], np.arange(dummies.size))
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size) - firsts[self._block_of[order]]
        gets_dummy = (rank < dummies[self._block_of]) & self._had_room
        self._room -= gets_dummy
        self._dummies_left = dummies - np.bincount(self._block_of, gets_dummy).astype(np.int64)
        self._dummy_potential = np.where(self._dummies_left == 0, _MOVE, 0)
        return gets_dummy.astype(np.int64)

    def fill(self) -> bool:
        """Move missing and excess units to members with room; return whether none are left.

        Each pass allows a member more units of a class, so that classes are spread where possible.
        """
        degrees = np.diff(self._classes.starts)
        by_degree = np.argsort(degrees, kind="stable").tolist()
        shares = (-(-self._classes.sizes // degrees)).tolist()
        for times in (1, 2, 4, _UNLIMITED):
            can_release = bool((self._room < 0).any() or self._dummies_left.any())
            for partition_class in by_degree:
                if self._total_room and (can_release or self._left[partition_class]):
                    self._fill_class(
                        partition_class, times * shares[partition_class], can_release=can_release
                    )
        if 0 < self._total_room <= _MAX_PASSED_UNITS:
            self._fill_through_others()
        return not self._room.any()

    def _fill_class(self, partition_class: int, limit: int, *, can_release: bool) -> None:
        """Move units of one class to members with room.

        Args:
            partition_class: The class.
            limit: The number of units of the class that a member may have afterwards.
            can_release: Whether members may have excess units, or dummy units are left.
        """
        arcs = slice(self._classes.starts[partition_class], self._classes.starts[partition_class + 1])
        members, flow = self._classes.member_of_arc[arcs], self.flow[arcs]
        room = self._room[members]
        takers = np.flatnonzero((room > 0) & self._open[arcs])
        if not takers.size:
            return
        supply = missing = int(self._left[partition_class])
        if can_release:
            excess = np.clip(-room, 0, flow)
            # A member without room can exchange one of its partitions for a dummy unit.
            can_take_dummy = np.flatnonzero((room == 0) & (flow > 0) & (self._dummies[members] == 0))
            can_take_dummy = can_take_dummy[: self._dummies_left[self._class_block[partition_class]]]
            supply += int(excess.sum()) + can_take_dummy.size
        if not supply:
            return
        room = room[takers]
        gained = water_fill(-room, min(supply, int(room.sum())))
        gained = np.minimum(gained, np.maximum(0, limit - flow[takers]))
        units = int(gained.sum())
        if units > missing:  # only if `can_release`
            released = _from_first(excess, units - missing)
            exchanged = can_take_dummy[: units - missing - int(released.sum())]
            self._room[members] += released
            self._dummies[members[exchanged]] = 1
            self._dummies_left[self._class_block[partition_class]] -= exchanged.size
            released[exchanged] = 1
            flow -= released
        self._left[partition_class] -= min(units, missing)
        self._room[members[takers]] -= gained
        self._total_room -= units
        flow[takers] += gained

    def _fill_through_others(self) -> None:
        """Send missing units to members without room, which pass units they do not own to one with room.

        This also costs one move per partition. It avoids the min-cost flow when few units are left.
        """
        classes = self._classes
        spare = np.flatnonzero((self.flow > classes.owned) & self._open)
        for taker in np.flatnonzero(self._room > 0).tolist():
            open_arcs = np.flatnonzero((classes.member_of_arc == taker) & self._open)
            taker_arc_of = np.full(classes.sizes.size, NO_ARC)
            taker_arc_of[classes.class_of_arc[open_arcs]] = open_arcs
            for partition_class in np.flatnonzero(self._left).tolist():
                arcs = np.arange(classes.starts[partition_class], classes.starts[partition_class + 1])
                arcs = arcs[self._open[arcs]]
                arc_to = np.full(classes.members, NO_ARC)
                arc_to[classes.member_of_arc[arcs]] = arcs
                admissible = spare[
                    (taker_arc_of[classes.class_of_arc[spare]] != NO_ARC)
                    & (arc_to[classes.member_of_arc[spare]] != NO_ARC)
                ]
                admissible = admissible[self.flow[admissible] > classes.owned[admissible]]
                passed = admissible[: min(self._left[partition_class], self._room[taker])]
                np.add.at(self.flow, arc_to[classes.member_of_arc[passed]], 1)
                np.add.at(self.flow, taker_arc_of[classes.class_of_arc[passed]], 1)
                self.flow[passed] -= 1
                self._left[partition_class] -= passed.size
                self._room[taker] -= passed.size
                self._total_room -= passed.size

    def solve(self) -> None:
        """Move the remaining units on the cheapest paths, which may lead through several members."""
        classes = self._classes
        arcs = np.flatnonzero(self._allowed)
        by_block = np.argsort(self._block_of, kind="stable")
        never = np.zeros(by_block.size, np.bool_)
        # The dummy units of a block are one more class. Each member owns one, since it costs no move, and its
        # arc is not open, so it has one at most.
        #
        # At these potentials no step has a negative reduced cost, so the flow so far is optimal: only members
        # that had room (`_MOVE`) have units beyond the owned ones, all with matching racks, and only the
        # others (0) lack owned units with matching racks. Where dummy units were left over at first (0), all
        # members that had room have one; elsewhere (`_MOVE`), only such members do.
        flow_network = MinCostFlow(
            Arcs(
                class_of_arc=np.concatenate(
                    [classes.class_of_arc[arcs], classes.sizes.size + self._block_of[by_block]]
                ),
                member_of_arc=np.concatenate([classes.member_of_arc[arcs], by_block]),
                flow=np.concatenate([self.flow[arcs], self._dummies[by_block]]),
                owned=np.concatenate([classes.owned[arcs], np.ones_like(by_block)]),
                rack_mismatch=np.concatenate([~classes.rack_match[arcs], never]),
                open=np.concatenate([np.ones(arcs.size, np.bool_), never]),
            ),
            left=np.concatenate([self._left, self._dummies_left]),
            excess=-self._room,
            move_cost=_MOVE,
            rack_mismatch_cost=int(classes.sizes.sum()) * _MOVE + 1,
            class_potential=np.concatenate([np.zeros_like(classes.sizes), self._dummy_potential]),
            member_potential=self._had_room * _MOVE,
            sink_potential=_MOVE,
        )
        flow_network.run()
        self.flow[arcs] = flow_network.flow()[: arcs.size]


def _from_first(amounts: Int64Array, units: int) -> Int64Array:
    """Return `(amounts,) int64`: this number of units in total, taken from the first amounts first."""
    released: Int64Array = np.clip(units - (np.cumsum(amounts) - amounts), 0, amounts)
    return released
