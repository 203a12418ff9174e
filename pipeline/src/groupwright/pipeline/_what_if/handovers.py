"""Handover generations, merged with the rebalance that caused them.

A cooperative assignor (KIP-429) withholds a partition from its new owner until the present owner has revoked
it. The group then rebalances again, with the same members. These generations are part of one event, as in
`groupwright.assignors.simulate`.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline._what_if.history import RecordedGeneration


def merge_handovers(
    generations: Iterable[RecordedGeneration], partitions: int
) -> tuple[RecordedGeneration, ...]:
    """Return the generations, each merged with the handover generations that follow it.

    Args:
        generations: The generations in order.
        partitions: Number of all partitions of the history.
    """
    merged: list[RecordedGeneration] = []
    before, after = (np.full(partitions, UNASSIGNED, np.int64) for _ in range(2))
    for generation in generations:
        if merged and _is_handover(merged[-1], generation, before):
            handovers = (*merged[-1].handovers, generation)
            merged[-1] = replace(merged[-1], actual=generation.actual, handovers=handovers)
        else:
            before = after
            merged.append(generation)
        after = _owners(generation, partitions)
    return tuple(merged)


def _is_handover(
    previous: RecordedGeneration, generation: RecordedGeneration, before: npt.NDArray[np.int64]
) -> bool:
    """Return whether a generation only assigns partitions that the previous one withheld.

    Args:
        previous: The previous generation, or the result of its handovers.
        generation: The generation.
        before: `(all partitions,) int64`, the owners before the event that caused the previous generation.
    """
    if (
        generation.key is None
        or generation.key != previous.key
        or not np.array_equal(generation.identities, previous.identities)
        or not np.array_equal(generation.partition_indices, previous.partition_indices)
    ):
        return False
    changed = generation.actual != previous.actual
    had_owner = before[generation.partition_indices] != UNASSIGNED
    is_withheld = (previous.actual == UNASSIGNED) & had_owner
    moved_at_once = changed & (previous.actual != UNASSIGNED) & (generation.actual != UNASSIGNED)
    return bool((changed & is_withheld).any() and not moved_at_once.any())


def _owners(generation: RecordedGeneration, partitions: int) -> npt.NDArray[np.int64]:
    """Return the identity of the owner of each partition of the history."""
    owners = np.full(partitions, UNASSIGNED, np.int64)
    if generation.key is not None:
        identity = np.append(generation.identities, UNASSIGNED)
        owners[generation.partition_indices] = identity[generation.actual]
    return owners
