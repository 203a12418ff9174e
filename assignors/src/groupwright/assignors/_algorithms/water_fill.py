"""Pouring: units go to whoever has the least."""

import numpy as np

from groupwright.assignors._model.arrays import Int64Array


def water_fill(levels: Int64Array, units: int) -> Int64Array:
    """Return how many units each gets if each one goes to whoever has the least by then, the first of equals.

    Args:
        levels: What each has; at least one.
        units: How many units there are.
    """
    bits = levels.size.bit_length()
    ascending = np.sort((levels << bits) + np.arange(levels.size))  # the numbers at the end part equals
    order, lowest = ascending & ((1 << bits) - 1), ascending >> bits
    before = np.cumsum(lowest) - lowest
    wet = int(np.searchsorted(np.arange(levels.size) * lowest - before, units, side="right"))
    level, more = divmod(units + int(before[wet - 1] + lowest[wet - 1]), wet)
    gained = np.zeros(levels.size, np.int64)
    gained[order[:wet]] = level - lowest[:wet]
    gained[order[:more]] += 1
    return gained
