"""Kafka's `range` assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.group import Group

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class RangeAssignor(Assignor):
    """Divides each topic into one range per subscriber, exactly as Java's `RangeAssignor` does.

    Its priorities, in this order:

    1. Every partition of a subscribed topic has an owner.
    2. Within each topic, the members' numbers of partitions differ by at most one, and each member has one
       range.
    3. Topics with the same subscribers and the same number of partitions are divided at the same partitions,
       so that joined topics are co-partitioned.
    4. Members are assigned partitions with a replica in their rack (KIP-881). All replicas count, including
       offline ones, and a member without a rack matches every partition. The numbers of partitions stay as
       without racks, but they are no longer ranges. As in Java, members and partitions are processed one by
       one, which can miss matches.
    5. The first members get the larger ranges. Static members come first, by `group.instance.id`, so they
       keep their partitions over a restart; then dynamic members, by member id.

    It does not balance across topics: with many topics of few partitions, the last members are idle. It
    ignores the partitions that members own.

    Examples:
        Members a, b and c subscribe to `orders` (7 partitions) and to `audit` (2)::

            a: orders 0 1 2, audit 0
            b: orders 3 4,   audit 1
            c: orders 5 6

        If a is in rack r1, b and c are in r2, and the even partitions of `orders` are in r1 and the odd ones
        in r2, then a is assigned 0, 2 and 4, b 1 and 3, and c 5 and the remaining 6.
    """

    name = "range"

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.range import plan_ranges

        return plan_ranges(group)
