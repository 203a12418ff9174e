"""Shapes of the traffic: the share of each partition, and how it drifts."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
"""By partition, `(partitions,) float64`: its share of the traffic; all add up to 1."""

_SEED = 2019
_EXPONENT = 0.6
_HOT = 6
_NEIGHBOURS = 6
_NEIGHBOURS_SHARE = 1.8 / 8
_DRIFTING = 0.5


class Shape(StrEnum):
    """The shapes."""

    NEIGHBOURS = "neighbours"
    """Six neighbouring partitions, which counts assign to one of eight members, have 1.8 times its share."""

    POWER_LAW = "power law"
    """The partition of rank k has k to the power of -0.6, in random order."""

    HOT = "hot partitions"
    """Six partitions, chosen at random, have half of the traffic; the others share the rest evenly."""


def shares(shape: Shape, partitions: int) -> Shares:
    """Return the shares of the partitions; always the same."""
    seeded = np.random.default_rng(_SEED)
    match shape:
        case Shape.NEIGHBOURS:
            made = np.full(partitions, (1 - _NEIGHBOURS_SHARE) / (partitions - _NEIGHBOURS))
            first = partitions // 2
            made[first : first + _NEIGHBOURS] = _NEIGHBOURS_SHARE / _NEIGHBOURS
        case Shape.POWER_LAW:
            made = seeded.permutation(np.arange(1, partitions + 1) ** -_EXPONENT)
        case Shape.HOT:
            made = np.full(partitions, 0.5 / (partitions - _HOT))
            made[seeded.choice(partitions, _HOT, replace=False)] = 0.5 / _HOT
    result: Shares = made / made.sum()
    return result


def drifted(shares_before: Shares, drift: int) -> Shares:
    """Return the shares after a drift: a random half of the partitions exchange theirs.

    Args:
        shares_before: Shares before the drift.
        drift: Number of the drift; the same number chooses the same partitions.
    """
    seeded = np.random.default_rng((_SEED, drift))
    chosen = seeded.choice(shares_before.size, round(_DRIFTING * shares_before.size), replace=False)
    result = shares_before.copy()
    result[chosen] = shares_before[seeded.permutation(chosen)]
    return result


def split(messages: int, by: Shares) -> list[int]:
    """Return the numbers of messages by partition, which add up to `messages`."""
    ends = np.rint(np.cumsum(by) * messages).astype(np.int64)
    numbers: list[int] = np.diff(ends, prepend=0).tolist()
    return numbers
