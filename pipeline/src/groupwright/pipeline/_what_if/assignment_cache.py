"""Cache of the assignments of Kafka's assignors, by group shape and owners."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors import UNASSIGNED, assign, by_name
from groupwright.assignors.indexed import min_moves, simulate_cooperative, sticky_owners
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners, ShapeKey

_MAX_BYTES = 2**26  # estimated size at which the cache is emptied
_ENTRY_BYTES = 200  # estimated size of an entry without its arrays


@dataclass(slots=True)
class AssignmentCache:
    """Computes and caches assignments: in a history, the same owners of the same shape recur often.

    Each Spark worker has its own cache of at most 64 MiB. Caching does not change results.
    """

    _shapes: dict[ShapeKey, GroupShape] = field(default_factory=dict)
    _assignments: dict[tuple[GroupShape, str, bytes], Owners] = field(default_factory=dict)
    _fewest: dict[tuple[GroupShape, bytes], int] = field(default_factory=dict)
    _size: int = 0

    def shape(self, key: ShapeKey) -> GroupShape:
        """Return the group shape of this key."""
        cached = self._shapes.get(key)
        if cached is None:
            cached = self._shapes[key] = GroupShape(key)
            self._grow(64 * (cached.partitions + cached.members) + 4096)
        return cached

    def settled(self, name: str, shape: GroupShape, owned: Owners) -> tuple[Owners, int]:
        """Return the owners when the group has settled, and the number of rebalances until then.

        Args:
            name: An assignor of Kafka's.
            shape: The group.
            owned: The owners before the rebalances.
        """
        match name:
            case "sticky":
                return self._sticky(shape, owned), 1
            case "cooperative-sticky":
                return simulate_cooperative(lambda owners: self._sticky(shape, owners), owned)
        return self._cached(
            (shape, name, b""),  # the result does not depend on the owners
            lambda: shape.indexed.owners_of(assign(by_name(name), shape.group)),
        ), 1

    def _sticky(self, shape: GroupShape, owned: Owners) -> Owners:
        return self._cached(
            (shape, "sticky", owned.tobytes()),
            lambda: sticky_owners(shape.group, shape.indexed, owned),
        )

    def min_moves(self, shape: GroupShape, owned: Owners) -> int:
        """Return the minimum number of moves to an optimally balanced assignment, as `sticky` makes them."""
        key = (shape, owned.tobytes())
        assignment = self._assignments.get((shape, "sticky", key[1]))
        if assignment is not None:
            return int(np.count_nonzero((owned != UNASSIGNED) & (owned != assignment)))
        if key not in self._fewest:
            moves = min_moves(shape.group, shape.indexed, owned)
            self._grow(_ENTRY_BYTES + len(key[1]))
            self._fewest[key] = moves
        return self._fewest[key]

    def _cached(self, key: tuple[GroupShape, str, bytes], compute: Callable[[], Owners]) -> Owners:
        cached = self._assignments.get(key)
        if cached is None:
            cached = compute()
            self._grow(_ENTRY_BYTES + len(key[2]) + cached.nbytes)
            self._assignments[key] = cached
        return cached

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _MAX_BYTES:
            self._assignments.clear()
            self._fewest.clear()
            self._shapes.clear()
            self._size = 0
