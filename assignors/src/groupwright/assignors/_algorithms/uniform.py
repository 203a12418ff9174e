"""Computation of the broker's `uniform`, for equal and for different subscriptions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapreplace
from itertools import cycle, islice, pairwise

import numpy as np

from groupwright.assignors._algorithms.claims import resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.columns import UNASSIGNED, Assignment
from groupwright.assignors._model.group import Group
from groupwright.assignors._wire.owned import OwnedColumns
from groupwright.core.hash_order import java_hash_map

_MAX_ROUNDS = 16
"""Number of times that each topic is balanced at most (`MAX_ITERATION_COUNT`)."""


def plan_uniform(group: Group) -> Assignment:
    """Return the assignment of `UniformAssignor`."""
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = resolve_claims(indexed, OwnedColumns.of_members(group, indexed.members))
    number_of = {id_: number for number, id_ in enumerate(indexed.members)}
    order = [number_of[id_] for id_ in java_hash_map(indexed.members)]
    owners = claims.owner.tolist()
    # As in the broker, a topic counts here even if it does not exist.
    if len({frozenset(member.topics) for member in group.members}) == 1:
        _assign_equal(order, owners)
    else:
        _Different(indexed, order, owners).assign()
    return indexed.assignment_of(np.array(owners, np.int32))


def _assign_equal(order: Sequence[int], owners: list[int]) -> None:
    """Change the owners as `UniformHomogeneousAssignmentBuilder` does.

    Args:
        order: The members in the broker's order.
        owners: The owner of each partition, or `UNASSIGNED`.
    """
    owned = defaultdict(list)
    for partition, owner in enumerate(owners):
        owned[owner].append(partition)
    free = owned[UNASSIGNED]
    receivers: list[int] = []
    fewest, with_one_more = divmod(len(owners), len(order))
    for left, member in zip(range(len(order), 0, -1), order, strict=True):
        # Members that own one more keep it, and the last ones in the order get it if there are too few.
        has_one_more = with_one_more == left or (with_one_more > 0 and len(owned[member]) > fewest)
        quota = fewest + has_one_more
        with_one_more -= has_one_more
        free += owned[member][quota:]
        receivers += [member] * (quota - len(owned[member]))
    for partition, receiver in zip(free, receivers, strict=True):
        owners[partition] = receiver


class _Different:
    """Assignment for different subscriptions, as `UniformHeterogeneousAssignmentBuilder` makes it.

    Members are their ranks in the broker's order.
    """

    def __init__(self, indexed: IndexedGroup, order: Sequence[int], owners: list[int]) -> None:
        """Take the owners, which `assign` changes.

        Args:
            indexed: The group.
            order: The members in the broker's order.
            owners: The owner of each partition, or `UNASSIGNED`.
        """
        self._order, self._owners = order, owners
        rank_of = {member: rank for rank, member in enumerate(order)}
        self._owner = [rank_of.get(owner, UNASSIGNED) for owner in owners]
        self._loads = [0] * len(order)
        for rank in self._owner:
            if rank != UNASSIGNED:
                self._loads[rank] += 1
        sets = [[rank_of[member] for member in each.tolist()] for each in indexed.subscriber_sets]
        self._subscribers = [sets[number] for number in indexed.subscriber_set_of.tolist()]
        starts = indexed.starts.tolist()
        self._partitions = [range(*bounds) for bounds in pairwise(starts)]
        # The most partitions per subscriber come first.
        self._topics = sorted(
            range(len(indexed.topics)),
            key=lambda topic: (
                -len(self._partitions[topic]) / len(self._subscribers[topic]),
                len(self._subscribers[topic]),
            ),
        )

    def assign(self) -> None:
        for topic in self._topics:
            free = (each for each in self._partitions[topic] if self._owner[each] == UNASSIGNED)
            for partition, receiver in zip(free, self._least_loaded(self._by_load(topic)), strict=False):
                self._give(partition, receiver)
        self._balance()
        self._owners[:] = [self._order[rank] for rank in self._owner]

    def _balance(self) -> None:
        """Balance one topic after the other, until none of them moves a partition any more."""
        topics = [topic for topic in self._topics if len(self._subscribers[topic]) > 1]
        unchanged = -1
        for topic in islice(cycle(topics), _MAX_ROUNDS * len(topics)):
            unchanged = 0 if self._balance_topic(topic) else unchanged + 1
            if unchanged == len(topics) - 1:
                return

    def _balance_topic(self, topic: int) -> bool:
        """Move partitions from the most to the least loaded subscribers; return whether any has moved."""
        members = self._by_load(topic)
        owned = defaultdict(list)
        for partition in self._partitions[topic]:
            owned[self._owner[partition]].append(partition)
        moved = False
        for giver, receiver in zip(
            self._most_loaded(members, owned), self._least_loaded(members), strict=False
        ):
            if self._loads[giver] - self._loads[receiver] <= 1:
                break
            partition = owned[giver].pop()
            self._loads[giver] -= 1
            self._give(partition, receiver)
            moved = True
        return moved

    def _give(self, partition: int, receiver: int) -> None:
        self._owner[partition] = receiver
        self._loads[receiver] += 1

    def _by_load(self, topic: int) -> list[int]:
        return sorted(self._subscribers[topic], key=lambda member: (self._loads[member], member))

    def _least_loaded(self, members: Sequence[int]) -> Iterator[int]:
        """Yield the least loaded member each time. Each is taken to receive a partition.

        Args:
            members: Members, sorted by load, which decides between equal ones.
        """
        heap = [(self._loads[member], place, member) for place, member in enumerate(members)]
        while True:
            load, place, member = heap[0]
            yield member
            heapreplace(heap, (load + 1, place, member))

    def _most_loaded(self, members: Sequence[int], owned: dict[int, list[int]]) -> Iterator[int]:
        """Yield the most loaded member with partitions of the topic each time. Each has to lose one.

        Args:
            members: Members, sorted by load.
            owned: The partitions that each can lose.
        """
        members = list(members)
        start = end = len(members)  # of those with the highest load
        load = 0
        while end:
            load = load - 1 if start < end else self._loads[members[start - 1]]
            while start and self._loads[members[start - 1]] == load:
                start -= 1
            for place in range(end - 1, start - 1, -1):
                if owned[members[place]]:
                    yield members[place]
                else:  # it leaves the range, and the order of the others changes as in the broker
                    end -= 1
                    members[place], members[end] = members[end], members[place]
