"""Makes the group of a case, the same in every run: topics, subscriptions, and who owned what before the event.

What members own comes from nobody's assignor: it is made here, as balanced as the subscriptions allow (and, with
racks, nearly all of it local), so that no contestant starts from its own result, and all from the same.
"""

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from benchmarks.assignors.cases import Case, Event, Subscriptions

RACKS = ("rack-a", "rack-b", "rack-c")
REPLICAS = 2

NOBODY = -1

_TIERS = 10
_SKEW = 0.8
_SEED = 2019

Numbers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """The group of a case, after the event.

    Attributes:
        case: The case.
        members: Ids of the members.
        racks: By member, the number of its rack; None if the case has no racks.
        wants: By member and topic, whether the member subscribes to it.
        topics: The topics' names, all of one length.
        sizes: By topic, its number of partitions.
        owners: By partition, topic after topic, the member who owned it before the event and is still here, or
            NOBODY.
    """

    case: Case
    members: list[str]
    racks: Numbers | None
    wants: Flags
    topics: list[str]
    sizes: Numbers
    owners: Numbers


def make_group(case: Case) -> Group:
    """Return the group of a case, after the event."""
    seeded = np.random.default_rng(_SEED)
    wants = _wants(case, seeded)
    sizes = _sizes(case)
    racks = np.arange(case.members + 1, dtype=np.int32) % len(RACKS) if case.racks else None
    owned = [np.full(size, NOBODY, np.int32) for size in sizes]
    if case.event is not Event.FULL:
        counts = _balanced(sizes, wants[: case.members])
        owned = [_owners(counts[:, topic], racks) for topic in range(case.topics)]
    if case.event is Event.PARTITIONS_ADDED:
        added = -(-sizes // 10)
        owned = [
            np.append(column, np.full(more, NOBODY, np.int32))
            for column, more in zip(owned, added, strict=True)
        ]
        sizes = sizes + added
    stay = _who_stays(case)
    number_of = np.full(case.members + 2, NOBODY, np.int32)  # the last place is that of NOBODY
    number_of[stay] = np.arange(stay.size)
    return Group(
        case=case,
        members=_ids(stay.size),
        racks=None if racks is None else racks[stay],
        wants=wants[stay],
        topics=[f"topic-{number:06}" for number in range(case.topics)],
        sizes=sizes,
        owners=number_of[np.concatenate(owned)],
    )


def _wants(case: Case, seeded: np.random.Generator) -> Flags:
    """Return the subscriptions of the members and, last, of one that may join."""
    wants: Flags = np.ones((case.members + 1, case.topics), np.bool_)
    numbers = np.arange(case.members + 1)
    match case.subscriptions:
        case Subscriptions.DISJOINT:
            in_first_half = (numbers < case.members // 2)[:, np.newaxis]
            wants = in_first_half == (np.arange(case.topics) < case.topics // 2)
        case Subscriptions.NESTED:
            tier = (1 + numbers % _TIERS)[:, np.newaxis]
            wants = np.arange(case.topics) * _TIERS < tier * case.topics
        case Subscriptions.HALF:
            order = seeded.permuted(np.tile(np.arange(case.topics), (case.members + 1, 1)), axis=1)
            wants = order < case.topics // 2
        case Subscriptions.NARROW:
            wants[0, 1:] = False
        case Subscriptions.EQUAL:
            pass
    return wants


def _sizes(case: Case) -> Numbers:
    """Return by topic its number of partitions before the event, at least one."""
    rank = np.arange(1, case.topics + 1)
    shares = rank**-_SKEW if case.skewed else np.ones(case.topics)
    ends = np.rint(np.cumsum(shares / shares.sum()) * (case.partitions - case.topics)).astype(np.int32)
    sizes: Numbers = (np.diff(ends, prepend=0) + 1).astype(np.int32)
    return sizes


def _who_stays(case: Case) -> npt.NDArray[np.int64]:
    """Return the numbers of those who are here after the event; the last one is that who may join."""
    numbers: npt.NDArray[np.int64] = np.arange(case.members + 1)
    match case.event:
        case Event.JOIN_ONE:
            return numbers
        case Event.LEAVE_ONE:
            return np.flatnonzero(numbers[:-1] != case.members // 2)
        case Event.LEAVE_MANY:
            return np.flatnonzero(numbers[:-1] % 4 != 1)
        case _:
            return numbers[:-1]


def _ids(count: int) -> list[str]:
    """Return ids as coordinators make them, whose order means nothing."""
    seeded = random.Random(_SEED)  # noqa: S311 - names, not secrets
    return [f"consumer-{seeded.getrandbits(128):032x}" for _ in range(count)]


def _balanced(sizes: Numbers, wants: Flags) -> npt.NDArray[np.int64]:
    """Return by member and topic how many partitions it owns, such that loads are as equal as can be.

    Topics with few subscribers come first, and each is poured over those of its subscribers who have least. That
    is optimal where the sets of subscribers lie within each other or apart; random halves are levelled afterwards.
    """
    counts = np.zeros(wants.shape, np.int64)
    loads = np.zeros(len(wants), np.int64)
    for topic in np.argsort(wants.sum(axis=0), kind="stable"):
        subscribers = np.flatnonzero(wants[:, topic])
        poured = _pour(loads[subscribers], int(sizes[topic]))
        counts[subscribers, topic] = poured
        loads[subscribers] += poured
    while (move := _levelling_move(counts, wants)) is not None:
        giver, taker, topic = move
        counts[giver, topic] -= 1
        counts[taker, topic] += 1
    return counts


def _pour(loads: npt.NDArray[np.int64], partitions: int) -> npt.NDArray[np.int64]:
    """Return how many partitions each gets, so that the loads become as equal as they can."""
    order = np.argsort(loads, kind="stable")
    ascending = loads[order]
    before = np.cumsum(ascending) - ascending
    filled = int(np.searchsorted(ascending * np.arange(loads.size) - before, partitions, side="right"))
    level, extra = divmod(int(ascending[:filled].sum()) + partitions, filled)
    poured = np.zeros(loads.size, np.int64)
    poured[order[:filled]] = level - ascending[:filled]
    poured[order[:extra]] += 1
    return poured


def _levelling_move(counts: npt.NDArray[np.int64], wants: Flags) -> tuple[int, int, int] | None:
    """Return who of the fullest can give a partition to whom of the emptiest, and of which topic."""
    loads = counts.sum(axis=1)
    if loads.max() - loads.min() < 2:  # noqa: PLR2004 - a difference of one is as good as can be
        return None
    takers = np.flatnonzero(loads == loads.min())
    for giver in np.flatnonzero(loads == loads.max()):
        taker, topic = np.nonzero(wants[takers] & (counts[giver] > 0))
        if taker.size:
            return int(giver), int(takers[taker[0]]), int(topic[0])
    return None


def _owners(counts: npt.NDArray[np.int64], racks: Numbers | None) -> Numbers:
    """Return by partition its owner, given how many of a topic each member owns."""
    owners = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    if racks is None:
        return owners
    # The first replica of partition p is in rack p modulo their number.
    places = np.argsort(np.arange(owners.size) % len(RACKS), kind="stable")
    local = np.empty_like(owners)
    local[places] = owners[np.argsort(racks[owners], kind="stable")]
    return local
