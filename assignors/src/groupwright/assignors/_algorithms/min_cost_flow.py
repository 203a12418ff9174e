"""A minimum-cost flow from rows of partitions to members, on sets that are single numbers."""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from groupwright.assignors._algorithms.bits import Bits, bits_where, iter_bits, sets_of
from groupwright.assignors._model.arrays import BoolArray, Int64Array

_SetBy = dict[int, Bits]
"""By price or potential, the places that have it."""

_Node = tuple[bool, int]
"""Whether a place is a row (or else a member), and its number."""

_INFINITE = 2**62


@dataclass(frozen=True, eq=False)
class Arcs:
    """Which rows can give units to which members, and how many these have to start with.

    Attributes:
        partition_class: The row of each arc.
        member: The member of each arc. Arcs come by row, then by member, and no two have the same.
        flow: How many of the row's units the member has.
        kept: How many of the row's units are cheap for the member.
        far: Whether the member is far from the row, so that each unit costs more.
        open: Whether it may have more than the cheap ones.
    """

    class_of_arc: Int64Array
    member_of_arc: Int64Array
    flow: Int64Array
    owned: Int64Array
    rack_mismatch: BoolArray
    open: BoolArray


class MinCostFlow:
    """Rows have units, and members take them, each as many as it has room for.

    A unit costs a member `rack_mismatch_cost` if it is far, and `move_cost` beyond those that are kept. The flow to start with
    must cost no more than any other of the same amounts: at the potentials given, no unit could be put on or
    taken off any arc at a negative cost. `run` sends what is left on the cheapest ways there are, which keeps
    this so, and is the proof that the result costs the least. This is the primal-dual method: one search finds
    all cheapest ways, and many units go before the next.

    Attributes:
        left: For each row, how many units no member has.
        excess: For each member, how many units it has too many; negative for too few.
        reached: When `run` has ended, the members that units which found no place could get to.
    """

    def __init__(
        self,
        arcs: Arcs,
        left: Int64Array,
        excess: Int64Array,
        *,
        move_cost: int = 0,
        rack_mismatch_cost: int = 0,
        class_potential: Int64Array | None = None,
        member_potential: Int64Array | None = None,
        sink_potential: int = 0,
    ) -> None:
        """Take the network as it is to start with.

        Args:
            arcs: The arcs.
            left: As the attribute.
            excess: As the attribute.
            move_cost: What a unit costs beyond the kept ones.
            rack_mismatch_cost: What a unit costs a member that is far.
            class_potential: For each row a number (0 by default). A cost plus the potential of where a unit comes
                from, less that of where it goes, is nowhere negative. Rows with units left have 0.
            member_potential: The same for each member. Members with too many have 0.
            sink_potential: That of all members with too few; no member with room has less.
        """
        classes, members = left.size, excess.size
        self.left: list[int] = left.tolist()
        self.excess: list[int] = excess.tolist()
        self.reached: Bits = 0
        self._step = move_cost
        self._arcs = arcs
        self._flow = _by_class(arcs, arcs.flow, classes)
        self._kept = _by_class(arcs, arcs.owned, classes)
        self._far_cost = rack_mismatch_cost
        self._far = sets_of(
            arcs.class_of_arc[arcs.rack_mismatch], arcs.member_of_arc[arcs.rack_mismatch], classes, members
        )
        base = np.where(arcs.rack_mismatch, rack_mismatch_cost, 0)
        self._above_owned_prices = _sets_by_price(
            arcs.class_of_arc, arcs.member_of_arc, base + move_cost, arcs.open, classes, members
        )
        self._room = _sets_by_price(
            arcs.class_of_arc, arcs.member_of_arc, base, arcs.flow < arcs.owned, classes, members
        )
        taking = -base - np.where(arcs.flow > arcs.owned, move_cost, 0)
        self._removal_prices = _sets_by_price(
            arcs.member_of_arc, arcs.class_of_arc, taking, arcs.flow > 0, members, classes
        )
        self._changed: set[tuple[int, int]] = set()
        self._class_potential = [0] * classes if class_potential is None else class_potential.tolist()
        self._member_potential = [0] * members if member_potential is None else member_potential.tolist()
        self._sink_potential = sink_potential
        self._source_potential = 0
        self._classes_by_potential = _by_value(self._class_potential)
        self._members_by_potential = _by_value(self._member_potential)
        self._paths_sent = 0
        self._class_layers: list[Bits] = []
        self._member_layers: list[Bits] = []

    def run(self) -> None:
        """Send what is left wherever there is room for it."""
        while self._search():
            for node in self._sources():
                while self._augment_from(node):
                    pass

    def flow(self) -> Int64Array:
        """Return how many of the row's units the member has, for each arc."""
        flow = self._arcs.flow.copy()
        if self._changed:
            partition_class, member = np.array(sorted(self._changed)).T
            members = len(self.excess)
            at = np.searchsorted(
                self._arcs.class_of_arc * members + self._arcs.member_of_arc,
                partition_class * members + member,
            )
            flow[at] = [
                self._flow[partition_class][member] for partition_class, member in sorted(self._changed)
            ]
        return flow

    def restrict(self, rack_match: list[Bits]) -> None:
        """Let each row give further units to these members only, at no cost beyond the step."""
        self._above_owned_prices = [{self._step: members} for members in rack_match]

    def some_holder(self) -> list[int]:
        """Return, for each row, a member that has units of it."""
        return [next(member for member, units in flow.items() if units) for flow in self._flow]

    def _sources(self) -> list[_Node]:
        classes = [(True, partition_class) for partition_class, units in enumerate(self.left) if units > 0]
        return classes + [(False, member) for member, units in enumerate(self.excess) if units > 0]

    # --- Finding the cheapest ways ------------------------------------------------------------------

    def _search(self) -> bool:
        """Find the cheapest ways from those with too much to those with too little; tell if there are any.

        Sets the potentials so that these ways cost nothing, and the layers: how many steps it takes to get to
        each place on them.
        """
        frontier = self._initial_frontier()
        sinks = bits_where(np.array(self.excess) < 0)
        unseen_classes = unseen_members = -1
        cheapest = _INFINITE
        found: list[tuple[int, int, Bits, Bits]] = []
        while frontier and frontier.least <= cheapest:
            cost, steps, classes, members = frontier.pop()
            classes &= unseen_classes
            members &= unseen_members
            unseen_classes &= ~classes
            unseen_members &= ~members
            found.append((cost, steps, classes, members))
            cheapest = min(cheapest, self._cost_at_sinks(cost, members & sinks))
            self._relax_classes(frontier, cost, steps + 1, classes, unseen_members)
            self._relax_members(frontier, cost, steps + 1, members, unseen_classes)
        self.reached = ~unseen_members
        if cheapest < _INFINITE:
            self._build_layers(found, cheapest)
        return cheapest < _INFINITE

    def _initial_frontier(self) -> "_Frontier":
        frontier = _Frontier()
        classes, members = bits_where(np.array(self.left) > 0), bits_where(np.array(self.excess) > 0)
        for potential, at in self._classes_by_potential.items():
            frontier.add(self._source_potential - potential, 0, classes & at, 0)
        for potential, at in self._members_by_potential.items():
            frontier.add(self._source_potential - potential, 0, 0, members & at)
        return frontier

    def _cost_at_sinks(self, cost: int, sinks: Bits) -> int:
        """Return what it costs to send units to the cheapest of these, if that is what it costs to get there."""
        potentials = [potential for potential, at in self._members_by_potential.items() if sinks & at]
        return cost + min(potentials) - self._sink_potential if potentials else _INFINITE

    def _relax_classes(
        self, frontier: "_Frontier", cost: int, steps: int, classes: Bits, unseen: Bits
    ) -> None:
        for partition_class in iter_bits(classes):
            here = cost + self._class_potential[partition_class]
            for price, to in self._addition_prices(partition_class):
                new = to & unseen
                if new:
                    for potential, at in self._members_by_potential.items():
                        frontier.add(here + price - potential, steps, 0, new & at)

    def _relax_members(
        self, frontier: "_Frontier", cost: int, steps: int, members: Bits, unseen: Bits
    ) -> None:
        for member in iter_bits(members):
            here = cost + self._member_potential[member]
            for price, to in self._removal_prices[member].items():
                new = to & unseen
                if new:
                    for potential, at in self._classes_by_potential.items():
                        frontier.add(here + price - potential, steps, new & at, 0)

    def _build_layers(self, found: list[tuple[int, int, Bits, Bits]], cheapest: int) -> None:
        depth = 1 + max(steps for _, steps, _, _ in found)
        self._class_layers = [0] * depth
        self._member_layers = [0] * depth
        for cost, steps, classes, members in found:
            self._class_layers[steps] |= classes
            self._member_layers[steps] |= members
            if cost < cheapest:
                _shift(self._class_potential, self._classes_by_potential, classes, cost - cheapest)
                _shift(self._member_potential, self._members_by_potential, members, cost - cheapest)
        self._source_potential -= cheapest

    # --- Sending units ------------------------------------------------------------------------------

    def _augment_from(self, source: _Node) -> bool:
        """Send units from one place with too many on one way through the layers, if there still is one."""
        if not self._may_start(source):
            return False
        path = [source]
        while path:
            is_row, number = path[-1]
            if not is_row and self._is_sink(number):
                self._augment(path)
                return True
            admissible = self._admissible(is_row, number, len(path))
            if admissible:
                path.append(
                    (not is_row, self._next_in_turn(admissible, len(self.excess if is_row else self.left)))
                )
            else:
                path.pop()
                (self._class_layers if is_row else self._member_layers)[len(path)] &= ~(1 << number)
        return False

    def _may_start(self, node: _Node) -> bool:
        is_row, number = node
        if is_row:
            return self.left[number] > 0 and bool(self._class_layers[0] >> number & 1)
        return self.excess[number] > 0 and bool(self._member_layers[0] >> number & 1)

    def _is_sink(self, member: int) -> bool:
        return self.excess[member] < 0 and self._member_potential[member] == self._sink_potential

    def _admissible(self, is_row: bool, number: int, steps: int) -> Bits:  # noqa: FBT001 - half of a node
        """Return where units may go from here, in the next layer and at no cost."""
        if steps >= len(self._class_layers):
            return 0
        admissible = 0
        if is_row:
            potential = self._class_potential[number]
            for price, to in self._addition_prices(number):
                admissible |= to & self._members_by_potential.get(potential + price, 0)
            return admissible & self._member_layers[steps]
        potential = self._member_potential[number]
        for price, to in self._removal_prices[number].items():
            admissible |= to & self._classes_by_potential.get(potential + price, 0)
        return admissible & self._class_layers[steps]

    def _next_in_turn(self, places: Bits, count: int) -> int:
        """Return the next of the places in turn, so that not all units take the same way.

        Args:
            places: The places to choose from.
            count: How many there are in all.
        """
        turn = self._paths_sent % count
        places = places >> turn << turn or places
        return (places & -places).bit_length() - 1

    def _augment(self, path: list[_Node]) -> None:
        """Send as many units as the whole way takes."""
        (from_row, source), (_, sink) = path[0], path[-1]
        supply = self.left if from_row else self.excess
        arcs = [
            (here, there, 1) if is_row else (there, here, -1) for (is_row, here), (_, there) in pairwise(path)
        ]
        units = min(supply[source], -self.excess[sink], *(self._residual(*arc) for arc in arcs))
        self._paths_sent += 1
        supply[source] -= units
        self.excess[sink] += units
        for partition_class, member, sign in arcs:
            self._update(partition_class, member, sign * units)

    def _residual(self, partition_class: int, member: int, sign: int) -> int:
        """Return how many units can be put or taken before the price changes."""
        units = self._flow[partition_class].get(member, 0)
        owned = self._kept[partition_class].get(member, 0)
        if sign > 0:
            return owned - units if units < owned else _INFINITE
        return units - owned if units > owned else units

    # --- Prices -------------------------------------------------------------------------------------

    def _addition_prices(self, partition_class: int) -> list[tuple[int, Bits]]:
        """Return by price the members that can be given one more unit of the row."""
        return [*self._room[partition_class].items(), *self._above_owned_prices[partition_class].items()]

    def _update(self, partition_class: int, member: int, units: int) -> None:
        self._changed.add((partition_class, member))
        owned = self._kept[partition_class].get(member, 0)
        base = self._far_cost if self._far[partition_class] >> member & 1 else 0
        before = self._flow[partition_class].get(member, 0)
        after = self._flow[partition_class][member] = before + units
        held, room = self._removal_prices[member], self._room[partition_class]
        if before:
            held[-base - self._step if before > owned else -base] ^= 1 << partition_class
        if after:
            price = -base - self._step if after > owned else -base
            held[price] = held.get(price, 0) | 1 << partition_class
        if before < owned <= after or after < owned <= before:
            room[base] = room.get(base, 0) ^ 1 << member


class _Frontier:
    """Places to look from: the cheapest to get to first, and of these the ones with the fewest steps."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int], list[Bits]] = {}

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def least(self) -> int:
        return self._heap[0][0]

    def add(self, cost: int, steps: int, classes: Bits, members: Bits) -> None:
        if not classes and not members:
            return
        places = self._places.get((cost, steps))
        if places is None:
            self._places[cost, steps] = [classes, members]
            heappush(self._heap, (cost, steps))
        else:
            places[0] |= classes
            places[1] |= members

    def pop(self) -> tuple[int, int, Bits, Bits]:
        cost, steps = heappop(self._heap)
        classes, members = self._places.pop((cost, steps))
        return cost, steps, classes, members


def _by_class(arcs: Arcs, amounts: Int64Array, classes: int) -> list[dict[int, int]]:
    """Return, for each row, the amounts that are not 0 by member."""
    by_row: list[dict[int, int]] = [{} for _ in range(classes)]
    some = np.flatnonzero(amounts)
    columns = arcs.class_of_arc[some].tolist(), arcs.member_of_arc[some].tolist(), amounts[some].tolist()
    for partition_class, member, amount in zip(*columns, strict=True):
        by_row[partition_class][member] = amount
    return by_row


def _sets_by_price(
    which: Int64Array, number: Int64Array, price: Int64Array, flags: BoolArray, sets: int, numbers: int
) -> list[_SetBy]:
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
    return {value: bits_where(array == value) for value in np.unique(array).tolist()}


def _shift(potential: list[int], at: _SetBy, places: Bits, by: int) -> None:
    """Move places from their potentials to those that differ by a number."""
    moving = [(old, bits & places) for old, bits in at.items() if bits & places]
    for old, bits in moving:
        at[old] ^= bits
    for old, bits in moving:
        at[old + by] = at.get(old + by, 0) | bits
        for number in iter_bits(bits):
            potential[number] = old + by
        if not at[old]:
            del at[old]
