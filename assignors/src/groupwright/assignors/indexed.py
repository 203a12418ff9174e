"""Assignment by index, for tools that assign one group many times, such as what-if studies.

Members, topics and partitions are integers, and the owners one array. The results are those of the assignors
`sticky` and `cooperative-sticky`.
"""

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._algorithms.sticky import best_owners
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.order import sorted_names, utf16_order

__all__ = ["IndexedGroup", "Owners", "min_moves", "sorted_names", "sticky_owners", "utf16_order"]

Owners = Int32Array
"""`(partitions,) int32`: the index of the owner of each partition of all topics, or `UNASSIGNED`."""


def sticky_owners(group: Group, indexed: IndexedGroup, owners: Owners) -> Owners:
    """Return the owners that the `sticky` assignor chooses.

    Args:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        owners: The current owners.
    """
    return best_owners(group, indexed, owners)


def min_moves(group: Group, indexed: IndexedGroup, owners: Owners) -> int:
    """Return the number of moves that the best balance requires; see `sticky_owners` for the arguments."""
    classes, _ = classify_partitions(group, indexed, owners)
    return int(np.maximum(classes.owned - best_flow(classes), 0).sum())
