"""Lag of groups: committed offsets beside the ends of logs."""

from collections.abc import Mapping
from dataclasses import dataclass

from groupwright.cli._cluster.client import EARLIEST, LATEST, Cluster
from groupwright.cli._cluster.model import CommittedOffset, DescribedGroup, GroupMember, GroupType
from groupwright.core import TopicPartitionKey

Committed = Mapping[str, Mapping[TopicPartitionKey, CommittedOffset]]
"""Committed offsets by group."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group.

    Attributes:
        committed: The committed offset, of share groups the start offset; None if there is none.
        begin: The beginning of the log; None if it is not known.
        end: The end of the log; None if it is not known.
        owner: The member that is assigned the partition; None if there is none, or it is not known.
        error: Why the log's offsets are not known; empty if they are.
        topic_id: The topic's id; empty if it is not known.
    """

    topic: str
    partition: int
    committed: int | None
    begin: int | None
    end: int | None
    owner: GroupMember | None = None
    error: str = ""
    topic_id: str = ""

    @property
    def name(self) -> str:
        """The topic and the number, as Kafka writes them."""
        return f"{self.topic}-{self.partition}"

    @property
    def log(self) -> TopicPartitionKey:
        """The topic's id, or else its name, and the number: another one for a topic created again."""
        return self.topic_id or self.topic, self.partition

    @property
    def is_beyond_end(self) -> bool:
        """True if the committed offset is beyond the end of the log."""
        return self.committed is not None and self.end is not None and self.committed > self.end

    @property
    def deleted(self) -> int:
        """Messages after the committed offset that are deleted; 0 if that is not known."""
        return 0 if self.committed is None or self.begin is None else max(0, self.begin - self.committed)

    @property
    def lag(self) -> int | None:
        """Messages from the committed offset to the end of the log.

        None if either is not known, or if the offset is beyond the end: consumers then begin where
        `auto.offset.reset` says.
        """
        if self.committed is None or self.end is None or self.is_beyond_end:
            return None
        return max(0, self.end - max(self.committed, self.begin or 0))

    @property
    def may_lag(self) -> bool:
        """True if the group has messages to read, or if that is not known."""
        if self.lag is None:
            return self.end is None or self.end > (self.begin or 0)
        return self.lag > 0


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

    @property
    def is_beyond_end(self) -> bool:
        """True if a committed offset is beyond the end of its log."""
        return any(each.is_beyond_end for each in self.partitions)


def lag_of_groups(cluster: Cluster, groups: Mapping[str, DescribedGroup]) -> dict[str, GroupLag]:
    """Return the lag of groups. The offsets of logs are queried once for all groups."""
    shared = [id_ for id_, group in groups.items() if group.type is GroupType.SHARE]
    return lag_after(
        cluster, groups, cluster.committed(groups.keys() - shared) | cluster.share_offsets(shared)
    )


def lag_after(
    cluster: Cluster, groups: Mapping[str, DescribedGroup], committed: Committed
) -> dict[str, GroupLag]:
    """Return the lag of groups after committed offsets, which were queried before the ends of logs."""
    wanted = {key for id_, group in groups.items() for key in (*committed[id_], *owners(group))}
    topics = cluster.topics({name for name, _ in wanted})
    begins, _ = cluster.offsets(wanted, EARLIEST, topics=topics)
    ends, errors = cluster.offsets(wanted, LATEST, topics=topics)
    return group_lags(
        groups, committed, begins, ends, errors, {name: each.id for name, each in topics.items()}
    )


def group_lags(
    groups: Mapping[str, DescribedGroup],
    committed: Committed,
    begins: Mapping[TopicPartitionKey, int | None],
    ends: Mapping[TopicPartitionKey, int | None],
    errors: Mapping[TopicPartitionKey, str],
    topic_ids: Mapping[str, str],
) -> dict[str, GroupLag]:
    """Return the lag of groups, of whose partitions all offsets are known already.

    Args:
        groups: The groups by their names.
        committed: Their committed offsets.
        begins: Beginnings of logs.
        ends: Ends of logs.
        errors: Why the end of a log is not known.
        topic_ids: Ids of topics by their names, as far as they are known.
    """
    return {
        id_: GroupLag(
            group,
            tuple(
                PartitionLag(
                    *key,
                    committed=committed[id_][key].offset if key in committed[id_] else None,
                    begin=begins.get(key),
                    end=ends.get(key),
                    owner=owned.get(key),
                    error=errors.get(key, ""),
                    topic_id=topic_ids.get(key[0], ""),
                )
                for key in sorted({*committed[id_], *owned})
            ),
        )
        for id_, group in groups.items()
        for owned in [owners(group)]
    }


def owners(group: DescribedGroup) -> dict[TopicPartitionKey, GroupMember]:
    """Return the members of a group by the partitions that they are assigned."""
    return {
        (topic, partition): member
        for member in group.members
        for topic, partitions in member.assigned.items()
        for partition in partitions
    }
