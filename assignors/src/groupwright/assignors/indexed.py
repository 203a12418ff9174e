"""Assignment by index, for tools that assign one group many times, such as what-if studies.

Members, topics and partitions are integers, and the owners one array. The results are those of the assignors
`sticky` and `cooperative-sticky`, and of `simulate`, which takes five times as long for a small group.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._algorithms.sticky import best_owners
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.columns import UNASSIGNED
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import sorted_names, utf16_order
from groupwright.assignors.errors import AssignorError

__all__ = [
    "IndexedGroup",
    "Owners",
    "min_moves",
    "simulate_cooperative",
    "sorted_names",
    "sticky_owners",
    "utf16_order",
]

_MAX_REBALANCES = 8

Owners = Int32Array
"""`(partitions,) int32`: the index of the owner of each partition of all topics, or `UNASSIGNED`."""


def sticky_owners(group: Group, indexed: IndexedGroup, owners: Owners) -> Owners:
    """Return the owners that the `sticky` assignor chooses.

    Args:
        group: The group; what its members own is ignored.
        indexed: The indexed form of the group, with at least one partition.
        owners: The current owners, each of which subscribes to the topic.
    """
    return best_owners(group, indexed, owners)


def simulate_cooperative(best: Callable[[Owners], Owners], owners: Owners) -> tuple[Owners, int]:
    """Simulate the rebalances of a cooperative assignor, as `simulate` does.

    A partition that moves is withheld from its new owner, while its present owner revokes it (KIP-429).

    Args:
        best: Returns the owners that the assignor chooses, from the current ones.
        owners: The current owners.

    Returns:
        The owners when no partition is withheld, and the number of rebalances until then.

    Raises:
        AssignorError: Partitions are still withheld after 8 rebalances.
    """
    for rebalances in range(1, _MAX_REBALANCES + 1):
        target = best(owners)
        is_withheld = (owners != UNASSIGNED) & (target != owners)
        if not is_withheld.any():
            return target, rebalances
        owners = np.where(is_withheld, np.int32(UNASSIGNED), target)
    raise AssignorError(f"the group does not settle: partitions are withheld in rebalance {_MAX_REBALANCES}")


def min_moves(group: Group, indexed: IndexedGroup, owners: Owners) -> int:
    """Return the number of moves that the best balance requires.

    Args:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        owners: The current owners.
    """
    classes, _ = classify_partitions(group, indexed, owners)
    return int(np.maximum(classes.owned - best_flow(classes), 0).sum())
