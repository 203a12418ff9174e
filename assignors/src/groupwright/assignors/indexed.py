"""Assignment by number, for tools that assign one group many times, such as what-if studies.

An assignor reads names and bytes; here members, topics and partitions are numbers already, and owners are one array. The
results are those of the assignors `sticky` and `cooperative-sticky`.
"""

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.order import sorted_names, utf16_order

__all__ = ["IndexedGroup", "Owners", "min_moves", "sorted_names", "sticky_owners", "utf16_order"]

Owners = Int32Array
"""`(partitions,) int32`: for each partition, topics in order, its owner's number, or `UNASSIGNED`."""


def sticky_owners(group: Group, indexed: IndexedGroup, owners: Owners) -> Owners:
    """Return the owners that the sticky assignor chooses.

    Args:
        group: The group.
        indexed: The same group, by number.
        owners: The present owners.
    """
    classes, class_index = classify_partitions(group, indexed, owners)
    return choose_partitions(indexed, classes, class_index, best_flow(classes))


def min_moves(group: Group, indexed: IndexedGroup, owners: Owners) -> int:
    """Return the fewest owned partitions that must move for the best balance; arguments as for `sticky_owners`."""
    classes, _ = classify_partitions(group, indexed, owners)
    return int(np.maximum(classes.owned - best_flow(classes), 0).sum())
