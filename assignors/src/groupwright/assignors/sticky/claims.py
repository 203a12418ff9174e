"""Which of the members' claims to partitions hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from groupwright.assignors.assignment import NOBODY
from groupwright.assignors.layout import NOT_THERE, Layout
from groupwright.assignors.partitions import TopicPartitions
from groupwright.assignors.sticky.userdata import Owned

Owners = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]

_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Claims:
    """What the members' claims come to.

    Attributes:
        owner: For each partition of the layout the member whose claim holds, or `NOBODY`. A member whose
            claim holds subscribes to the topic.
        claimed: For each partition whether any member claims it, rightly or not.
        contested: How many partitions more than one member claims.
    """

    owner: Owners
    claimed: Flags
    contested: int


def settle_claims(layout: Layout, owned: Sequence[Owned]) -> Claims:
    """Return which claims hold.

    A partition that one member claims is its own, whatever the generation; of several claimants, it is the
    one's with the highest generation, and nobody's if two claim it in that one. Claims to what does not exist
    are passed over. A claim to a topic that the member does not subscribe to is none either, though it may
    show that an older one is out of date.

    Args:
        layout: The group.
        owned: For each of the layout's members what it claims.
    """
    member, place = _claimed_places(layout, owned)
    owner = np.full(layout.starts[-1], NOBODY, np.int32)
    owner[place] = member
    claimed = owner != NOBODY
    contested = 0
    if np.count_nonzero(claimed) < place.size:
        generation = np.array([claims.generation for claims in owned], np.int64)[member]
        contested = _decide(owner, member, place, generation)
    held = np.flatnonzero(owner != NOBODY)
    seats = layout.seats(layout.topic[held], owner[held])
    owner[held[seats == NOT_THERE]] = NOBODY
    return Claims(owner, claimed, contested)


def _claimed_places(layout: Layout, owned: Sequence[Owned]) -> tuple[Owners, _Numbers]:
    """Return the claims to partitions that exist: who claims, and which place in the layout."""
    claimants = [number for number, claims in enumerate(owned) if claims.partitions.count]
    if not claimants:
        return np.empty(0, np.int32), np.empty(0, np.int64)
    lists = [owned[number].partitions for number in claimants]
    topics = _topics_claimed(layout, lists)
    known = topics != _UNKNOWN
    first_of = np.where(known, layout.starts[topics], 0)
    size_of = np.where(known, layout.starts[topics + known] - layout.starts[topics], 0)
    runs = _run_sizes(lists)
    member = np.repeat(np.array(claimants, np.int32), [claims.count for claims in lists])
    partition = np.concatenate([claims.partitions for claims in lists])
    exists = (partition >= 0) & (partition < np.repeat(size_of, runs))
    place = np.repeat(first_of, runs)
    place += partition
    return (member, place) if exists.all() else (member[exists], place[exists])


def _topics_claimed(layout: Layout, lists: Sequence[TopicPartitions]) -> _Numbers:
    """Return the layout's number of each topic in the lists, on end; `_UNKNOWN` if it is not there."""
    number_of = {topic: number for number, topic in enumerate(layout.topics)}
    tables = {id(claims.names): claims.names for claims in lists}  # most lists share one
    sizes = [len(names) for names in tables.values()]
    first_of = dict(zip(tables, accumulate(sizes, initial=0), strict=False))
    names = chain.from_iterable(tables.values())
    numbers = np.array([number_of.get(name, _UNKNOWN) for name in names], np.int64)
    place = np.concatenate([claims.numbers for claims in lists]).astype(np.int64)
    if len(tables) > 1:
        sizes = [len(claims) for claims in lists]
        place += np.repeat([first_of[id(claims.names)] for claims in lists], sizes)
    return numbers[place]


def _run_sizes(lists: Sequence[TopicPartitions]) -> _Numbers:
    """Return how many partitions each list has of each of its topics, on end."""
    differences = np.diff(np.concatenate([claims.starts for claims in lists]))
    from_list_to_list = np.cumsum([claims.starts.size for claims in lists])[:-1] - 1
    return np.delete(differences, from_list_to_list)


def _decide(
    owner: Owners,
    member: Owners,
    place: _Numbers,
    generation: _Numbers,
) -> int:
    """Set the owners of partitions that are claimed more than once, and return how many those are."""
    contested = np.bincount(place, minlength=owner.size) > 1
    rows = np.flatnonzero(contested[place])
    rows = rows[np.lexsort((generation[rows], place[rows]))]
    last = np.append(place[rows[1:]] != place[rows[:-1]], True)
    highest = rows[last]
    before = rows[np.flatnonzero(last) - 1]
    is_tie = generation[before] == generation[highest]
    owner[place[highest]] = np.where(is_tie, NOBODY, member[highest])
    return int(highest.size)
