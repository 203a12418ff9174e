"""Sets of small numbers, each one integer of Python: fast to join, meet and search, however many there are."""

from collections.abc import Iterator

import numpy as np

from groupwright.assignors._model.arrays import BoolArray, IntegerArray

Bits = int
"""A set of small numbers: bit i of an integer, which may have thousands."""

_CHUNK = 1 << 22


def iter_bits(bits: Bits) -> Iterator[int]:
    """Go through the numbers in a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def bits_where(flags: BoolArray) -> Bits:
    """Return the set of the places where the flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def sets_of(which: IntegerArray, number: IntegerArray, sets: int, numbers: int) -> list[Bits]:
    """Return sets, given pair by pair which of them has which number.

    Args:
        which: The place of a set.
        number: A number that it has.
        sets: How many sets there are.
        numbers: How many numbers there are.
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
