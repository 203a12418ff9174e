"""Computation of `roundrobin`: the subscriber that each topic begins with."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.columns import Assignment
from groupwright.assignors._model.group import Group


def plan_round_robin(group: Group) -> Assignment:
    """Return the assignment of `RoundRobinAssignor`."""
    indexed = IndexedGroup.of(group)
    first_index = np.array(_first_index(indexed), np.int32)
    return indexed.assignment_by_index(
        (first_index[indexed.topic] + indexed.partition) % indexed.subscriber_counts[indexed.topic]
    )


def _first_index(indexed: IndexedGroup) -> list[int]:
    """Return, for each topic, the owner of partition 0, as an index among the topic's subscribers."""
    subscriber_sets = [subscriber_set.tolist() for subscriber_set in indexed.subscriber_sets]
    next_member = 0
    first_index = []
    for size, number in zip(indexed.sizes.tolist(), indexed.subscriber_set_of.tolist(), strict=True):
        subscriber_set = subscriber_sets[number]
        first = bisect_left(subscriber_set, next_member) % len(subscriber_set)
        first_index.append(first)
        next_member = subscriber_set[(first + size - 1) % len(subscriber_set)] + 1
    return first_index
