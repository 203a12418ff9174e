"""How many partitions of which row each member gets: racks first, then as few moves as can be."""

import numpy as np

from groupwright.assignors.sticky.balance import Balance, balance
from groupwright.assignors.sticky.network import Arcs, Network
from groupwright.assignors.sticky.pour import pour
from groupwright.assignors.sticky.rows import Ints, Rows

_MOVE = 1
_ANY = 2**31


def best_flow(rows: Rows) -> Ints:
    """Return, for each arc, how many of the row's partitions the member gets.

    No flow has more even loads; of those with such loads, none has more partitions with near members; and of
    those, none takes fewer partitions from members that own them.
    """
    plain = rows.without_racks()
    even = balance(plain)
    if plain is rows and (rows.near.all() and (even.flow >= rows.owned).all()):
        return even.flow
    return _Keeping(rows, even).run()


class _Keeping:
    """Starts from what members own, and moves as little as the loads and the racks ask for.

    A row only goes to members of its block. All of them are to have as many units as the block's largest load:
    partitions, and one idle unit at most, of which there are just enough. To begin with each member has what it
    owns and is near to, which costs nothing. Of what is missing or too much, most can be given at once to near
    members with room, at the cost of one move a partition: no way is cheaper, so that nothing is lost by it. A
    network does what is left, from the potentials that say so, and proves that all of it costs the least. There a
    partition with a far member costs more than all moves together.
    """

    def __init__(self, rows: Rows, even: Balance) -> None:
        self._rows = rows
        self._block_of = even.block_of
        self._row_block = even.row_block[rows.audience]
        self._allowed = self._row_block[rows.row] == self._block_of[rows.member]
        self._flow = np.where(self._allowed & rows.near, rows.owned, 0)
        self._left = rows.sizes - rows.totals(self._flow)
        total = np.bincount(self._row_block, rows.sizes, int(self._block_of.max()) + 1).astype(np.int64)
        members = np.bincount(self._block_of)
        most = -(-total // members)
        self._room = most[self._block_of] - rows.loads(self._flow)
        self._had_room = self._room > 0
        self._idle = self._rest(members * most - total)

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

    def run(self) -> Ints:
        for times in (1, 2, 4, _ANY):
            self._give(times)
        if (self._room != 0).any():
            self._solve()
        return self._flow

    def _give(self, times: int) -> None:
        """Give, row by row, what is missing and what some have too much of to members with room.

        Args:
            times: Up to how many times its fair share of a row to give to a member.
        """
        rows = self._rows
        widths = np.diff(rows.starts)
        shares = -(-rows.sizes // widths)
        for row in np.argsort(widths, kind="stable").tolist():
            arcs = np.arange(rows.starts[row], rows.starts[row + 1])
            members = rows.member[arcs]
            room, flow = self._room[members], self._flow[arcs]
            takers = (room > 0) & self._allowed[arcs] & rows.near[arcs]
            if not takers.any():
                continue
            excess = np.clip(-room, 0, flow)
            can_rest = np.flatnonzero((room == 0) & (flow > 0) & (self._idle[members] == 0))
            can_rest = can_rest[: self._idle_left[self._row_block[row]]]
            supply = int(self._left[row] + excess.sum() + can_rest.size)
            if not supply:
                continue
            gained = pour(-room[takers], min(supply, int(room[takers].sum())))
            gained = np.minimum(gained, np.maximum(0, times * shares[row] - flow[takers]))
            units = int(gained.sum())
            missing = min(units, int(self._left[row]))
            released = _from_first(excess, units - missing)
            rest = can_rest[: units - missing - int(released.sum())]
            self._left[row] -= missing
            self._room[members] += released
            self._room[members[takers]] -= gained
            self._idle[members[rest]] = 1
            self._idle_left[self._row_block[row]] -= rest.size
            released[rest] = 1
            self._flow[arcs] -= released
            self._flow[arcs[takers]] += gained

    def _solve(self) -> None:
        """Give what is left on the cheapest ways, which may lead over several members."""
        rows = self._rows
        arcs = np.flatnonzero(self._allowed)
        resters = np.argsort(self._block_of, kind="stable")
        yes, no = np.ones(arcs.size, np.bool_), np.zeros(resters.size, np.bool_)
        network = Network(
            Arcs(
                row=np.concatenate([rows.row[arcs], rows.sizes.size + self._block_of[resters]]),
                member=np.concatenate([rows.member[arcs], resters]),
                flow=np.concatenate([self._flow[arcs], self._idle[resters]]),
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
        self._flow[arcs] = network.flow()[: arcs.size]


def _from_first(amounts: Ints, units: int) -> Ints:
    """Return so many units of the amounts, of the first ones all that they have."""
    taken: Ints = np.clip(units - (np.cumsum(amounts) - amounts), 0, amounts)
    return taken
