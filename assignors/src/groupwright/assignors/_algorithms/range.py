"""Computation of `range`, with and without racks."""

from __future__ import annotations

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.range_racks import rack_aware_index
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group


def plan_ranges(group: Group, *, with_racks: bool = True) -> Assignment:
    """Return the assignment of `RangeAssignor`, or of `BrokerRangeAssignor`, which ignores racks."""
    indexed = IndexedGroup.of(group)
    subscriber_index = _ranges(indexed)
    if with_racks and any(member.rack is not None for member in group.members):
        for topics, rack_aware in rack_aware_index(group, indexed):
            subscriber_index[indexed.starts[topics][:, np.newaxis] + np.arange(rack_aware.size)] = rack_aware
    return indexed.assignment_by_index(subscriber_index)


def _ranges(indexed: IndexedGroup) -> Int32Array:
    """Return `(partitions,) int32`: each owner's index among the topic's subscribers, regardless of racks."""
    per_subscriber, larger = (
        numbers[indexed.topic] for numbers in np.divmod(indexed.sizes, indexed.subscriber_counts)
    )
    # The first `larger` subscribers have `per_subscriber + 1` partitions, the others `per_subscriber`. The
    # first quotient is the index of the former, the second that of the latter; the larger one is right.
    subscriber_index: Int32Array = np.maximum(
        indexed.partition // (per_subscriber + 1),
        (indexed.partition - larger) // np.maximum(per_subscriber, 1),
    )
    return subscriber_index
