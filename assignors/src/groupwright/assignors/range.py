"""Kafka's `range` assignor."""

import numpy as np
import numpy.typing as npt

from groupwright.assignors.assignment import Assignment
from groupwright.assignors.assignor import Assignor
from groupwright.assignors.layout import Layout
from groupwright.assignors.model import Group
from groupwright.assignors.range_racks import rack_aware_seats


class RangeAssignor(Assignor):
    """Cuts each topic into ranges, one a subscriber: Java's `RangeAssignor`, result for result.

    In this order it sees to it that

    1. every partition of a subscribed topic has an owner;
    2. of each topic by itself, no member gets two partitions more than another, and what a member gets is
       one range;
    3. topics with the same subscribers and the same number of partitions are cut in the same places, so
       that joined topics stay together;
    4. members get partitions of which a replica is in their rack (KIP-881). All replicas count, offline ones
       too, and a member without a rack is at home in each. The shares are as large as without racks, but then
       no ranges. This is how Java does it, one member or partition after the other, and it can miss matches;
    5. the first members get the larger shares. Static members come first, by `group.instance.id`, and so
       keep their partitions over a restart; then dynamic ones, by member id.

    It does not balance across topics: with many topics of few partitions the last members idle. Nor does it
    look at what members own.

    Example:
        Members a, b and c subscribe to `orders` (7 partitions) and to `audit` (2)::

            a: orders 0 1 2, audit 0
            b: orders 3 4,   audit 1
            c: orders 5 6

        If a is in rack r1, b and c are in r2, and of `orders` the even partitions are in r1 and the odd ones in
        r2, then a gets 0, 2 and 4, b gets 1 and 3, and c gets 5; what is left, 6, goes to c too.
    """

    name = "range"

    def assign(self, group: Group) -> Assignment:
        """Return the ranges."""
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
