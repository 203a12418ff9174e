"""The plan of `roundrobin`: who sits where, and where the deal of each topic begins."""

from bisect import bisect_left

import numpy as np

from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.group import Group


def plan_deal(group: Group) -> Assignment:
    """Return what `RoundRobinAssignor` does."""
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
