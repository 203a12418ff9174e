"""How many partitions of which row each member gets: racks first, then as few moves as can be."""

import numpy as np

from groupwright.assignors._algorithms.balance import balance
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._algorithms.partition_classes import NO_ARC, PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import Int64Array

_MOVE = 1
_ANY = 2**31
_FEW = 100


def best_flow(classes: PartitionClasses) -> Int64Array:
    """Return, for each arc, how many of the row's partitions the member gets.

    No flow has more even loads; of those with such loads, none has more partitions with near members; and of
    those, none takes fewer partitions from members that own them.
    """
    sticky_flow = _StickyFlow(
        classes, np.zeros(classes.members, np.int64), np.zeros(classes.sizes.size, np.int64)
    )
    if sticky_flow.fill():
        return (
            sticky_flow.flow
        )  # all have the average load, so that nothing is more even, and there is one block
    plain = classes.without_racks()
    even = balance(plain)
    if plain is classes and (classes.rack_match.all() and (even.flow >= classes.owned).all()):
        return even.flow
    if even.block_of.any():
        sticky_flow = _StickyFlow(classes, even.block_of, even.class_block[classes.subscriber_set])
    if not sticky_flow.fill():
        sticky_flow.solve()
    return sticky_flow.flow


class _StickyFlow:
    """Starts from what members own, and moves as little as the loads and the racks ask for.

    A row only goes to members of its block. All of them are to have as many units as the block's largest load:
    partitions, and one idle unit at most, of which there are just enough. To begin with each member has what it
    owns and is near to, which costs nothing. Of what is missing or too much, most can be given at once to near
    members with room, at the cost of one move a partition: no way is cheaper, so that nothing is lost by it. A
    network does what is left, from the potentials that say so, and proves that all of it costs the least. There a
    partition with a far member costs more than all moves together.

    Attributes:
        flow: For each arc, how many of the row's partitions the member has so far.
    """

    def __init__(self, classes: PartitionClasses, block_of: Int64Array, class_block: Int64Array) -> None:
        self._classes = classes
        self._block_of = block_of
        self._class_block = class_block
        self._allowed = class_block[classes.class_of_arc] == block_of[classes.member_of_arc]
        self._open = self._allowed & classes.rack_match
        self.flow = np.where(self._open, classes.owned, 0)
        self._left = classes.sizes - classes.totals(self.flow)
        total = np.bincount(class_block, classes.sizes, int(block_of.max()) + 1).astype(np.int64)
        members = np.bincount(block_of)
        most = -(-total // members)
        self._room = most[block_of] - classes.loads(self.flow)
        self._had_room = self._room > 0
        self._idle = self._place_idle_units(members * most - total)
        self._wanted = int(self._room.clip(0).sum())

    def _place_idle_units(self, idle: Int64Array) -> Int64Array:
        """Give the idle units of each block to those with the most room, and return who has one."""
        order = np.lexsort((-self._room, self._block_of))
        firsts = np.searchsorted(self._block_of[order], np.arange(idle.size))
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size) - firsts[self._block_of[order]]
        idles = (rank < idle[self._block_of]) & self._had_room
        self._room -= idles
        self._idle_left = idle - np.bincount(self._block_of, idles).astype(np.int64)
        self._idle_potential = np.where(self._idle_left == 0, _MOVE, 0)
        return idles.astype(np.int64)

    def fill(self) -> bool:
        """Give what is missing and what some have too much of to members with room; tell if nothing is left."""
        widths = np.diff(self._classes.starts)
        narrow_first = np.argsort(widths, kind="stable").tolist()
        shares = (-(-self._classes.sizes // widths)).tolist()
        for times in (1, 2, 4, _ANY):
            can_release = bool((self._room < 0).any() or self._idle_left.any())
            for partition_class in narrow_first:
                if self._wanted and (can_release or self._left[partition_class]):
                    self._fill_class(
                        partition_class, times * shares[partition_class], can_release=can_release
                    )
        if 0 < self._wanted <= _FEW:
            self._fill_through_others()
        return not self._room.any()

    def _fill_class(self, partition_class: int, most: int, *, can_release: bool) -> None:
        """Give units of one row to members with room.

        Args:
            partition_class: The row.
            most: How many units of the row a member may come to have by this.
            can_release: Whether there may be members with too much, or idle units left.
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
            can_rest = np.flatnonzero((room == 0) & (flow > 0) & (self._idle[members] == 0))
            can_rest = can_rest[: self._idle_left[self._class_block[partition_class]]]
            supply += int(excess.sum()) + can_rest.size
        if not supply:
            return
        room = room[takers]
        gained = water_fill(-room, min(supply, int(room.sum())))
        gained = np.minimum(gained, np.maximum(0, most - flow[takers]))
        units = int(gained.sum())
        if units > missing:
            released = _from_first(excess, units - missing)
            rest = can_rest[: units - missing - int(released.sum())]
            self._room[members] += released
            self._idle[members[rest]] = 1
            self._idle_left[self._class_block[partition_class]] -= rest.size
            released[rest] = 1
            flow -= released
        self._left[partition_class] -= min(units, missing)
        self._room[members[takers]] -= gained
        self._wanted -= units
        flow[takers] += gained

    def _fill_through_others(self) -> None:
        """Give what is missing to members without room that pass on what they do not own to one with room.

        That costs one move a partition too. It saves the network where a few are left.
        """
        classes = self._classes
        spare = np.flatnonzero((self.flow > classes.owned) & self._open)
        for taker in np.flatnonzero(self._room > 0).tolist():
            rack_match = np.flatnonzero((classes.member_of_arc == taker) & self._open)
            arc_of = np.full(classes.sizes.size, NO_ARC)
            arc_of[classes.class_of_arc[rack_match]] = rack_match
            for partition_class in np.flatnonzero(self._left).tolist():
                arcs = np.arange(classes.starts[partition_class], classes.starts[partition_class + 1])
                arcs = arcs[self._open[arcs]]
                way_to = np.full(classes.members, NO_ARC)
                way_to[classes.member_of_arc[arcs]] = arcs
                admissible = spare[
                    (arc_of[classes.class_of_arc[spare]] != NO_ARC)
                    & (way_to[classes.member_of_arc[spare]] != NO_ARC)
                ]
                admissible = admissible[self.flow[admissible] > classes.owned[admissible]]
                passed = admissible[: min(self._left[partition_class], self._room[taker])]
                np.add.at(self.flow, way_to[classes.member_of_arc[passed]], 1)
                np.add.at(self.flow, arc_of[classes.class_of_arc[passed]], 1)
                self.flow[passed] -= 1
                self._left[partition_class] -= passed.size
                self._room[taker] -= passed.size
                self._wanted -= passed.size

    def solve(self) -> None:
        """Give what is left on the cheapest ways, which may lead over several members."""
        classes = self._classes
        arcs = np.flatnonzero(self._allowed)
        idle_members = np.argsort(self._block_of, kind="stable")
        yes, no = np.ones(arcs.size, np.bool_), np.zeros(idle_members.size, np.bool_)
        flow_network = MinCostFlow(
            Arcs(
                class_of_arc=np.concatenate(
                    [classes.class_of_arc[arcs], classes.sizes.size + self._block_of[idle_members]]
                ),
                member_of_arc=np.concatenate([classes.member_of_arc[arcs], idle_members]),
                flow=np.concatenate([self.flow[arcs], self._idle[idle_members]]),
                owned=np.concatenate([classes.owned[arcs], ~no]),
                rack_mismatch=np.concatenate([~classes.rack_match[arcs], no]),
                open=np.concatenate([yes, no]),
            ),
            left=np.concatenate([self._left, self._idle_left]),
            excess=-self._room,
            move_cost=_MOVE,
            rack_mismatch_cost=int(classes.sizes.sum()) * _MOVE + 1,
            class_potential=np.concatenate([np.zeros_like(classes.sizes), self._idle_potential]),
            member_potential=self._had_room * _MOVE,
            sink_potential=_MOVE,
        )
        flow_network.run()
        self.flow[arcs] = flow_network.flow()[: arcs.size]


def _from_first(amounts: Int64Array, units: int) -> Int64Array:
    """Return so many units of the amounts, of the first ones all that they have."""
    taken: Int64Array = np.clip(units - (np.cumsum(amounts) - amounts), 0, amounts)
    return taken
