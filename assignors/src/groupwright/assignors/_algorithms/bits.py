"""Bit sets: sets of small numbers as Python integers, with fast union, intersection and search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groupwright.assignors._model.arrays import BoolArray, IntegerArray

Bits = int
"""Set of small numbers: number `i` is bit `i` of an integer of any size."""

_CHUNK = 1 << 22  # flags held at a time


def iter_bits(bits: Bits) -> Iterator[int]:
    """Iterate over the numbers in a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def bits_where(flags: BoolArray) -> Bits:
    """Return the set of the indexes where the flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def sets_of(set_index: IntegerArray, element: IntegerArray, set_count: int, bound: int) -> list[Bits]:
    """Return the sets that these pairs describe, each pair being a set and one element of it.

    Args:
        set_index: `(pairs,)` integers: the index of the set.
        element: `(pairs,)` integers: the element.
        set_count: The number of sets.
        bound: An upper bound of the elements, exclusive.
    """
    at_once = max(1, _CHUNK // max(1, bound))
    order = (
        np.argsort(set_index, kind="stable")
        if at_once < set_count and (set_index[1:] < set_index[:-1]).any()
        else None
    )
    if order is not None:
        set_index, element = set_index[order], element[order]
    result: list[Bits] = []
    for first in range(0, set_count, at_once):
        count = min(at_once, set_count - first)
        if at_once < set_count:
            start, end = np.searchsorted(set_index, [first, first + count])
            chunk_sets, chunk_elements = set_index[start:end] - first, element[start:end]
        else:
            chunk_sets, chunk_elements = set_index, element
        flags = np.zeros((count, bound), np.bool_)
        flags[chunk_sets, chunk_elements] = True
        result += [
            int.from_bytes(packed, "little") for packed in np.packbits(flags, axis=1, bitorder="little")
        ]
    return result
