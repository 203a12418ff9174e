"""The plan of `range`: who gets which ranges, with racks and without."""

import numpy as np
import numpy.typing as npt

from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._algorithms.range_racks import rack_aware_seats
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.group import Group


def plan_ranges(group: Group) -> Assignment:
    """Return what `RangeAssignor` does."""
    layout = Layout.of(group)
    seats = _ranges(layout)
    if any(member.rack is not None for member in group.members):
        for topics, in_each in rack_aware_seats(group, layout):
            seats[layout.starts[topics][:, np.newaxis] + np.arange(in_each.size)] = in_each
    return layout.assignment(seats)


def _ranges(layout: Layout) -> npt.NDArray[np.int32]:
    """Return each partition's seat where no racks matter."""
    each, larger = (numbers[layout.topic] for numbers in np.divmod(layout.sizes, layout.audience_sizes))
    # The first `larger` seats have `each + 1` partitions, the others `each`. Of the two quotients the first is
    # right, and the greater, for the former, the second for the latter.
    seats: npt.NDArray[np.int32] = np.maximum(
        layout.partition // (each + 1), (layout.partition - larger) // np.maximum(each, 1)
    )
    return seats
