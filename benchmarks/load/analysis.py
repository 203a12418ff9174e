"""Computes throughput, loads and lag from what members and the writer recorded."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.consumer.ownership import Change
from benchmarks.load.results import Drain, Rebalance, Window
from groupwright.assignors import Group, LoadReport, Member, Topic, evaluate_load

Records = npt.NDArray[np.int64]
"""Consumed messages in order of time, `(messages, 4) int64`: member, time of the end (µs), partition, offset.
Or written ones, `(ticks, 3) int64`: time in µs, partition, number of messages."""

Owners = Mapping[int, int]
"""By partition, the number of its owner."""

_MICROSECONDS = 1_000_000
_MOST_OFFSETS = 2**40
_TOPIC = "topic"


def read_consumed(folder: Path, members: int) -> Records:
    """Read what the members recorded."""
    tables = []
    for member in range(members):
        rows = np.fromfile(folder / f"{member}.received", dtype="<i8").reshape(-1, 3)
        tables.append(np.column_stack([np.full(len(rows), member, dtype=np.int64), rows]))
    table = np.concatenate(tables)
    return table[np.argsort(table[:, 1], kind="stable")]


def read_written(folder: Path) -> Records:
    """Read what the writer recorded."""
    return np.fromfile(folder / "written", dtype="<i8").reshape(-1, 3)


def once(consumed: Records) -> Records:
    """Return the rows of messages that were not consumed before."""
    message = consumed[:, 2] * _MOST_OFFSETS + consumed[:, 3]
    _, first = np.unique(message, return_index=True)
    rows: Records = consumed[np.sort(first)]
    return rows


def load_report(owners: Owners, weights: Sequence[float], members: int) -> LoadReport:
    """Return the loads and the certified bound of an assignment of one topic."""
    topics = {_TOPIC: Topic(len(weights), weights=weights)}
    group = Group([Member(str(number), [_TOPIC]) for number in range(members)], topics)
    plan: dict[str, dict[str, list[int]]] = {member.id: {_TOPIC: []} for member in group.members}
    for partition, owner in owners.items():
        plan[str(owner)][_TOPIC].append(partition)
    return evaluate_load(group, plan)


def measure_drain(
    consumed: Records, backlog: Sequence[int], owners: Owners, members: int, service: float
) -> Drain:
    """Measure the drain of a backlog.

    Args:
        consumed: The consumed messages, each once.
        backlog: Number of messages of each partition.
        owners: Owners of the partitions.
        members: Number of members.
        service: Seconds that a member spends on each message.

    Raises:
        ValueError: Some of the backlog was not consumed.
    """
    rows = consumed[consumed[:, 3] < np.array(backlog)[consumed[:, 2]]]
    if len(rows) != sum(backlog):
        raise ValueError(f"{len(rows)} of {sum(backlog)} messages of the backlog were consumed")
    report = load_report(owners, backlog, members)
    return Drain(
        messages=len(rows),
        seconds=(int(rows[-1, 1]) - int(rows[0, 1])) / _MICROSECONDS + service,
        ideal_seconds=report.bound * service,
        peak_over_bound=report.peak_over_bound,
    )


def measure_window(
    consumed: Records,
    written: Records,
    owners: Owners,
    members: int,
    service: float,
    between: tuple[int, int],
) -> Window:
    """Measure a window of time, in which the assignment does not change.

    A member falls behind if it consumes less than is written to its partitions. The smallest share that a
    member consumes, times the rate of the traffic, is the throughput that is sustained: with that much
    traffic of this shape, no member would fall behind.

    Args:
        consumed: The consumed messages, each once.
        written: The written messages.
        owners: Owners of the partitions.
        members: Number of members.
        service: Seconds that a member spends on each message.
        between: Times of the beginning and the end, in µs.
    """
    begin, end = between
    seconds = (end - begin) / _MICROSECONDS
    added = written[(begin <= written[:, 0]) & (written[:, 0] < end)]
    done = consumed[(begin <= consumed[:, 1]) & (consumed[:, 1] < end)]
    weights = np.bincount(added[:, 1], added[:, 2], len(owners))
    owner = np.array([owners[partition] for partition in range(len(owners))])
    to_members = np.bincount(owner, weights, members)
    by_members = np.bincount(done[:, 0], minlength=members)
    has_traffic = to_members > 0
    share = min(1.0, float((by_members[has_traffic] / to_members[has_traffic]).min()))
    report = load_report(owners, weights.tolist(), members)
    rate = float(weights.sum()) / seconds
    return Window(
        written=rate,
        consumed=len(done) / seconds,
        sustained=rate * share,
        ideal=rate * min(1.0, seconds / (report.bound * service)),
        peak_over_bound=report.peak_over_bound,
    )


def measure_rebalance(before: Owners, after: Owners, changes: Iterable[Change]) -> Rebalance:
    """Count the partitions that moved, and those that were revoked."""
    revoked = [change.partitions for change in changes if not change.gained]
    return Rebalance(
        moved=sum(before[partition] != owner for partition, owner in after.items()),
        revoked=len(frozenset().union(*revoked)),
    )


def lag_over_time(
    consumed: Records, written: Records, backlog: int, between: tuple[int, int], step: float
) -> tuple[tuple[float, int], ...]:
    """Return the lag of the group at each step of so many seconds, with the seconds since the beginning."""
    begin, end = between
    times = np.arange(begin, end, round(step * _MICROSECONDS))
    total = np.concatenate([[0], np.cumsum(written[:, 2])])
    lags = backlog + total[np.searchsorted(written[:, 0], times)] - np.searchsorted(consumed[:, 1], times)
    seconds = (times - begin) / _MICROSECONDS
    return tuple(zip(seconds.tolist(), lags.tolist(), strict=True))
