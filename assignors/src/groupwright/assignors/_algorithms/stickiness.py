"""How many partitions of which row each member gets: racks first, then as few moves as can be."""

import numpy as np

from groupwright.assignors._algorithms.balance import balance
from groupwright.assignors._algorithms.min_cost_flow import Arcs, Network
from groupwright.assignors._algorithms.partition_classes import NO_ARC, Ints, Rows
from groupwright.assignors._algorithms.water_fill import pour

_MOVE = 1
_ANY = 2**31
_FEW = 100


def best_flow(rows: Rows) -> Ints:
    """Return, for each arc, how many of the row's partitions the member gets.

    No flow has more even loads; of those with such loads, none has more partitions with near members; and of
    those, none takes fewer partitions from members that own them.
    """
    keeping = _Keeping(rows, np.zeros(rows.members, np.int64), np.zeros(rows.sizes.size, np.int64))
    if keeping.give():
        return keeping.flow  # all have the average load, so that nothing is more even, and there is one block
    plain = rows.without_racks()
    even = balance(plain)
    if plain is rows and (rows.near.all() and (even.flow >= rows.owned).all()):
        return even.flow
    if even.block_of.any():
        keeping = _Keeping(rows, even.block_of, even.row_block[rows.audience])
    if not keeping.give():
        keeping.solve()
    return keeping.flow


class _Keeping:
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

    def __init__(self, rows: Rows, block_of: Ints, row_block: Ints) -> None:
        self._rows = rows
        self._block_of = block_of
        self._row_block = row_block
        self._allowed = row_block[rows.row] == block_of[rows.member]
        self._open = self._allowed & rows.near
        self.flow = np.where(self._open, rows.owned, 0)
        self._left = rows.sizes - rows.totals(self.flow)
        total = np.bincount(row_block, rows.sizes, int(block_of.max()) + 1).astype(np.int64)
        members = np.bincount(block_of)
        most = -(-total // members)
        self._room = most[block_of] - rows.loads(self.flow)
        self._had_room = self._room > 0
        self._idle = self._rest(members * most - total)
        self._wanted = int(self._room.clip(0).sum())

    def _rest(self, idle: Ints) -> Ints:
        """Give the idle units of each block to those with the most room, and return who has one."""
        order = np.lexsort((-self._room, self._block_of))
        firsts = np.searchsorted(self._block_of[order], np.arange(idle.size))
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size) - firsts[self._block_of[order]]
        rests = (rank < idle[self._block_of]) & self._had_room
        self._room -= rests
        self._idle_left = idle - np.bincount(self._block_of, rests).astype(np.int64)
        self._idle_potential = np.where(self._idle_left == 0, _MOVE, 0)
        return rests.astype(np.int64)

    def give(self) -> bool:
        """Give what is missing and what some have too much of to members with room; tell if nothing is left."""
        widths = np.diff(self._rows.starts)
        narrow_first = np.argsort(widths, kind="stable").tolist()
        shares = (-(-self._rows.sizes // widths)).tolist()
        for times in (1, 2, 4, _ANY):
            can_release = bool((self._room < 0).any() or self._idle_left.any())
            for row in narrow_first:
                if self._wanted and (can_release or self._left[row]):
                    self._give(row, times * shares[row], can_release=can_release)
        if 0 < self._wanted <= _FEW:
            self._pass_on()
        return not self._room.any()

    def _give(self, row: int, most: int, *, can_release: bool) -> None:
        """Give units of one row to members with room.

        Args:
            row: The row.
            most: How many units of the row a member may come to have by this.
            can_release: Whether there may be members with too much, or idle units left.
        """
        arcs = slice(self._rows.starts[row], self._rows.starts[row + 1])
        members, flow = self._rows.member[arcs], self.flow[arcs]
        room = self._room[members]
        takers = np.flatnonzero((room > 0) & self._open[arcs])
        if not takers.size:
            return
        supply = missing = int(self._left[row])
        if can_release:
            excess = np.clip(-room, 0, flow)
            can_rest = np.flatnonzero((room == 0) & (flow > 0) & (self._idle[members] == 0))
            can_rest = can_rest[: self._idle_left[self._row_block[row]]]
            supply += int(excess.sum()) + can_rest.size
        if not supply:
            return
        room = room[takers]
        gained = pour(-room, min(supply, int(room.sum())))
        gained = np.minimum(gained, np.maximum(0, most - flow[takers]))
        units = int(gained.sum())
        if units > missing:
            released = _from_first(excess, units - missing)
            rest = can_rest[: units - missing - int(released.sum())]
            self._room[members] += released
            self._idle[members[rest]] = 1
            self._idle_left[self._row_block[row]] -= rest.size
            released[rest] = 1
            flow -= released
        self._left[row] -= min(units, missing)
        self._room[members[takers]] -= gained
        self._wanted -= units
        flow[takers] += gained

    def _pass_on(self) -> None:
        """Give what is missing to members without room that pass on what they do not own to one with room.

        That costs one move a partition too. It saves the network where a few are left.
        """
        rows = self._rows
        spare = np.flatnonzero((self.flow > rows.owned) & self._open)
        for taker in np.flatnonzero(self._room > 0).tolist():
            near = np.flatnonzero((rows.member == taker) & self._open)
            arc_of = np.full(rows.sizes.size, NO_ARC)
            arc_of[rows.row[near]] = near
            for row in np.flatnonzero(self._left).tolist():
                arcs = np.arange(rows.starts[row], rows.starts[row + 1])
                arcs = arcs[self._open[arcs]]
                way_to = np.full(rows.members, NO_ARC)
                way_to[rows.member[arcs]] = arcs
                onward = spare[(arc_of[rows.row[spare]] != NO_ARC) & (way_to[rows.member[spare]] != NO_ARC)]
                onward = onward[self.flow[onward] > rows.owned[onward]]
                passed = onward[: min(self._left[row], self._room[taker])]
                np.add.at(self.flow, way_to[rows.member[passed]], 1)
                np.add.at(self.flow, arc_of[rows.row[passed]], 1)
                self.flow[passed] -= 1
                self._left[row] -= passed.size
                self._room[taker] -= passed.size
                self._wanted -= passed.size

    def solve(self) -> None:
        """Give what is left on the cheapest ways, which may lead over several members."""
        rows = self._rows
        arcs = np.flatnonzero(self._allowed)
        resters = np.argsort(self._block_of, kind="stable")
        yes, no = np.ones(arcs.size, np.bool_), np.zeros(resters.size, np.bool_)
        network = Network(
            Arcs(
                row=np.concatenate([rows.row[arcs], rows.sizes.size + self._block_of[resters]]),
                member=np.concatenate([rows.member[arcs], resters]),
                flow=np.concatenate([self.flow[arcs], self._idle[resters]]),
                kept=np.concatenate([rows.owned[arcs], ~no]),
                far=np.concatenate([~rows.near[arcs], no]),
                open=np.concatenate([yes, no]),
            ),
            left=np.concatenate([self._left, self._idle_left]),
            surplus=-self._room,
            step=_MOVE,
            far_cost=int(rows.sizes.sum()) * _MOVE + 1,
            row_potential=np.concatenate([np.zeros_like(rows.sizes), self._idle_potential]),
            member_potential=self._had_room * _MOVE,
            sink_potential=_MOVE,
        )
        network.run()
        self.flow[arcs] = network.flow()[: arcs.size]


def _from_first(amounts: Ints, units: int) -> Ints:
    """Return so many units of the amounts, of the first ones all that they have."""
    taken: Ints = np.clip(units - (np.cumsum(amounts) - amounts), 0, amounts)
    return taken
