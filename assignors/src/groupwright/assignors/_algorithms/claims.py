"""Which of the members' claims to partitions hold."""

from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.indexed_group import NOT_FOUND, IndexedGroup
from groupwright.assignors._model.arrays import BoolArray, Int32Array, Int64Array
from groupwright.assignors._model.assignment import UNASSIGNED
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._wire.owned import OwnedColumns

Owners = Int32Array

_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Claims:
    """What the members' claims come to.

    Attributes:
        owner: For each partition of the layout the member whose claim holds, or `UNASSIGNED`. A member whose
            claim holds subscribes to the topic.
        claimed: For each partition whether any member claims it, rightly or not.
        contested: How many partitions more than one member claims.
    """

    owner: Owners
    claimed: BoolArray
    contested: int


def resolve_claims(indexed: IndexedGroup, owned: OwnedColumns) -> Claims:
    """Return which claims hold.

    A partition that one member claims is its own, whatever the generation; of several claimants, it is the
    one's with the highest generation, and nobody's if two claim it in that one. Claims to what does not exist
    are passed over. A claim to a topic that the member does not subscribe to is none either, though it may
    show that an older one is out of date.

    Args:
        indexed: The group.
        owned: For each of the layout's members what it claims.
    """
    member, place = _claimed_places(indexed, owned.partitions)
    owner = np.full(indexed.starts[-1], UNASSIGNED, np.int32)
    owner[place] = member
    claimed = owner != UNASSIGNED
    contested = 0
    if np.count_nonzero(claimed) < place.size:
        contested = _decide(owner, member, place, owned.generations[member])
    held = np.flatnonzero(owner != UNASSIGNED)
    subscriber_index = indexed.subscriber_index(indexed.topic[held], owner[held])
    owner[held[subscriber_index == NOT_FOUND]] = UNASSIGNED
    return Claims(owner, claimed, contested)


def _claimed_places(indexed: IndexedGroup, lists: PartitionColumns) -> tuple[Owners, Int64Array]:
    """Return the claims to partitions that exist: who claims, and which place in the layout."""
    number_of = {topic: number for number, topic in enumerate(indexed.topics)}
    numbers = np.array([number_of.get(name, _UNKNOWN) for name in lists.names], np.int64)
    topics = numbers[lists.run_topics]
    known = topics != _UNKNOWN
    first_of = np.where(known, indexed.starts[topics], 0)
    size_of = np.where(known, indexed.starts[topics + known] - indexed.starts[topics], 0)
    runs = np.diff(lists.run_starts)
    member = np.repeat(np.arange(len(lists), dtype=np.int32), lists.counts)
    exists = (lists.partitions >= 0) & (lists.partitions < np.repeat(size_of, runs))
    place = np.repeat(first_of, runs)
    place += lists.partitions
    return (member, place) if exists.all() else (member[exists], place[exists])


def _decide(
    owner: Owners,
    member: Owners,
    place: Int64Array,
    generation: Int64Array,
) -> int:
    """Set the owners of partitions that are claimed more than once, and return how many those are."""
    contested = np.bincount(place, minlength=owner.size) > 1
    rows = np.flatnonzero(contested[place])
    rows = rows[np.lexsort((generation[rows], place[rows]))]
    last = np.append(place[rows[1:]] != place[rows[:-1]], True)
    highest = rows[last]
    before = rows[np.flatnonzero(last) - 1]
    is_tie = generation[before] == generation[highest]
    owner[place[highest]] = np.where(is_tie, UNASSIGNED, member[highest])
    return int(highest.size)
