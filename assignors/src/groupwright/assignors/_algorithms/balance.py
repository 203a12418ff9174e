"""How many partitions each member gets: the most even loads that the subscriptions allow.

Assignments with the smallest sum of squared loads also have the smallest maximum (optimal semi-matchings:
Harvey, Ladner, Lovász, Tamir 2006), and all of them look alike. The members fall into blocks: in each the loads
are its average, rounded down or up, and a partition is with members of one block only. Every way to give the
blocks' partitions to their members at these loads is as even as any other.
"""

from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.bits import sets_of
from groupwright.assignors._algorithms.min_cost_flow import Arcs, Network
from groupwright.assignors._algorithms.partition_classes import Flags, Ints, Rows
from groupwright.assignors._algorithms.water_fill import pour


@dataclass(frozen=True, eq=False)
class Balance:
    """What all assignments that are as even as can be have in common, and one of them.

    Attributes:
        flow: For each arc, how many of the row's partitions the member has in one such assignment.
        block_of: The block of each member.
        row_block: The block whose members share each row.
    """

    flow: Ints
    block_of: Ints
    row_block: Ints


def balance(rows: Rows) -> Balance:
    """Return the blocks of a group, and an assignment that is as even as can be.

    Args:
        rows: The group, without racks.
    """
    flow = _poured(rows, rows.owned)
    if _unevenness(rows, flow) > 1 and rows.owned.any():
        afresh = _poured(rows, np.zeros_like(rows.owned))
        if _squares(rows, afresh) < _squares(rows, flow):
            flow = afresh
    if _unevenness(rows, flow) > 1:
        return _Evening(rows, flow).run()
    return Balance(flow, np.zeros(rows.members, np.int64), np.zeros(rows.sizes.size, np.int64))


def _poured(rows: Rows, owned: Ints) -> Ints:
    """Return a flow in which members have what they own, and the rest of each row goes to the lowest loads.

    At first none gets more of a row than its fair share, so that rows are spread; what then is left goes anywhere.
    """
    flow = owned.copy()
    loads = rows.loads(flow)
    left = rows.sizes - rows.totals(flow)
    widths = np.diff(rows.starts)
    for most in (-(-rows.sizes // widths), rows.sizes):
        for row in np.argsort(widths, kind="stable").tolist():
            if left[row]:
                arcs = slice(rows.starts[row], rows.starts[row + 1])
                members = rows.member[arcs]
                gained = pour(loads[members], int(left[row]))
                gained = np.minimum(gained, np.maximum(0, most[row] - flow[arcs]))
                left[row] -= gained.sum()
                flow[arcs] += gained
                loads[members] += gained
    return flow


def _unevenness(rows: Rows, flow: Ints) -> int:
    return int(np.ptp(rows.loads(flow)))


def _squares(rows: Rows, flow: Ints) -> int:
    return int((rows.loads(flow) ** 2).sum())


class _Evening:
    """Parts the members into blocks, and evens out the loads of each.

    At first all members are one block. Units pass, from member to row to member, from loads above a block's
    average to loads below it. When no more can, the members that those above it could pass to have higher
    loads than the others whatever one does, and are a block of their own.
    """

    def __init__(self, rows: Rows, flow: Ints) -> None:
        self._rows = rows
        self._loads = rows.loads(flow)
        self._block_of = np.zeros(rows.members, np.int64)
        self._audiences = sets_of(rows.row, rows.member, rows.sizes.size, rows.members)
        arcs = Arcs(
            row=rows.row,
            member=rows.member,
            flow=flow,
            kept=np.zeros_like(flow),
            far=np.zeros(flow.size, np.bool_),
            open=np.ones(flow.size, np.bool_),
        )
        nothing = np.zeros(rows.sizes.size, np.int64), np.zeros(rows.members, np.int64)
        self._network = Network(arcs, *nothing)

    def run(self) -> Balance:
        surplus = self._surplus()
        while surplus.any():
            self._pass_on(surplus)
            self._part()
            surplus = self._surplus()
        return Balance(self._network.flow(), self._block_of, self._row_block())

    def _surplus(self) -> Ints:
        """Return how far members are above the average, in blocks where some are too far above or below it."""
        total = np.bincount(self._block_of, self._loads).astype(np.int64)
        floor, rest = np.divmod(total, np.bincount(self._block_of))
        ceiling = floor + (rest > 0)
        above = self._loads - ceiling[self._block_of]
        too_high = self._in_blocks_with(above > 0)
        above_floor = self._loads - floor[self._block_of]
        too_low = self._in_blocks_with(above_floor < 0)
        return np.where(too_high, above, np.where(too_low, above_floor, 0))

    def _pass_on(self, surplus: Ints) -> None:
        everybody = np.arange(self._rows.members)
        blocks = sets_of(self._block_of, everybody, int(self._block_of.max()) + 1, self._rows.members)
        of_rows = zip(self._audiences, self._row_block().tolist(), strict=True)
        self._network.restrict([audience & blocks[block] for audience, block in of_rows])
        self._network.surplus = surplus.tolist()
        self._network.run()
        self._loads += np.array(self._network.surplus) - surplus

    def _part(self) -> None:
        """Make the members that were reached blocks of their own."""
        reached = [self._network.reached >> member & 1 for member in range(self._rows.members)]
        self._block_of = np.unique(self._block_of * 2 + reached, return_inverse=True)[1]

    def _in_blocks_with(self, flags: Flags) -> Flags:
        return np.bincount(self._block_of, flags)[self._block_of] > 0

    def _row_block(self) -> Ints:
        return self._block_of[self._network.some_holder()]
