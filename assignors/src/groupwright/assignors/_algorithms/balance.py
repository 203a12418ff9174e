"""Balance: the most even loads that the subscriptions allow.

Assignments with the smallest sum of squared loads also have the smallest maximum (optimal semi-matchings:
Harvey, Ladner, Lovász, Tamir 2006), and they share one structure. The members form blocks: within a block,
every load is the block's average, rounded down or up, and a partition is assigned to members of one block
only. Every assignment with these loads is equally balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.bits import sets_of
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._algorithms.partition_classes import PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import BoolArray, Int64Array


@dataclass(frozen=True, eq=False)
class Balance:
    """One of the most balanced assignments, and the blocks that all of them share.

    Attributes:
        flow: `(arcs,) int64`: the partitions on each arc in one such assignment.
        block_of: `(members,) int64`: the block of each member.
        class_block: `(classes,) int64`: the block whose members are assigned each class.
    """

    flow: Int64Array
    block_of: Int64Array
    class_block: Int64Array


def balance(classes: PartitionClasses) -> Balance:
    """Return the blocks of a group, and a most balanced assignment.

    Args:
        classes: The group, without racks.
    """
    flow = _fill_lowest(classes, classes.owned)
    if _imbalance(classes, flow) > 1 and classes.owned.any():
        from_scratch = _fill_lowest(classes, np.zeros_like(classes.owned))
        if _squares(classes, from_scratch) < _squares(classes, flow):
            flow = from_scratch
    if _imbalance(classes, flow) > 1:
        return _BlockBalancer(classes, flow).run()
    return Balance(flow, np.zeros(classes.members, np.int64), np.zeros(classes.sizes.size, np.int64))


def _fill_lowest(classes: PartitionClasses, owned: Int64Array) -> Int64Array:
    """Return a flow in which members keep their owned partitions, and the others go to the lowest loads.

    In the first pass no member gets more than its fair share of a class, so that classes are spread; in the
    second there is no limit. Classes with few subscribers come first, as they have the least choice.
    """
    flow = owned.copy()
    loads = classes.loads(flow)
    unassigned = classes.sizes - classes.totals(flow)
    degrees = np.diff(classes.starts)
    for limits in (-(-classes.sizes // degrees), classes.sizes):
        for partition_class in np.argsort(degrees, kind="stable").tolist():
            if unassigned[partition_class]:
                arcs = slice(classes.starts[partition_class], classes.starts[partition_class + 1])
                members = classes.member_of_arc[arcs]
                gained = water_fill(loads[members], int(unassigned[partition_class]))
                gained = np.minimum(gained, np.maximum(0, limits[partition_class] - flow[arcs]))
                unassigned[partition_class] -= gained.sum()
                flow[arcs] += gained
                loads[members] += gained
    return flow


def _imbalance(classes: PartitionClasses, flow: Int64Array) -> int:
    return int(np.ptp(classes.loads(flow)))


def _squares(classes: PartitionClasses, flow: Int64Array) -> int:
    return int((classes.loads(flow) ** 2).sum())


class _BlockBalancer:
    """Splits the members into blocks, and evens out the loads within each.

    All members begin in one block. Units move from loads above the block's average, from member to class to
    member, to loads below it. When no unit can move any further, the members that can be reached from those
    above the average have higher loads in every assignment, so they are split off as a block of their own.
    """

    def __init__(self, classes: PartitionClasses, flow: Int64Array) -> None:
        """Start with one block.

        Args:
            classes: The group, without racks.
            flow: `(arcs,) int64`: an assignment of all partitions.
        """
        self._classes = classes
        self._loads = classes.loads(flow)
        self._block_of = np.zeros(classes.members, np.int64)
        self._subscriber_sets = sets_of(
            classes.class_of_arc, classes.member_of_arc, classes.sizes.size, classes.members
        )
        arcs = Arcs(
            class_of_arc=classes.class_of_arc,
            member_of_arc=classes.member_of_arc,
            flow=flow,
            owned=np.zeros_like(flow),
            rack_mismatch=np.zeros(flow.size, np.bool_),
            open=np.ones(flow.size, np.bool_),
        )
        no_units = np.zeros(classes.sizes.size, np.int64), np.zeros(classes.members, np.int64)
        self._flow_network = MinCostFlow(arcs, *no_units)

    def run(self) -> Balance:
        excess = self._excess()
        while excess.any():
            self._even_out(excess)
            self._split_blocks()
            excess = self._excess()
        return Balance(self._flow_network.flow(), self._block_of, self._class_block())

    def _excess(self) -> Int64Array:
        """Return `(members,) int64`: the units above the block's average load, or below it if negative.

        While a block has a load above its average, rounded up, loads are compared with that. Later, while it
        has a load below its average, rounded down, they are compared with that one. In the other blocks every
        load is the average, rounded down or up, and the excess is 0.
        """
        total = np.bincount(self._block_of, self._loads).astype(np.int64)
        floor, rest = np.divmod(total, np.bincount(self._block_of))
        ceiling = floor + (rest > 0)
        above = self._loads - ceiling[self._block_of]
        too_high = self._in_blocks_with(above > 0)
        above_floor = self._loads - floor[self._block_of]
        too_low = self._in_blocks_with(above_floor < 0)
        return np.where(too_high, above, np.where(too_low, above_floor, 0))

    def _even_out(self, excess: Int64Array) -> None:
        """Move units within the blocks from members with an excess to members with room."""
        all_members = np.arange(self._classes.members)
        blocks = sets_of(self._block_of, all_members, int(self._block_of.max()) + 1, self._classes.members)
        class_blocks = zip(self._subscriber_sets, self._class_block().tolist(), strict=True)
        self._flow_network.restrict(
            [subscriber_set & blocks[block] for subscriber_set, block in class_blocks]
        )
        self._flow_network.excess = excess.tolist()
        self._flow_network.run()
        self._loads += np.array(self._flow_network.excess) - excess

    def _split_blocks(self) -> None:
        """Split the reached members off into blocks of their own."""
        reached = [self._flow_network.reached >> member & 1 for member in range(self._classes.members)]
        self._block_of = np.unique(self._block_of * 2 + reached, return_inverse=True)[1]

    def _in_blocks_with(self, flags: BoolArray) -> BoolArray:
        """Return `(members,) bool`: the members of blocks that have a flagged member."""
        return np.bincount(self._block_of, flags)[self._block_of] > 0

    def _class_block(self) -> Int64Array:
        """Return `(classes,) int64`: the block of each class, all of whose units are in one block."""
        return self._block_of[self._flow_network.some_holder()]
