"""How many partitions each member gets: the most even loads that the subscriptions allow.

Assignments with the smallest sum of squared loads also have the smallest maximum (optimal semi-matchings:
Harvey, Ladner, Lovász, Tamir 2006), and all of them look alike. The members fall into blocks: in each the loads
are its average, rounded down or up, and a partition is with members of one block only. Every way to give the
blocks' partitions to their members at these loads is as even as any other.
"""

from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.bits import sets_of
from groupwright.assignors._algorithms.min_cost_flow import Arcs, MinCostFlow
from groupwright.assignors._algorithms.partition_classes import PartitionClasses
from groupwright.assignors._algorithms.water_fill import water_fill
from groupwright.assignors._model.arrays import BoolArray, Int64Array


@dataclass(frozen=True, eq=False)
class Balance:
    """What all assignments that are as even as can be have in common, and one of them.

    Attributes:
        flow: For each arc, how many of the row's partitions the member has in one such assignment.
        block_of: The block of each member.
        row_block: The block whose members share each row.
    """

    flow: Int64Array
    block_of: Int64Array
    class_block: Int64Array


def balance(classes: PartitionClasses) -> Balance:
    """Return the blocks of a group, and an assignment that is as even as can be.

    Args:
        classes: The group, without racks.
    """
    flow = _water_filled(classes, classes.owned)
    if _imbalance(classes, flow) > 1 and classes.owned.any():
        afresh = _water_filled(classes, np.zeros_like(classes.owned))
        if _squares(classes, afresh) < _squares(classes, flow):
            flow = afresh
    if _imbalance(classes, flow) > 1:
        return _BlockBalancer(classes, flow).run()
    return Balance(flow, np.zeros(classes.members, np.int64), np.zeros(classes.sizes.size, np.int64))


def _water_filled(classes: PartitionClasses, owned: Int64Array) -> Int64Array:
    """Return a flow in which members have what they own, and the rest of each row goes to the lowest loads.

    At first none gets more of a row than its fair share, so that rows are spread; what then is left goes anywhere.
    """
    flow = owned.copy()
    loads = classes.loads(flow)
    left = classes.sizes - classes.totals(flow)
    widths = np.diff(classes.starts)
    for most in (-(-classes.sizes // widths), classes.sizes):
        for partition_class in np.argsort(widths, kind="stable").tolist():
            if left[partition_class]:
                arcs = slice(classes.starts[partition_class], classes.starts[partition_class + 1])
                members = classes.member_of_arc[arcs]
                gained = water_fill(loads[members], int(left[partition_class]))
                gained = np.minimum(gained, np.maximum(0, most[partition_class] - flow[arcs]))
                left[partition_class] -= gained.sum()
                flow[arcs] += gained
                loads[members] += gained
    return flow


def _imbalance(classes: PartitionClasses, flow: Int64Array) -> int:
    return int(np.ptp(classes.loads(flow)))


def _squares(classes: PartitionClasses, flow: Int64Array) -> int:
    return int((classes.loads(flow) ** 2).sum())


class _BlockBalancer:
    """Parts the members into blocks, and evens out the loads of each.

    At first all members are one block. Units pass, from member to row to member, from loads above a block's
    average to loads below it. When no more can, the members that those above it could pass to have higher
    loads than the others whatever one does, and are a block of their own.
    """

    def __init__(self, classes: PartitionClasses, flow: Int64Array) -> None:
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
        nothing = np.zeros(classes.sizes.size, np.int64), np.zeros(classes.members, np.int64)
        self._flow_network = MinCostFlow(arcs, *nothing)

    def run(self) -> Balance:
        excess = self._surplus()
        while excess.any():
            self._fill_through_others(excess)
            self._split_blocks()
            excess = self._surplus()
        return Balance(self._flow_network.flow(), self._block_of, self._class_block())

    def _surplus(self) -> Int64Array:
        """Return how far members are above the average, in blocks where some are too far above or below it."""
        total = np.bincount(self._block_of, self._loads).astype(np.int64)
        floor, rest = np.divmod(total, np.bincount(self._block_of))
        ceiling = floor + (rest > 0)
        above = self._loads - ceiling[self._block_of]
        too_high = self._in_blocks_with(above > 0)
        above_floor = self._loads - floor[self._block_of]
        too_low = self._in_blocks_with(above_floor < 0)
        return np.where(too_high, above, np.where(too_low, above_floor, 0))

    def _fill_through_others(self, excess: Int64Array) -> None:
        everybody = np.arange(self._classes.members)
        blocks = sets_of(self._block_of, everybody, int(self._block_of.max()) + 1, self._classes.members)
        of_classes = zip(self._subscriber_sets, self._class_block().tolist(), strict=True)
        self._flow_network.restrict([subscriber_set & blocks[block] for subscriber_set, block in of_classes])
        self._flow_network.excess = excess.tolist()
        self._flow_network.run()
        self._loads += np.array(self._flow_network.excess) - excess

    def _split_blocks(self) -> None:
        """Make the members that were reached blocks of their own."""
        reached = [self._flow_network.reached >> member & 1 for member in range(self._classes.members)]
        self._block_of = np.unique(self._block_of * 2 + reached, return_inverse=True)[1]

    def _in_blocks_with(self, flags: BoolArray) -> BoolArray:
        return np.bincount(self._block_of, flags)[self._block_of] > 0

    def _class_block(self) -> Int64Array:
        return self._block_of[self._flow_network.some_holder()]
