"""Deliveries around a join: time of the first one, gaps, duplicates and missing messages.

These are measures of many messages, as arrays: no rule of `groupwright.testing.groups` is applied.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.consumer.ownership import Change
from benchmarks.consumer.results import Gaps, JoinRun, LoadCheckRun, Waits

Received = NDArray[np.int64]
"""A message a row: the member, when it came (µs), its partition, its offset, when it was written (ms)."""

_MICROSECONDS = 1_000_000
_BEFORE = 1 * _MICROSECONDS
"""Time before the join over which the gaps before it are measured."""


def read_received(folder: Path, members: int) -> Received:
    """Read the members' records in the folder, in order of time."""
    tables = []
    for member in range(members):
        received = np.fromfile(folder / f"{member}.received", dtype="<i8").reshape(-1, 4)
        tables.append(np.column_stack([np.full(len(received), member, dtype=np.int64), received]))
    table = np.concatenate(tables)
    return table[np.argsort(table[:, 1], kind="stable")]


def judge_join(
    received: Received,
    joined: int,
    changes: Sequence[Change],
    before: Mapping[int, int],
    after: Mapping[int, int],
) -> JoinRun:
    """Measure the effect of a join on a group.

    Args:
        received: Messages received by all members.
        joined: When the new member subscribed, in microseconds.
        changes: Partitions assigned and revoked since the join.
        before: The owner of each partition before the join.
        after: The owner of each partition at the end.

    Raises:
        ValueError: A partition delivered nothing to its last owner, or nothing in the second before the join.
    """
    kept = {partition for partition, owner in after.items() if before.get(partition) == owner}
    consumed = max(
        _resumed(received, joined, changes, partition, owner) for partition, owner in after.items()
    )
    around = received[received[:, 1] >= joined - _BEFORE]
    calm = around[around[:, 1] < joined]
    if silent := after.keys() - set(calm[:, 2].tolist()):
        raise ValueError(f"partition {min(silent)} was not consumed in the second before the join")
    twice, missing = _delivery(around)
    return JoinRun(
        settled=(max(change.at for change in changes) - joined) / _MICROSECONDS,
        consumed=(consumed - joined) / _MICROSECONDS,
        kept=_gaps(around, kept, joined),
        moved=_gaps(around, after.keys() - kept, joined),
        before=_gaps(calm, after.keys(), joined - _BEFORE),
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
    twice, missing = _delivery(received[at >= heavier - _BEFORE])
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


def _resumed(received: Received, joined: int, changes: Sequence[Change], partition: int, owner: int) -> int:
    """Return the time at which the partition's last owner received the first message written after the join.

    Only messages received since the owner's last assignment of the partition count.
    """
    gains = [
        each.at for each in changes if each.gained and each.member == owner and partition in each.partitions
    ]
    since = max([joined, *gains])
    member, came, number, _, written = received.T
    found = received[(member == owner) & (number == partition) & (came >= since) & (written * 1000 >= joined)]
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


def _delivery(received: Received) -> tuple[int, int]:
    """Return the number of duplicates, and of messages missing between a partition's first and last."""
    twice = missing = 0
    for partition in np.unique(received[:, 2]):
        offsets = received[received[:, 2] == partition][:, 3]
        different = np.unique(offsets)
        twice += len(offsets) - len(different)
        missing += int(different[-1] - different[0]) + 1 - len(different)
    return twice, missing
