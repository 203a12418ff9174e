"""A minimum-cost flow from rows of partitions to members, on sets that are single numbers."""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from groupwright.assignors._algorithms.bits import Bits, numbers_in, sets_of, where

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SetBy = dict[int, Bits]
"""By price or potential, the places that have it."""

_Node = tuple[bool, int]
"""Whether a place is a row (or else a member), and its number."""

_NEVER = 2**62


@dataclass(frozen=True, eq=False)
class Arcs:
    """Which rows can give units to which members, and how many these have to start with.

    Attributes:
        row: The row of each arc.
        member: The member of each arc. Arcs come by row, then by member, and no two have the same.
        flow: How many of the row's units the member has.
        kept: How many of the row's units are cheap for the member.
        far: Whether the member is far from the row, so that each unit costs more.
        open: Whether it may have more than the cheap ones.
    """

    row: Ints
    member: Ints
    flow: Ints
    kept: Ints
    far: Flags
    open: Flags


class Network:
    """Rows have units, and members take them, each as many as it has room for.

    A unit costs a member `far_cost` if it is far, and `step` beyond those that are kept. The flow to start with
    must cost no more than any other of the same amounts: at the potentials given, no unit could be put on or
    taken off any arc at a negative cost. `run` sends what is left on the cheapest ways there are, which keeps
    this so, and is the proof that the result costs the least. This is the primal-dual method: one search finds
    all cheapest ways, and many units go before the next.

    Attributes:
        left: For each row, how many units no member has.
        surplus: For each member, how many units it has too many; negative for too few.
        reached: When `run` has ended, the members that units which found no place could get to.
    """

    def __init__(
        self,
        arcs: Arcs,
        left: Ints,
        surplus: Ints,
        *,
        step: int = 0,
        far_cost: int = 0,
        row_potential: Ints | None = None,
        member_potential: Ints | None = None,
        sink_potential: int = 0,
    ) -> None:
        """Take the network as it is to start with.

        Args:
            arcs: The arcs.
            left: As the attribute.
            surplus: As the attribute.
            step: What a unit costs beyond the kept ones.
            far_cost: What a unit costs a member that is far.
            row_potential: For each row a number (0 by default). A cost plus the potential of where a unit comes
                from, less that of where it goes, is nowhere negative. Rows with units left have 0.
            member_potential: The same for each member. Members with too many have 0.
            sink_potential: That of all members with too few; no member with room has less.
        """
        rows, members = left.size, surplus.size
        self.left: list[int] = left.tolist()
        self.surplus: list[int] = surplus.tolist()
        self.reached: Bits = 0
        self._step = step
        self._arcs = arcs
        self._flow = _by_row(arcs, arcs.flow, rows)
        self._kept = _by_row(arcs, arcs.kept, rows)
        self._far_cost = far_cost
        self._far = sets_of(arcs.row[arcs.far], arcs.member[arcs.far], rows, members)
        base = np.where(arcs.far, far_cost, 0)
        self._more = _sets_by(arcs.row, arcs.member, base + step, arcs.open, rows, members)
        self._room = _sets_by(arcs.row, arcs.member, base, arcs.flow < arcs.kept, rows, members)
        taking = -base - np.where(arcs.flow > arcs.kept, step, 0)
        self._held = _sets_by(arcs.member, arcs.row, taking, arcs.flow > 0, members, rows)
        self._changed: set[tuple[int, int]] = set()
        self._row_potential = [0] * rows if row_potential is None else row_potential.tolist()
        self._member_potential = [0] * members if member_potential is None else member_potential.tolist()
        self._sink_potential = sink_potential
        self._source_potential = 0
        self._rows_at = _by_value(self._row_potential)
        self._members_at = _by_value(self._member_potential)
        self._ways = 0
        self._row_layers: list[Bits] = []
        self._member_layers: list[Bits] = []

    def run(self) -> None:
        """Send what is left wherever there is room for it."""
        while self._search():
            for node in self._sources():
                while self._send_from(node):
                    pass

    def flow(self) -> Ints:
        """Return how many of the row's units the member has, for each arc."""
        flow = self._arcs.flow.copy()
        if self._changed:
            row, member = np.array(sorted(self._changed)).T
            members = len(self.surplus)
            at = np.searchsorted(self._arcs.row * members + self._arcs.member, row * members + member)
            flow[at] = [self._flow[row][member] for row, member in sorted(self._changed)]
        return flow

    def restrict(self, near: list[Bits]) -> None:
        """Let each row give further units to these members only, at no cost beyond the step."""
        self._more = [{self._step: members} for members in near]

    def some_holder(self) -> list[int]:
        """Return, for each row, a member that has units of it."""
        return [next(member for member, units in flow.items() if units) for flow in self._flow]

    def _sources(self) -> list[_Node]:
        rows = [(True, row) for row, units in enumerate(self.left) if units > 0]
        return rows + [(False, member) for member, units in enumerate(self.surplus) if units > 0]

    # --- Finding the cheapest ways ------------------------------------------------------------------

    def _search(self) -> bool:
        """Find the cheapest ways from those with too much to those with too little; tell if there are any.

        Sets the potentials so that these ways cost nothing, and the layers: how many steps it takes to get to
        each place on them.
        """
        waiting = self._at_sources()
        sinks = where(np.array(self.surplus) < 0)
        unseen_rows = unseen_members = -1
        cheapest = _NEVER
        found: list[tuple[int, int, Bits, Bits]] = []
        while waiting and waiting.least <= cheapest:
            cost, steps, rows, members = waiting.pop()
            rows &= unseen_rows
            members &= unseen_members
            unseen_rows &= ~rows
            unseen_members &= ~members
            found.append((cost, steps, rows, members))
            cheapest = min(cheapest, self._cost_at_sinks(cost, members & sinks))
            self._look_from_rows(waiting, cost, steps + 1, rows, unseen_members)
            self._look_from_members(waiting, cost, steps + 1, members, unseen_rows)
        self.reached = ~unseen_members
        if cheapest < _NEVER:
            self._lay(found, cheapest)
        return cheapest < _NEVER

    def _at_sources(self) -> "_Waiting":
        waiting = _Waiting()
        rows, members = where(np.array(self.left) > 0), where(np.array(self.surplus) > 0)
        for potential, at in self._rows_at.items():
            waiting.add(self._source_potential - potential, 0, rows & at, 0)
        for potential, at in self._members_at.items():
            waiting.add(self._source_potential - potential, 0, 0, members & at)
        return waiting

    def _cost_at_sinks(self, cost: int, sinks: Bits) -> int:
        """Return what it costs to send units to the cheapest of these, if that is what it costs to get there."""
        potentials = [potential for potential, at in self._members_at.items() if sinks & at]
        return cost + min(potentials) - self._sink_potential if potentials else _NEVER

    def _look_from_rows(self, waiting: "_Waiting", cost: int, steps: int, rows: Bits, unseen: Bits) -> None:
        for row in numbers_in(rows):
            here = cost + self._row_potential[row]
            for price, to in self._putting(row):
                new = to & unseen
                if new:
                    for potential, at in self._members_at.items():
                        waiting.add(here + price - potential, steps, 0, new & at)

    def _look_from_members(
        self, waiting: "_Waiting", cost: int, steps: int, members: Bits, unseen: Bits
    ) -> None:
        for member in numbers_in(members):
            here = cost + self._member_potential[member]
            for price, to in self._held[member].items():
                new = to & unseen
                if new:
                    for potential, at in self._rows_at.items():
                        waiting.add(here + price - potential, steps, new & at, 0)

    def _lay(self, found: list[tuple[int, int, Bits, Bits]], cheapest: int) -> None:
        depth = 1 + max(steps for _, steps, _, _ in found)
        self._row_layers = [0] * depth
        self._member_layers = [0] * depth
        for cost, steps, rows, members in found:
            self._row_layers[steps] |= rows
            self._member_layers[steps] |= members
            if cost < cheapest:
                _shift(self._row_potential, self._rows_at, rows, cost - cheapest)
                _shift(self._member_potential, self._members_at, members, cost - cheapest)
        self._source_potential -= cheapest

    # --- Sending units ------------------------------------------------------------------------------

    def _send_from(self, source: _Node) -> bool:
        """Send units from one place with too many on one way through the layers, if there still is one."""
        if not self._may_start(source):
            return False
        way = [source]
        while way:
            is_row, number = way[-1]
            if not is_row and self._is_sink(number):
                self._send(way)
                return True
            onward = self._onward(is_row, number, len(way))
            if onward:
                way.append((not is_row, self._one_of(onward, len(self.surplus if is_row else self.left))))
            else:
                way.pop()
                (self._row_layers if is_row else self._member_layers)[len(way)] &= ~(1 << number)
        return False

    def _may_start(self, node: _Node) -> bool:
        is_row, number = node
        if is_row:
            return self.left[number] > 0 and bool(self._row_layers[0] >> number & 1)
        return self.surplus[number] > 0 and bool(self._member_layers[0] >> number & 1)

    def _is_sink(self, member: int) -> bool:
        return self.surplus[member] < 0 and self._member_potential[member] == self._sink_potential

    def _onward(self, is_row: bool, number: int, steps: int) -> Bits:  # noqa: FBT001 - half of a node
        """Return where units may go from here, in the next layer and at no cost."""
        if steps >= len(self._row_layers):
            return 0
        onward = 0
        if is_row:
            potential = self._row_potential[number]
            for price, to in self._putting(number):
                onward |= to & self._members_at.get(potential + price, 0)
            return onward & self._member_layers[steps]
        potential = self._member_potential[number]
        for price, to in self._held[number].items():
            onward |= to & self._rows_at.get(potential + price, 0)
        return onward & self._row_layers[steps]

    def _one_of(self, places: Bits, count: int) -> int:
        """Return the next of the places in turn, so that not all units take the same way.

        Args:
            places: The places to choose from.
            count: How many there are in all.
        """
        turn = self._ways % count
        places = places >> turn << turn or places
        return (places & -places).bit_length() - 1

    def _send(self, way: list[_Node]) -> None:
        """Send as many units as the whole way takes."""
        (from_row, source), (_, sink) = way[0], way[-1]
        supply = self.left if from_row else self.surplus
        arcs = [
            (here, there, 1) if is_row else (there, here, -1) for (is_row, here), (_, there) in pairwise(way)
        ]
        units = min(supply[source], -self.surplus[sink], *(self._most(*arc) for arc in arcs))
        self._ways += 1
        supply[source] -= units
        self.surplus[sink] += units
        for row, member, sign in arcs:
            self._change(row, member, sign * units)

    def _most(self, row: int, member: int, sign: int) -> int:
        """Return how many units can be put or taken before the price changes."""
        units = self._flow[row].get(member, 0)
        kept = self._kept[row].get(member, 0)
        if sign > 0:
            return kept - units if units < kept else _NEVER
        return units - kept if units > kept else units

    # --- Prices -------------------------------------------------------------------------------------

    def _putting(self, row: int) -> list[tuple[int, Bits]]:
        """Return by price the members that can be given one more unit of the row."""
        return [*self._room[row].items(), *self._more[row].items()]

    def _change(self, row: int, member: int, units: int) -> None:
        self._changed.add((row, member))
        kept = self._kept[row].get(member, 0)
        base = self._far_cost if self._far[row] >> member & 1 else 0
        before = self._flow[row].get(member, 0)
        after = self._flow[row][member] = before + units
        held, room = self._held[member], self._room[row]
        if before:
            held[-base - self._step if before > kept else -base] ^= 1 << row
        if after:
            price = -base - self._step if after > kept else -base
            held[price] = held.get(price, 0) | 1 << row
        if before < kept <= after or after < kept <= before:
            room[base] = room.get(base, 0) ^ 1 << member


class _Waiting:
    """Places to look from: the cheapest to get to first, and of these the ones with the fewest steps."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int], list[Bits]] = {}

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def least(self) -> int:
        return self._heap[0][0]

    def add(self, cost: int, steps: int, rows: Bits, members: Bits) -> None:
        if not rows and not members:
            return
        places = self._places.get((cost, steps))
        if places is None:
            self._places[cost, steps] = [rows, members]
            heappush(self._heap, (cost, steps))
        else:
            places[0] |= rows
            places[1] |= members

    def pop(self) -> tuple[int, int, Bits, Bits]:
        cost, steps = heappop(self._heap)
        rows, members = self._places.pop((cost, steps))
        return cost, steps, rows, members


def _by_row(arcs: Arcs, amounts: Ints, rows: int) -> list[dict[int, int]]:
    """Return, for each row, the amounts that are not 0 by member."""
    by_row: list[dict[int, int]] = [{} for _ in range(rows)]
    some = np.flatnonzero(amounts)
    columns = arcs.row[some].tolist(), arcs.member[some].tolist(), amounts[some].tolist()
    for row, member, amount in zip(*columns, strict=True):
        by_row[row][member] = amount
    return by_row


def _sets_by(which: Ints, number: Ints, price: Ints, flags: Flags, sets: int, numbers: int) -> list[_SetBy]:
    """Return, for each place, by price the set of the numbers that are flagged."""
    made: list[_SetBy] = [{} for _ in range(sets)]
    for cost in np.unique(price[flags]).tolist():
        here = flags & (price == cost)
        for by_price, bits in zip(made, sets_of(which[here], number[here], sets, numbers), strict=True):
            if bits:
                by_price[cost] = bits
    return made


def _by_value(values: list[int]) -> _SetBy:
    array = np.array(values, np.int64)
    return {value: where(array == value) for value in np.unique(array).tolist()}


def _shift(potential: list[int], at: _SetBy, places: Bits, by: int) -> None:
    """Move places from their potentials to those that differ by a number."""
    moving = [(old, bits & places) for old, bits in at.items() if bits & places]
    for old, bits in moving:
        at[old] ^= bits
    for old, bits in moving:
        at[old + by] = at.get(old + by, 0) | bits
        for number in numbers_in(bits):
            potential[number] = old + by
        if not at[old]:
            del at[old]
