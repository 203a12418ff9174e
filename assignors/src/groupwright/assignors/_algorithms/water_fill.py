"""Water-filling: units go to the lowest levels."""

import numpy as np

from groupwright.assignors._model.arrays import Int64Array


def water_fill(levels: Int64Array, units: int) -> Int64Array:
    """Return the units added to each level if every unit goes to the lowest level, the first of equals.

    Args:
        levels: `(levels,) int64`; not empty.
        units: The number of units.
    """
    bits = levels.size.bit_length()
    ascending = np.sort((levels << bits) + np.arange(levels.size))  # the low bits break ties by index
    order, lowest = ascending & ((1 << bits) - 1), ascending >> bits
    before = np.cumsum(lowest) - lowest
    wet = int(np.searchsorted(np.arange(levels.size) * lowest - before, units, side="right"))
    level, more = divmod(units + int(before[wet - 1] + lowest[wet - 1]), wet)
    gained = np.zeros(levels.size, np.int64)
    gained[order[:wet]] = level - lowest[:wet]
    gained[order[:more]] += 1
    return gained
