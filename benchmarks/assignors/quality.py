"""Quality of an answer: validity, balance, stickiness, rack locality.

This module decodes answers itself, into arrays, because Groupwright's decoder is part of what is measured.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from benchmarks.assignors.groups import RACKS, REPLICAS, UNASSIGNED, Group, Numbers
from benchmarks.assignors.inputs import MemberBytes
from benchmarks.assignors.results import Quality

_Offsets = npt.NDArray[np.int64]
_VERSION_SIZE, _LENGTH_SIZE, _NUMBER_SIZE = 2, 2, 4


class _FaultError(Exception):
    """The answer is not an assignment of the group."""


def measure(group: Group, answer: list[MemberBytes]) -> Quality:
    """Return the quality of an answer."""
    try:
        owners = owners_of(group, answer)
        _check_owners(group, owners)
    except _FaultError as fault:
        return Quality(fault=str(fault), squares=None, moved=0, local=None, fingerprint="", peak=None)
    given = owners != UNASSIGNED
    loads = np.bincount(owners[given], minlength=len(group.members))
    return Quality(
        fault="",
        squares=int((loads.astype(np.int64) ** 2).sum()) if given.all() else None,
        moved=int(((group.owners != UNASSIGNED) & (group.owners != owners)).sum()),
        local=_local(group, owners),
        fingerprint=hashlib.sha256(owners.tobytes()).hexdigest()[:16],
        peak=_peak(group, owners),
    )


def owners_of(group: Group, answer: list[MemberBytes]) -> Numbers:
    """Return the owner of each partition, topic after topic, or UNASSIGNED.

    Raises:
        _FaultError: The bytes are not the assignments of the group's members.
    """
    numbers = {member: number for number, member in enumerate(group.members)}
    if {member.id for member in answer} - set(numbers):
        raise _FaultError("strange members")
    owner = np.array([numbers[member.id] for member in answer], np.int32)
    try:
        run_owner, topic, start, count, words = _runs(group, answer)
    except IndexError as error:
        raise _FaultError("bytes that cannot be read") from error
    if topic.size and not (topic.min() >= 0 and topic.max() < len(group.topics)):
        raise _FaultError("strange topics")
    run = np.repeat(np.arange(count.size), count)
    offset = np.arange(run.size) - np.repeat(np.cumsum(count) - count, count)
    partition = words[start[run] + _NUMBER_SIZE * offset].astype(np.int64)
    if ((partition < 0) | (partition >= group.sizes[topic[run]])).any():
        raise _FaultError("partitions that do not exist")
    place = (np.cumsum(group.sizes) - group.sizes)[topic[run]] + partition
    if np.bincount(place, minlength=1).max() > 1:
        raise _FaultError("partitions with two owners")
    owners = np.full(int(group.sizes.sum()), UNASSIGNED, np.int32)
    owners[place] = owner[run_owner[run]]
    return owners


def _runs(
    group: Group, answer: list[MemberBytes]
) -> tuple[_Offsets, _Offsets, _Offsets, _Offsets, npt.NDArray[np.int32]]:
    """Decode all members' assignments in parallel, topic by topic; all topic names have one length.

    Returns:
        For each list of a topic's partitions: its owner, the topic's number, the byte at which the partitions
        start, and their count; and the int32 that starts at each byte.
    """
    data = np.frombuffer(b"".join(member.data for member in answer) + bytes(_NUMBER_SIZE), np.uint8)
    words = np.ndarray(data.size - _NUMBER_SIZE + 1, ">i4", data, strides=(1,))
    sizes = np.array([len(member.data) for member in answer], np.int64)
    at = np.cumsum(sizes) - sizes + _VERSION_SIZE
    left = np.where(sizes > 0, words[at], 0)
    at += _NUMBER_SIZE
    name_size = len(group.topics[0])
    digits = group.topics[0].index("-") + 1
    columns: list[tuple[_Offsets, ...]] = []
    while (reading := np.flatnonzero(left > 0)).size:
        name = at[reading] + _LENGTH_SIZE
        topic = np.zeros(reading.size, np.int64)
        for place in range(digits, name_size):
            topic = 10 * topic + data[name + place] - ord("0")
        count = words[name + name_size].astype(np.int64)
        if (count < 0).any():
            raise _FaultError("negative counts")
        start = name + name_size + _NUMBER_SIZE
        columns.append((reading, topic, start, count))
        at[reading] = start + _NUMBER_SIZE * count
        left[reading] -= 1
    if not columns:
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing, nothing, words
    run_owner, topics, starts, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
    return run_owner, topics, starts, counts, words


def _check_owners(group: Group, owners: Numbers) -> None:
    topic = np.repeat(np.arange(group.sizes.size), group.sizes)
    given = owners != UNASSIGNED
    if not group.wants[owners[given], topic[given]].all():
        raise _FaultError("partitions given to members who do not subscribe")
    lost = ~given & (group.owners == UNASSIGNED) if group.case.is_cooperative else ~given
    has_subscriber = np.asarray(group.wants.any(axis=0))
    if (lost & has_subscriber[topic]).any():
        raise _FaultError("partitions without an owner")


def _peak(group: Group, owners: Numbers) -> float | None:
    """Return the largest load over the average one; without weights, or with withheld partitions, None."""
    if group.weights is None or (owners == UNASSIGNED).any():
        return None
    loads = np.bincount(owners, group.weights, len(group.members))
    return float(loads.max() / loads.mean())


def _local(group: Group, owners: Numbers) -> int | None:
    """Count partitions whose owner is in a replica's rack; replicas of p are in racks p, p + 1 and so on."""
    if group.racks is None:
        return None
    first = np.arange(owners.size) - np.repeat(np.cumsum(group.sizes) - group.sizes, group.sizes)
    given = owners != UNASSIGNED
    return int(((group.racks[owners] - first) % len(RACKS) < REPLICAS)[given].sum())
