"""The plan of `range`: who gets which ranges, with racks and without."""

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.range_racks import rack_aware_index
from groupwright.assignors._model.arrays import Int32Array
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.group import Group


def plan_ranges(group: Group) -> Assignment:
    """Return what `RangeAssignor` does."""
    indexed = IndexedGroup.of(group)
    subscriber_index = _ranges(indexed)
    if any(member.rack is not None for member in group.members):
        for topics, index_of_cut in rack_aware_index(group, indexed):
            subscriber_index[indexed.starts[topics][:, np.newaxis] + np.arange(index_of_cut.size)] = (
                index_of_cut
            )
    return indexed.assignment_by_index(subscriber_index)


def _ranges(indexed: IndexedGroup) -> Int32Array:
    """Return each partition's seat where no racks matter."""
    each, larger = (numbers[indexed.topic] for numbers in np.divmod(indexed.sizes, indexed.subscriber_counts))
    # The first `larger` seats have `each + 1` partitions, the others `each`. Of the two quotients the first is
    # right, and the greater, for the former, the second for the latter.
    subscriber_index: Int32Array = np.maximum(
        indexed.partition // (each + 1), (indexed.partition - larger) // np.maximum(each, 1)
    )
    return subscriber_index
