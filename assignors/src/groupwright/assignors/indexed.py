"""Assignment by number, for tools that assign one group many times, such as what-if studies.

An assignor reads names and bytes; here members, topics and partitions are numbers already, and owners are one array. The
results are those of the assignors `sticky` and `cooperative-sticky`.
"""

import numpy as np
import numpy.typing as npt

from groupwright.assignors._algorithms.indexed_group import Layout as IndexedGroup
from groupwright.assignors._algorithms.partition_classes import make_rows
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.order import sorted_names, utf16_order

__all__ = ["IndexedGroup", "Owners", "min_moves", "sorted_names", "sticky_owners", "utf16_order"]

Owners = npt.NDArray[np.int32]
"""`(partitions,) int32`: for each partition, topics in order, its owner's number, or `NOBODY`."""


def sticky_owners(group: Group, indexed: IndexedGroup, owners: Owners) -> Owners:
    """Return the owners that the sticky assignor chooses.

    Args:
        group: The group.
        indexed: The same group, by number.
        owners: The present owners.
    """
    rows, places = make_rows(group, indexed, owners)
    return choose_partitions(indexed, rows, places, best_flow(rows))


def min_moves(group: Group, indexed: IndexedGroup, owners: Owners) -> int:
    """Return the fewest owned partitions that must move for the best balance; arguments as for `sticky_owners`."""
    rows, _ = make_rows(group, indexed, owners)
    return int(np.maximum(rows.owned - best_flow(rows), 0).sum())
