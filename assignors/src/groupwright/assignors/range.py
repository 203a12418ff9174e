"""Kafka's `range` assignor."""

import numpy as np

from groupwright.assignors.assignment import Assignment
from groupwright.assignors.assignor import Assignor
from groupwright.assignors.layout import Layout
from groupwright.assignors.model import Group


class RangeAssignor(Assignor):
    """Cuts each topic into ranges, one a subscriber: Java's `RangeAssignor`, result for result.

    In this order it sees to it that

    1. every partition of a subscribed topic has an owner;
    2. of each topic by itself, no member gets two partitions more than another, and what a member gets is
       one range;
    3. topics with the same subscribers and the same number of partitions are cut in the same places, so
       that joined topics stay together;
    4. the first members get the larger ranges. Static members come first, by `group.instance.id`, and so
       keep their partitions over a restart; then dynamic ones, by member id.

    It does not balance across topics: with many topics of few partitions the last members idle. Nor does it
    look at what members own, nor, yet, at racks (KIP-881): where both members and replicas have racks, Java's
    result may be another.

    Example:
        Members a, b and c subscribe to `orders` (7 partitions) and to `audit` (2)::

            a: orders 0 1 2, audit 0
            b: orders 3 4,   audit 1
            c: orders 5 6
    """

    name = "range"

    def assign(self, group: Group) -> Assignment:
        """Return the ranges."""
        layout = Layout.of(group)
        each, larger = (numbers[layout.topic] for numbers in np.divmod(layout.sizes, layout.audience_sizes))
        # The first `larger` seats have `each + 1` partitions, the others `each`. Of the two quotients the first is
        # right, and the greater, for the former, the second for the latter.
        seats = np.maximum(layout.partition // (each + 1), (layout.partition - larger) // np.maximum(each, 1))
        return layout.assignment(seats)
