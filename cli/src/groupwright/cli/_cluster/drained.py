"""Partitions in which a group has consumed every message, though offsets are left: they have none."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from groupwright.cli._cluster.first_messages import FirstMessages, RecordKey
from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.model import GroupType

ReadFirst = Callable[[Collection[RecordKey], float], FirstMessages]
"""Reads the first messages at or after offsets, in a number of seconds; see `Cluster.first_messages`."""

_Offset = tuple[str, str, int, int]
"""Id of the topic, its name, partition and offset: not that of a topic that is created again."""

_READ_SECONDS = 2.0
"""Longest time by which reading delays a snapshot."""
_MOST = 1000
"""Partitions that are read for one snapshot, those with the least lag first."""
_RETRY_SNAPSHOTS = 10
"""Snapshots until a partition that did not respond is read again, so that it does not delay each of them."""


def uncommitted(lags: Mapping[str, GroupLag]) -> set[RecordKey]:
    """Return the first uncommitted offset of each partition that lags."""
    return {each.first_uncommitted for lag in lags.values() for each in lag.partitions if each.lag}


def with_messages(lags: Mapping[str, GroupLag], has_message: Mapping[RecordKey, bool]) -> dict[str, GroupLag]:
    """Return the lag of groups with `PartitionLag.has_message`.

    Args:
        lags: The groups.
        has_message: Of uncommitted offsets, as far as it is known.
    """

    def known(each: PartitionLag) -> PartitionLag:
        found = has_message.get(each.first_uncommitted) if each.lag else None
        return each if found is None else replace(each, has_message=found)

    return {
        id_: lag
        if lag.group.type is GroupType.SHARE
        else replace(lag, partitions=tuple(map(known, lag.partitions)))
        for id_, lag in lags.items()
    }


@dataclass(slots=True)
class _Known:
    """An uncommitted offset.

    Attributes:
        empty_until: The offset before which there is no message.
        has_message: Whether there is one after it.
        retry_at: The number of the snapshot before which it is not read.
    """

    empty_until: int
    has_message: bool = False
    retry_at: int = 0


class DrainedPartitions:
    """Finds the partitions without a message from the committed offset to the last stable offset.

    After the first snapshot, a partition is read only if its committed offset has not moved since the last
    one. Each offset is read once, and from there on if the last stable offset has moved and no message was
    found.
    """

    def __init__(self, read: ReadFirst) -> None:
        """Start before the first snapshot.

        Args:
            read: Reads the first messages at or after offsets.
        """
        self._read = read
        self._snapshot = 0
        self._before: frozenset[tuple[str, _Offset]] | None = None
        self._known: dict[_Offset, _Known] = {}

    def mark(self, lags: Mapping[str, GroupLag]) -> dict[str, GroupLag]:
        """Return the next snapshot with `PartitionLag.has_message`, as far as it is known."""
        self._snapshot += 1
        ends = {
            (id_, (each.topic_id, *each.first_uncommitted)): each.stable_end
            for id_, lag in lags.items()
            if lag.group.type is not GroupType.SHARE
            for each in lag.partitions
            if each.lag and each.stable_end is not None
        }
        unmoved = {key[1]: end for key, end in ends.items() if self._before is None or key in self._before}
        self._before = frozenset(ends)
        self._known = {key: self._known.get(key, _Known(key[3])) for key in unmoved}
        self._look(unmoved)
        has_message = {
            key[1:]: known.has_message
            for key, known in self._known.items()
            if known.has_message or known.empty_until >= unmoved[key]
        }
        return with_messages(lags, has_message)

    def _look(self, ends: Mapping[_Offset, int]) -> None:
        due = sorted(
            (ends[key] - known.empty_until, key)
            for key, known in self._known.items()
            if not known.has_message and known.empty_until < ends[key] and known.retry_at <= self._snapshot
        )
        starts = {key: (*key[1:3], self._known[key].empty_until) for _, key in due[:_MOST]}
        found = self._read(frozenset(starts.values()), _READ_SECONDS)
        for key, start in starts.items():
            known = self._known[key]
            if start in found.times:
                known.has_message = True
            elif start in found.absent:
                known.empty_until = ends[key]
            else:
                known.retry_at = self._snapshot + _RETRY_SNAPSHOTS
