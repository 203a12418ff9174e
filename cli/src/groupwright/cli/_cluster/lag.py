"""Lag of groups: committed offsets beside the ends of logs."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from groupwright.cli._cluster.client import EARLIEST, LATEST, Cluster
from groupwright.cli._cluster.model import CommittedOffset, DescribedGroup, GroupMember, GroupType
from groupwright.core import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group.

    Attributes:
        committed: The committed offset, of share groups the start offset; None if there is none.
        begin: The beginning of the log; None if it is not known.
        end: The end of the log; None if it is not known.
        owner: The member that is assigned the partition; None if there is none, or it is not known.
        error: Why the log's offsets are not known; empty if they are.
    """

    topic: str
    partition: int
    committed: int | None
    begin: int | None
    end: int | None
    owner: GroupMember | None = None
    error: str = ""

    @property
    def name(self) -> str:
        """The topic and the number, as Kafka writes them."""
        return f"{self.topic}-{self.partition}"

    @property
    def is_beyond_end(self) -> bool:
        """True if the committed offset is beyond the end of the log."""
        return self.committed is not None and self.end is not None and self.committed > self.end

    @property
    def is_before_begin(self) -> bool:
        """True if the committed offset is before the beginning of the log."""
        return self.committed is not None and self.begin is not None and self.committed < self.begin

    @property
    def lag(self) -> int | None:
        """Messages from the committed offset to the end of the log; None if either is not known."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - max(self.committed, self.begin or 0))


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group with the lag of each partition that it owns or has committed."""

    group: DescribedGroup
    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int | None:
        """Lag of all partitions whose lag is known; None if there is none."""
        known = [each.lag for each in self.partitions if each.lag is not None]
        return sum(known) if known else None


def lag_of_groups(cluster: Cluster, groups: Mapping[str, DescribedGroup]) -> dict[str, GroupLag]:
    """Return the lag of groups. The ends of logs are queried once for all groups, after committed offsets."""
    shared = [id_ for id_, group in groups.items() if group.type is GroupType.SHARE]
    committed = cluster.committed(groups.keys() - shared) | cluster.share_offsets(shared)
    wanted = {key for id_, group in groups.items() for key in (*committed[id_], *owners(group))}
    ends, errors = cluster.offsets(wanted, LATEST)
    begins, _ = cluster.offsets(wanted, EARLIEST)
    return group_lags(groups, committed, begins, ends, errors)


def group_lags(
    groups: Mapping[str, DescribedGroup],
    committed: Mapping[str, Mapping[TopicPartitionKey, CommittedOffset]],
    begins: Mapping[TopicPartitionKey, int | None],
    ends: Mapping[TopicPartitionKey, int | None],
    errors: Mapping[TopicPartitionKey, str],
) -> dict[str, GroupLag]:
    """Return the lag of groups, of whose partitions all offsets are known already.

    Args:
        groups: The groups by their names.
        committed: Their committed offsets.
        begins: Beginnings of logs.
        ends: Ends of logs.
        errors: Why the end of a log is not known.
    """
    return {
        id_: GroupLag(group, tuple(_partitions(committed[id_], owners(group), begins, ends, errors)))
        for id_, group in groups.items()
    }


def owners(group: DescribedGroup) -> dict[TopicPartitionKey, GroupMember]:
    """Return the members of a group by the partitions that they are assigned."""
    return {
        (topic, partition): member
        for member in group.members
        for topic, partitions in member.assigned.items()
        for partition in partitions
    }


def _partitions(
    committed: Mapping[TopicPartitionKey, CommittedOffset],
    owned: Mapping[TopicPartitionKey, GroupMember],
    begins: Mapping[TopicPartitionKey, int | None],
    ends: Mapping[TopicPartitionKey, int | None],
    errors: Mapping[TopicPartitionKey, str],
) -> Iterator[PartitionLag]:
    keys: Collection[TopicPartitionKey] = {*committed, *owned}
    for key in sorted(keys):
        offset = committed[key].offset if key in committed else None
        yield PartitionLag(*key, offset, begins.get(key), ends.get(key), owned.get(key), errors.get(key, ""))
