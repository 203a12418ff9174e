"""Kafka's `roundrobin` assignor."""

from bisect import bisect_left

import numpy as np

from groupwright.assignors.assignment import Assignment
from groupwright.assignors.assignor import Assignor
from groupwright.assignors.layout import Layout
from groupwright.assignors.model import Group


class RoundRobinAssignor(Assignor):
    """Deals out all partitions like cards: Java's `RoundRobinAssignor`, result for result.

    In this order it sees to it that

    1. every partition of a subscribed topic has an owner;
    2. partitions are dealt topic by topic, by name, each to the next member around the table that
       subscribes to the topic; the deal goes on from topic to topic where it stood. Static members sit
       first, by `group.instance.id`; then dynamic ones, by member id.

    If all subscribe to the same, no member so gets two partitions more than another. If not, the result may
    be far from even. What members own is not looked at: one member more or less moves most partitions.

    Example:
        Members a and b subscribe to `audit` and `orders`, of 3 partitions each::

            a: audit 0 2, orders 1
            b: audit 1,   orders 0 2
    """

    name = "roundrobin"

    def assign(self, group: Group) -> Assignment:
        """Return the deal."""
        layout = Layout.of(group)
        first_seats = np.array(_first_seats(layout), np.int32)
        return layout.assignment(
            (first_seats[layout.topic] + layout.partition) % layout.audience_sizes[layout.topic]
        )


def _first_seats(layout: Layout) -> list[int]:
    """Return, for each topic, who in its audience gets its partition 0."""
    audiences = [audience.tolist() for audience in layout.audiences]
    next_member = 0
    first_seats = []
    for size, number in zip(layout.sizes.tolist(), layout.audience_of.tolist(), strict=True):
        audience = audiences[number]
        first_seat = bisect_left(audience, next_member) % len(audience)
        first_seats.append(first_seat)
        next_member = audience[(first_seat + size - 1) % len(audience)] + 1
    return first_seats
