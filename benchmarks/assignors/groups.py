"""Deterministic generator of a case's group: topics, subscriptions, and owned partitions before the event.

The owned partitions come from no contestant's assignor. They are as balanced as the subscriptions allow (and,
with racks, nearly all local), so that all contestants start from the same assignment, and none from its own.
"""

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.assignors.cases import Case, Event, Subscriptions

RACKS = ("rack-a", "rack-b", "rack-c")
REPLICAS = 2

UNASSIGNED = -1

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
        racks: Rack number of each member; None if the case has no racks.
        wants: Whether each member subscribes to each topic, (members, topics).
        topics: The topics' names, all of one length.
        sizes: Number of partitions of each topic.
        owners: Owner of each partition, topic after topic, before the event; UNASSIGNED if it has left.
        weights: Weight of each partition, topic after topic; None if the case has no weights.
    """

    case: Case
    members: list[str]
    racks: Numbers | None
    wants: Flags
    topics: list[str]
    sizes: Numbers
    owners: Numbers
    weights: npt.NDArray[np.float64] | None = None


def make_group(case: Case) -> Group:
    """Return the group of a case, after the event."""
    seeded = np.random.default_rng(_SEED)
    wants = _wants(case, seeded)
    sizes = _sizes(case)
    racks = np.arange(case.members + 1, dtype=np.int32) % len(RACKS) if case.racks else None
    owned = [np.full(size, UNASSIGNED, np.int32) for size in sizes]
    if case.event is not Event.FULL:
        counts = _balanced(sizes, wants[: case.members])
        owned = [_owners(counts[:, topic], racks) for topic in range(case.topics)]
    if case.event is Event.PARTITIONS_ADDED:
        added = -(-sizes // 10)
        owned = [
            np.append(column, np.full(more, UNASSIGNED, np.int32))
            for column, more in zip(owned, added, strict=True)
        ]
        sizes = sizes + added
    stay = _who_stays(case)
    number_of = np.full(case.members + 2, UNASSIGNED, np.int32)  # the last place is that of UNASSIGNED
    number_of[stay] = np.arange(stay.size)
    return Group(
        case=case,
        members=_ids(stay.size),
        racks=None if racks is None else racks[stay],
        wants=wants[stay],
        topics=[f"topic-{number:06}" for number in range(case.topics)],
        sizes=sizes,
        owners=number_of[np.concatenate(owned)],
        weights=seeded.lognormal(sigma=1.0, size=int(sizes.sum())) if case.is_weighted else None,
    )


def _wants(case: Case, seeded: np.random.Generator) -> Flags:
    """Return the subscriptions of the members; the last row is of the member that may join."""
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
    """Return the number of partitions of each topic before the event, at least one."""
    rank = np.arange(1, case.topics + 1)
    shares = rank**-_SKEW if case.skewed else np.ones(case.topics)
    ends = np.rint(np.cumsum(shares / shares.sum()) * (case.partitions - case.topics)).astype(np.int32)
    sizes: Numbers = (np.diff(ends, prepend=0) + 1).astype(np.int32)
    return sizes


def _who_stays(case: Case) -> npt.NDArray[np.int64]:
    """Return the numbers of the members after the event; the highest is of the member that may join."""
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
    """Return member ids as coordinators create them, in random order."""
    seeded = random.Random(_SEED)  # noqa: S311 - names, not secrets
    return [f"consumer-{seeded.getrandbits(128):032x}" for _ in range(count)]


def _balanced(sizes: Numbers, wants: Flags) -> npt.NDArray[np.int64]:
    """Return the number of partitions by member and topic, with loads as equal as possible.

    Topics are taken in the order of their number of subscribers, and water-filled over the subscribers'
    loads. That is optimal if the sets of subscribers are nested or disjoint; other subscriptions are levelled
    afterwards.
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
    """Return the number of partitions for each member that makes the loads as equal as possible."""
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
    """Return a most loaded giver, a least loaded taker, and a topic to move between them."""
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
    """Return the owner of each partition of a topic, from the number that each member owns."""
    owners = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    if racks is None:
        return owners
    # The first replica of partition p is in rack p modulo their number.
    places = np.argsort(np.arange(owners.size) % len(RACKS), kind="stable")
    local = np.empty_like(owners)
    local[places] = owners[np.argsort(racks[owners], kind="stable")]
    return local
