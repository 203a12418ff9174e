"""Bit sets: sets of small numbers as Python integers, with fast union, intersection and search."""

from collections.abc import Iterator

import numpy as np

from groupwright.assignors._model.arrays import BoolArray, IntegerArray

Bits = int
"""Set of small numbers: number `i` is bit `i` of an integer of any size."""

_CHUNK = 1 << 22


def iter_bits(bits: Bits) -> Iterator[int]:
    """Iterate over the numbers in a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def bits_where(flags: BoolArray) -> Bits:
    """Return the set of the indexes where the flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def sets_of(which: IntegerArray, number: IntegerArray, sets: int, numbers: int) -> list[Bits]:
    """Return sets from pairs of a set and a number in it.

    Args:
        which: `(pairs,)` integers: the index of the set.
        number: `(pairs,)` integers: the number.
        sets: The number of sets.
        numbers: An upper bound of the numbers, exclusive.
    """
    at_once = max(1, _CHUNK // max(1, numbers))
    order = np.argsort(which, kind="stable") if at_once < sets and (which[1:] < which[:-1]).any() else None
    if order is not None:
        which, number = which[order], number[order]
    made: list[Bits] = []
    for first in range(0, sets, at_once):
        count = min(at_once, sets - first)
        if at_once < sets:
            start, end = np.searchsorted(which, [first, first + count])
            here, numbers_here = which[start:end] - first, number[start:end]
        else:
            here, numbers_here = which, number
        flags = np.zeros((count, numbers), np.bool_)
        flags[here, numbers_here] = True
        made += [int.from_bytes(packed, "little") for packed in np.packbits(flags, axis=1, bitorder="little")]
    return made
