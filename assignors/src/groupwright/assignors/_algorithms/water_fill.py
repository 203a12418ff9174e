"""Water-filling: units go to the lowest levels."""

from __future__ import annotations

import numpy as np

from groupwright.assignors._model.arrays import Int64Array


def water_fill(levels: Int64Array, units: int) -> Int64Array:
    """Return `(levels,) int64`: the units added if each goes to the lowest level.

    Among equals it goes to the one that was lowest before, and of these to the first one.

    Args:
        levels: `(levels,) int64`: the levels before, at least one.
        units: The number of units.
    """
    bits = levels.size.bit_length()
    ascending = np.sort((levels << bits) + np.arange(levels.size))  # the low bits break ties by index
    order, lowest = ascending & ((1 << bits) - 1), ascending >> bits
    sum_before = np.cumsum(lowest) - lowest
    raised = int(np.searchsorted(np.arange(levels.size) * lowest - sum_before, units, side="right"))
    level, remainder = divmod(units + int(sum_before[raised - 1] + lowest[raised - 1]), raised)
    gained = np.zeros(levels.size, np.int64)
    gained[order[:raised]] = level - lowest[:raised]
    gained[order[:remainder]] += 1
    return gained
