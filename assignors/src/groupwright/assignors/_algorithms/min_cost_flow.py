"""Min-cost flow from partition classes to members, on bit sets."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from groupwright.assignors._algorithms.bits import Bits, bits_where, iter_bits, sets_of
from groupwright.assignors._model.arrays import BoolArray, Int64Array

_SetBy = dict[int, Bits]
"""Members or classes by price or by potential. A price is the cost of one unit more, or less, on an arc."""

_Node = tuple[bool, int]
"""Node: True for a class or False for a member, and its index."""

_INFINITE = 2**62


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs from partition classes to members, with their initial flow.

    Attributes:
        class_of_arc: `(arcs,) int64`: the class.
        member_of_arc: `(arcs,) int64`: the member. Arcs are unique, and sorted by class, then by member.
        flow: `(arcs,) int64`: the units of the class that the member has.
        owned: `(arcs,) int64`: the units of the class that cost the member no move.
        rack_mismatch: `(arcs,) bool`: whether each unit costs a rack mismatch.
        open: `(arcs,) bool`: whether the member may have more units than it owns.
    """

    class_of_arc: Int64Array
    member_of_arc: Int64Array
    flow: Int64Array
    owned: Int64Array
    rack_mismatch: BoolArray
    open: BoolArray


class MinCostFlow:
    """Min-cost flow by the primal-dual method: classes supply units, and members with room take them.

    Terms as in Ahuja, Magnanti and Orlin, "Network Flows" (1993). Room is a negative excess.

    A unit costs `rack_mismatch_cost` on an arc with a mismatch, and `move_cost` beyond the owned units. The
    initial flow must be optimal for its amounts: at the given potentials, no unit can be added to or removed
    from an arc at a negative cost. `run` sends the remaining units on cheapest paths, which preserves this,
    so the result is optimal. One search finds all cheapest paths, on which many units are sent before the
    next search.

    Attributes:
        left: The unassigned units of each class.
        excess: The excess units of each member; negative for room.
        reached: After `run`, the members that can be reached from units that found no room.
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
        """Create the network with its initial flow.

        Args:
            arcs: The arcs.
            left: See the attribute.
            excess: See the attribute.
            move_cost: The cost of a unit beyond the owned ones.
            rack_mismatch_cost: The cost of a rack mismatch.
            class_potential: `(classes,) int64`, 0 by default. For every possible step of a unit, the cost
                plus the potential of its origin minus that of its destination is not negative. Classes with
                units left have 0.
            member_potential: `(members,) int64`, likewise. Members with excess units have 0.
            sink_potential: The potential of the sink, which units reach from any member with room at no
                cost. No member with room has less.
        """
        classes, members = left.size, excess.size
        self.left: list[int] = left.tolist()
        self.excess: list[int] = excess.tolist()
        self.reached: Bits = 0
        self._move_cost = move_cost
        self._arcs = arcs
        self._flow = _by_class(arcs, arcs.flow, classes)
        self._owned = _by_class(arcs, arcs.owned, classes)
        self._rack_mismatch_cost = rack_mismatch_cost
        self._rack_mismatch = sets_of(
            arcs.class_of_arc[arcs.rack_mismatch], arcs.member_of_arc[arcs.rack_mismatch], classes, members
        )
        base = np.where(arcs.rack_mismatch, rack_mismatch_cost, 0)
        self._above_owned_prices = _sets_by_price(
            arcs.class_of_arc, arcs.member_of_arc, base + move_cost, arcs.open, classes, members
        )
        self._below_owned_prices = _sets_by_price(
            arcs.class_of_arc, arcs.member_of_arc, base, arcs.flow < arcs.owned, classes, members
        )
        # The unit that is removed first is one beyond the owned units, if there is any.
        removal_price = -base - np.where(arcs.flow > arcs.owned, move_cost, 0)
        self._removal_prices = _sets_by_price(
            arcs.member_of_arc, arcs.class_of_arc, removal_price, arcs.flow > 0, members, classes
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
        """Send the remaining units to members with room, until none can reach any."""
        while self._search():
            for node in self._sources():
                while self._augment_from(node):
                    pass

    def flow(self) -> Int64Array:
        """Return `(arcs,) int64`: the units on each arc."""
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
        """Let each class send further units to these members only, without rack mismatches."""
        self._above_owned_prices = [{self._move_cost: members} for members in rack_match]

    def some_holder(self) -> list[int]:
        """Return, for each class, the index of a member that has units of it."""
        return [next(member for member, units in flow.items() if units) for flow in self._flow]

    def _sources(self) -> list[_Node]:
        classes = [(True, partition_class) for partition_class, units in enumerate(self.left) if units > 0]
        return classes + [(False, member) for member, units in enumerate(self.excess) if units > 0]

    # --- Finding the cheapest paths ------------------------------------------------------------------

    def _search(self) -> bool:
        """Find the cheapest paths from excess to room; return whether there are any.

        Dijkstra's algorithm on reduced costs, for all sources and whole sets of nodes at once. It updates the
        potentials so that the arcs of these paths have reduced cost 0, and builds the layers as Dinic's
        algorithm does: the nodes by the number of steps from a source.
        """
        frontier = self._initial_frontier()
        sinks = bits_where(np.array(self.excess) < 0)
        unseen_classes = unseen_members = -1  # all bits set
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

    def _initial_frontier(self) -> _Frontier:
        frontier = _Frontier()
        classes, members = bits_where(np.array(self.left) > 0), bits_where(np.array(self.excess) > 0)
        for potential, at in self._classes_by_potential.items():
            frontier.add(self._source_potential - potential, 0, classes & at, 0)
        for potential, at in self._members_by_potential.items():
            frontier.add(self._source_potential - potential, 0, 0, members & at)
        return frontier

    def _cost_at_sinks(self, cost: int, sinks: Bits) -> int:
        """Return the cost of a path to the cheapest of these sinks; `cost` is that of reaching them."""
        potentials = [potential for potential, at in self._members_by_potential.items() if sinks & at]
        return cost + min(potentials) - self._sink_potential if potentials else _INFINITE

    def _relax_classes(self, frontier: _Frontier, cost: int, steps: int, classes: Bits, unseen: Bits) -> None:
        for partition_class in iter_bits(classes):
            at_origin = cost + self._class_potential[partition_class]
            for price, to in self._addition_prices(partition_class):
                new = to & unseen
                if new:
                    for potential, at in self._members_by_potential.items():
                        frontier.add(at_origin + price - potential, steps, 0, new & at)

    def _relax_members(self, frontier: _Frontier, cost: int, steps: int, members: Bits, unseen: Bits) -> None:
        for member in iter_bits(members):
            at_origin = cost + self._member_potential[member]
            for price, to in self._removal_prices[member].items():
                new = to & unseen
                if new:
                    for potential, at in self._classes_by_potential.items():
                        frontier.add(at_origin + price - potential, steps, new & at, 0)

    def _build_layers(self, found: list[tuple[int, int, Bits, Bits]], cheapest: int) -> None:
        depth = 1 + max(steps for _, steps, _, _ in found)
        self._class_layers = [0] * depth
        self._member_layers = [0] * depth
        for cost, steps, classes, members in found:
            self._class_layers[steps] |= classes
            self._member_layers[steps] |= members
            # Afterwards every step of a cheapest path has reduced cost 0. The sink keeps its potential, as do
            # the nodes that are no nearer than it.
            if cost < cheapest:
                _shift(self._class_potential, self._classes_by_potential, classes, cost - cheapest)
                _shift(self._member_potential, self._members_by_potential, members, cost - cheapest)
        self._source_potential -= cheapest

    # --- Sending units ------------------------------------------------------------------------------

    def _augment_from(self, source: _Node) -> bool:
        """Send units from a source along one path through the layers; return whether a path was found.

        Depth-first, as in Dinic's algorithm: a node that leads to no sink is removed from its layer.
        """
        if not self._is_source(source):
            return False
        path = [source]
        while path:
            is_class, number = path[-1]
            if not is_class and self._is_sink(number):
                self._augment(path)
                return True
            admissible = self._admissible(is_class, number, len(path))
            if admissible:
                path.append(
                    (
                        not is_class,
                        self._rotated_choice(admissible, len(self.excess if is_class else self.left)),
                    )
                )
            else:
                path.pop()
                (self._class_layers if is_class else self._member_layers)[len(path)] &= ~(1 << number)
        return False

    def _is_source(self, node: _Node) -> bool:
        is_class, number = node
        if is_class:
            return self.left[number] > 0 and bool(self._class_layers[0] >> number & 1)
        return self.excess[number] > 0 and bool(self._member_layers[0] >> number & 1)

    def _is_sink(self, member: int) -> bool:
        return self.excess[member] < 0 and self._member_potential[member] == self._sink_potential

    def _admissible(self, is_class: bool, number: int, steps: int) -> Bits:  # noqa: FBT001 - half of a node
        """Return the nodes of the next layer to which this node has an arc of reduced cost 0."""
        if steps >= len(self._class_layers):
            return 0
        admissible = 0
        if is_class:
            potential = self._class_potential[number]
            for price, to in self._addition_prices(number):
                admissible |= to & self._members_by_potential.get(potential + price, 0)
            return admissible & self._member_layers[steps]
        potential = self._member_potential[number]
        for price, to in self._removal_prices[number].items():
            admissible |= to & self._classes_by_potential.get(potential + price, 0)
        return admissible & self._class_layers[steps]

    def _rotated_choice(self, nodes: Bits, count: int) -> int:
        """Return the next of these nodes in rotation, so that not all units take the same path.

        Args:
            nodes: The nodes to choose from, as a set of indexes.
            count: The number of nodes of their kind, classes or members.
        """
        turn = self._paths_sent % count
        nodes = nodes >> turn << turn or nodes  # those from `turn` on, or all if there are none
        return (nodes & -nodes).bit_length() - 1

    def _augment(self, path: list[_Node]) -> None:
        """Send as many units as the whole path admits."""
        (from_class, source), (_, sink) = path[0], path[-1]
        supply = self.left if from_class else self.excess
        arcs = [
            (here, there, 1) if is_class else (there, here, -1)
            for (is_class, here), (_, there) in pairwise(path)
        ]
        units = min(supply[source], -self.excess[sink], *(self._residual(*arc) for arc in arcs))
        self._paths_sent += 1
        supply[source] -= units
        self.excess[sink] += units
        for partition_class, member, sign in arcs:
            self._update(partition_class, member, sign * units)

    def _residual(self, partition_class: int, member: int, sign: int) -> int:
        """Return the number of units that can be added (sign 1) or removed (-1) before the price changes."""
        units = self._flow[partition_class].get(member, 0)
        owned = self._owned[partition_class].get(member, 0)
        if sign > 0:
            return owned - units if units < owned else _INFINITE
        return units - owned if units > owned else units

    # --- Prices -------------------------------------------------------------------------------------

    def _addition_prices(self, partition_class: int) -> list[tuple[int, Bits]]:
        """Return the members that can be given one more unit of the class, by price."""
        return [
            *self._below_owned_prices[partition_class].items(),
            *self._above_owned_prices[partition_class].items(),
        ]

    def _update(self, partition_class: int, member: int, units: int) -> None:
        """Add units to an arc, and update the prices of its next units."""
        self._changed.add((partition_class, member))
        owned = self._owned[partition_class].get(member, 0)
        base = self._rack_mismatch_cost if self._rack_mismatch[partition_class] >> member & 1 else 0
        before = self._flow[partition_class].get(member, 0)
        after = self._flow[partition_class][member] = before + units
        removal_prices, below_owned_prices = (
            self._removal_prices[member],
            self._below_owned_prices[partition_class],
        )
        if before:
            removal_prices[-base - self._move_cost if before > owned else -base] ^= 1 << partition_class
        if after:
            price = -base - self._move_cost if after > owned else -base
            removal_prices[price] = removal_prices.get(price, 0) | 1 << partition_class
        if before < owned <= after or after < owned <= before:
            below_owned_prices[base] = below_owned_prices.get(base, 0) ^ 1 << member


class _Frontier:
    """Priority queue of nodes to search from: by cost, then by the number of steps."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._nodes: dict[tuple[int, int], list[Bits]] = {}

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def least(self) -> int:
        return self._heap[0][0]

    def add(self, cost: int, steps: int, classes: Bits, members: Bits) -> None:
        if not classes and not members:
            return
        nodes = self._nodes.get((cost, steps))
        if nodes is None:
            self._nodes[cost, steps] = [classes, members]
            heappush(self._heap, (cost, steps))
        else:
            nodes[0] |= classes
            nodes[1] |= members

    def pop(self) -> tuple[int, int, Bits, Bits]:
        cost, steps = heappop(self._heap)
        classes, members = self._nodes.pop((cost, steps))
        return cost, steps, classes, members


def _by_class(arcs: Arcs, amounts: Int64Array, classes: int) -> list[dict[int, int]]:
    """Return, for each class, the amounts other than 0 by member."""
    by_class: list[dict[int, int]] = [{} for _ in range(classes)]
    some = np.flatnonzero(amounts)
    columns = arcs.class_of_arc[some].tolist(), arcs.member_of_arc[some].tolist(), amounts[some].tolist()
    for partition_class, member, amount in zip(*columns, strict=True):
        by_class[partition_class][member] = amount
    return by_class


def _sets_by_price(
    which: Int64Array, number: Int64Array, price: Int64Array, flags: BoolArray, sets: int, numbers: int
) -> list[_SetBy]:
    """Return, for each set, its flagged elements by price; see `sets_of` for the other arguments."""
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


def _shift(potential: list[int], at: _SetBy, nodes: Bits, by: int) -> None:
    """Add a number to the potentials of these nodes."""
    shifted = [(old, bits & nodes) for old, bits in at.items() if bits & nodes]
    for old, bits in shifted:
        at[old] ^= bits
    for old, bits in shifted:
        at[old + by] = at.get(old + by, 0) | bits
        for number in iter_bits(bits):
            potential[number] = old + by
        if not at[old]:
            del at[old]
