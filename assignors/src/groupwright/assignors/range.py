"""Kafka's `range` assignor."""

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.group import Group

if TYPE_CHECKING:
    from groupwright.assignors._model.assignment import Assignment


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

    def assign(self, group: Group) -> "Assignment":
        """Return the ranges."""
        from groupwright.assignors._algorithms.range import plan_ranges  # noqa: PLC0415 - numpy comes with it, which members that do not lead can do without

        return plan_ranges(group)
