"""Deliveries around a change of members: time of the first one, gaps, duplicates and missing messages.

These are measures of many messages, as arrays: no rule of `groupwright.testing.groups` is applied.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.consumer.ownership import Change
from benchmarks.consumer.results import Gaps, LoadCheckRun, MemberChangeRun, Waits

Received = NDArray[np.int64]
"""A message a row: the member, when it came (µs), its partition, its offset, when it was written (ms)."""

_MICROSECONDS = 1_000_000
_BEFORE = 1 * _MICROSECONDS
"""Time before the change over which the gaps before it are measured."""


def read_received(folder: Path, members: int) -> Received:
    """Read the members' records in the folder, in order of time."""
    tables = []
    for member in range(members):
        received = np.fromfile(folder / f"{member}.received", dtype="<i8").reshape(-1, 4)
        tables.append(np.column_stack([np.full(len(received), member, dtype=np.int64), received]))
    table = np.concatenate(tables)
    return table[np.argsort(table[:, 1], kind="stable")]


def judge_member_change(
    received: Received,
    since: int,
    changes: Sequence[Change],
    before: Mapping[int, int],
    after: Mapping[int, int],
) -> MemberChangeRun:
    """Measure the effect of a change of a group's members.

    Args:
        received: Messages received by all members.
        since: When the new member subscribed, or the first member ended, in microseconds.
        changes: Partitions assigned and revoked since then.
        before: The owner of each partition before the change.
        after: The owner of each partition at the end.

    Raises:
        ValueError: A partition delivered nothing to its last owner, or nothing in the second before.
    """
    kept = {partition for partition, owner in after.items() if before.get(partition) == owner}
    consumed = max(_resumed(received, since, changes, partition, owner) for partition, owner in after.items())
    calm = received[(received[:, 1] >= since - _BEFORE) & (received[:, 1] < since)]
    around = received[received[:, 1] >= since - _BEFORE]
    if silent := after.keys() - set(calm[:, 2].tolist()):
        raise ValueError(f"partition {min(silent)} was not consumed in the second before the change")
    twice, missing = _delivery(received, since - _BEFORE)
    return MemberChangeRun(
        settled=(max(change.at for change in changes) - since) / _MICROSECONDS,
        consumed=(consumed - since) / _MICROSECONDS,
        kept=_gaps(around, kept, since),
        moved=_gaps(around, after.keys() - kept, since),
        before=_gaps(calm, after.keys(), since - _BEFORE),
        twice=twice,
        missing=missing,
    )


def judge_load_check(
    received: Received,
    heavier: int,
    changes: Sequence[Change],
    before: Mapping[int, int],
    after: Mapping[int, int],
) -> LoadCheckRun:
    """Measure the effect of load checks on a group.

    Args:
        received: Messages received by all members.
        heavier: When the weights changed, in microseconds.
        changes: Partitions assigned and revoked since then; at least one.
        before: The owner of each partition before.
        after: The owner of each partition at the end.
    """
    touched = {partition for change in changes for partition in change.partitions}
    at = received[:, 1]
    calm = received[(at >= heavier - _BEFORE) & (at < heavier)]
    around = received[(at >= heavier) & (at <= max(change.at for change in changes) + _BEFORE)]
    twice, missing = _delivery(received, heavier - _BEFORE)
    return LoadCheckRun(
        moved=sum(owner != before[partition] for partition, owner in after.items()),
        before=_waits(calm),
        kept=_waits(around[~np.isin(around[:, 2], list(touched))]),
        twice=twice,
        missing=missing,
    )


def _waits(received: Received) -> Waits:
    """Return how long messages waited; brokers' times are whole milliseconds."""
    if not len(received):
        return Waits(0, 0.0, 0.0)
    waits = (received[:, 1] - 1000 * received[:, 4]) / _MICROSECONDS
    return Waits(len(waits), float(np.median(waits)), float(waits.max()))


def _resumed(received: Received, changed: int, changes: Sequence[Change], partition: int, owner: int) -> int:
    """Return when the partition's last owner received the first message written after the change.

    Only messages received since the owner's last assignment of the partition count.
    """
    gains = [
        each.at for each in changes if each.gained and each.member == owner and partition in each.partitions
    ]
    since = max([changed, *gains])
    member, came, number, _, written = received.T
    found = received[
        (member == owner) & (number == partition) & (came >= since) & (written * 1000 >= changed)
    ]
    if not len(found):
        raise ValueError(f"member {owner} got nothing from partition {partition} at the end")
    return int(found[0, 1])


def _gaps(received: Received, partitions: Collection[int], since: int) -> Gaps:
    """Return the gaps that end after `since`; a gap that began earlier counts in full."""
    longest = []
    for partition in partitions:
        came = received[received[:, 2] == partition][:, 1]
        ends, lengths = came[1:], np.diff(came)
        longest.append(int(lengths[ends >= since].max(initial=0)))
    if not longest:
        return Gaps(0, 0.0, 0.0)
    return Gaps(len(longest), float(np.median(longest)) / _MICROSECONDS, max(longest) / _MICROSECONDS)


def _delivery(received: Received, since: int) -> tuple[int, int]:
    """Return the number of messages delivered again since a time, and of those missing since then.

    Missing is what lies between a partition's first and last message, and was never delivered.
    """
    twice = missing = 0
    for partition in np.unique(received[:, 2]):
        of_it = received[received[:, 2] == partition]
        is_since = of_it[:, 1] >= since
        _, first_deliveries = np.unique(of_it[:, 3], return_index=True)
        twice += int(is_since.sum()) - int(is_since[first_deliveries].sum())
        different = np.unique(of_it[is_since, 3])
        if len(different):
            missing += int(different[-1] - different[0]) + 1 - len(different)
    return twice, missing
