"""Cache of the built-in assignors' results, by group shape and owners."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from groupwright.assignors import UNASSIGNED, assign, by_name
from groupwright.assignors.indexed import min_moves, sticky_owners
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners, ShapeKey

_BUDGET = 2**26  # bytes of plans, roughly
_ENTRY = 200  # bytes that a plan takes besides its arrays
_MOST_ROUNDS = 8


class NotSettledError(Exception):
    """A cooperative assignor does not stop withholding partitions."""


@dataclass(slots=True)
class PlanCache:
    """Computes assignments and caches them: the same shape with the same owners recurs often in a history.

    Each worker has its own cache, of bounded size. Caching does not change results.
    """

    _structures: dict[ShapeKey, GroupShape] = field(default_factory=dict)
    _plans: dict[tuple[GroupShape, str, bytes], Owners] = field(default_factory=dict)
    _fewest: dict[tuple[GroupShape, bytes], int] = field(default_factory=dict)
    _size: int = 0

    def structure(self, key: ShapeKey) -> GroupShape:
        """Return the group shape of this key."""
        known = self._structures.get(key)
        if known is None:
            known = self._structures[key] = GroupShape(key)
            self._grow(64 * (known.partitions + known.members) + 4096)
        return known

    def fixed(self, name: str, structure: GroupShape) -> Owners:
        """Return the assignment of `range` or `roundrobin`, which ignore owned partitions."""
        return self._remembered(
            (structure, name, b""),
            lambda: structure.layout.owners_of(assign(by_name(name), structure.group)),
        )

    def sticky(self, structure: GroupShape, owned: Owners) -> Owners:
        """Return the assignment of `sticky`: optimally balanced, with the fewest moves."""
        return self._remembered(
            (structure, "sticky", owned.tobytes()),
            lambda: sticky_owners(structure.group, structure.layout, owned),
        )

    def fewest_moves(self, structure: GroupShape, owned: Owners) -> int:
        """Return the minimum of moves for an optimally balanced assignment, which `sticky` attains."""
        key = (structure, owned.tobytes())
        plan = self._plans.get((structure, "sticky", key[1]))
        if plan is not None:
            return int(np.count_nonzero((owned != UNASSIGNED) & (owned != plan)))
        if key not in self._fewest:
            moves = min_moves(structure.group, structure.layout, owned)
            self._grow(_ENTRY + len(key[1]))
            self._fewest[key] = moves
        return self._fewest[key]

    def settled(self, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:
        """Return the final assignment of `cooperative-sticky`, and the number of rebalances until then.

        Each rebalance computes the assignment of `sticky`, and withholds partitions that another member must
        revoke first (KIP-429).
        """
        for rounds in range(1, _MOST_ROUNDS + 1):
            wanted = self.sticky(structure, owned)
            withheld = (owned != UNASSIGNED) & (wanted != owned)
            if not withheld.any():
                return wanted, rounds
            owned = np.where(withheld, np.int32(UNASSIGNED), wanted)
        raise NotSettledError(f"partitions are still withheld after {_MOST_ROUNDS} rebalances")

    def _remembered(self, key: tuple[GroupShape, str, bytes], plan: Callable[[], Owners]) -> Owners:
        known = self._plans.get(key)
        if known is None:
            known = plan()
            self._grow(_ENTRY + len(key[2]) + known.nbytes)
            self._plans[key] = known
        return known

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _BUDGET:
            self._plans.clear()
            self._fewest.clear()
            self._structures.clear()
            self._size = 0
