"""Lag of groups: committed offsets beside the ends of logs.

Lag counts what a group can read with `isolation.level=read_committed`: up to the last stable offset, which is
the first offset of the oldest open transaction. Brokers do not return a group's isolation level. The lag of
share groups is the broker's (KIP-1226).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from groupwright.cli._cluster.client import EARLIEST, LATEST, Cluster
from groupwright.cli._cluster.model import (
    CommittedOffset,
    DescribedGroup,
    GroupMember,
    GroupType,
    TopicMetadata,
)
from groupwright.core import TopicPartitionKey

Committed = Mapping[str, Mapping[TopicPartitionKey, CommittedOffset]]
"""Committed offsets by group."""

MARKER = 1
"""Lag of a group that has processed everything up to the marker that ends a transaction."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group.

    Attributes:
        committed: The committed offset, of share groups the start offset; None if there is none.
        begin: The beginning of the log; None if it is not known.
        end: The end of the log (high watermark); None if it is not known.
        owners: The members that are assigned the partition; more than one in share groups only.
        error: Why the log's offsets are not known; empty if they are.
        topic_id: The topic's id; empty if it is not known.
        stable: The last stable offset; None if the lag counts up to the end, as that of share groups.
        has_message: Whether a reader found a message from the committed to the last stable offset: without
            one, there are only markers of transactions, aborted and compacted messages. None if none looked.
        is_shared: Whether it is a share group's.
        share_lag: The lag of a share group, as `CommittedOffset.lag`.
    """

    topic: str
    partition: int
    committed: int | None
    begin: int | None
    end: int | None
    owners: tuple[GroupMember, ...] = ()
    error: str = ""
    topic_id: str = ""
    stable: int | None = field(default=None, kw_only=True)
    has_message: bool | None = field(default=None, kw_only=True)
    is_shared: bool = field(default=False, kw_only=True)
    share_lag: int | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The topic and the number, as Kafka writes them."""
        return f"{self.topic}-{self.partition}"

    @property
    def owner(self) -> GroupMember | None:
        """The member that has the partition for itself; None if there is none, or it is not known."""
        return self.owners[0] if len(self.owners) == 1 else None

    @property
    def log(self) -> TopicPartitionKey:
        """The topic's id, or else its name, and the number: another one for a topic created again."""
        return self.topic_id or self.topic, self.partition

    @property
    def is_log_unknown(self) -> bool:
        """True if the offsets of the log are not known, such as without a leader."""
        return bool(self.error)

    @property
    def is_read(self) -> bool:
        """True if a member is assigned the partition, or an offset is committed."""
        return bool(self.owners) or self.committed is not None

    @property
    def has_no_commit(self) -> bool:
        """True if there is no committed offset; False if there may be one.

        Brokers leave out the committed offsets of a topic that this client may not see.
        """
        may_be_hidden = self.end is None and not self.topic_id and bool(self.error)
        return self.committed is None and not may_be_hidden

    @property
    def is_beyond_end(self) -> bool:
        """True if the committed offset is beyond the end of the log."""
        return self.committed is not None and self.end is not None and self.committed > self.end

    @property
    def deleted(self) -> int:
        """Messages after the committed offset that are deleted; 0 if not known, as in share groups."""
        if self.committed is None or self.begin is None or self.is_shared:
            return 0
        return max(0, self.begin - self.committed)

    @property
    def stable_end(self) -> int | None:
        """The offset up to which the lag counts; None if it is not known."""
        return self.end if self.stable is None else self.stable

    @property
    def first_uncommitted(self) -> tuple[str, int, int]:
        """Topic, partition, and the first offset that is not committed and still in the log."""
        return self.topic, self.partition, max(self.committed or 0, self.begin or 0)

    @property
    def lag(self) -> int | None:
        """Messages from the committed to the last stable offset; `share_lag` of a share group.

        Offsets without a message count, unless `has_message` tells that there are no others.

        None if either is not known, or if the committed offset is beyond the end: consumers then begin where
        `auto.offset.reset` says.
        """
        if self.is_shared:
            return self.share_lag
        return 0 if self.has_message is False else self.offsets_left

    @property
    def unreadable(self) -> int | None:
        """Offsets from the committed to the last stable offset, if none has a message; else 0."""
        if self.lag is None:
            return None
        return self.offsets_left if self.has_message is False else 0

    @property
    def processed_until(self) -> int | None:
        """The committed offset; of a share group, the end less the lag, or else the start offset.

        None if it is not known. The lag is queried before the end, so that this may be too much.
        """
        if self.share_lag is None:
            return self.committed
        return None if self.end is None else self.end - self.share_lag

    @property
    def held(self) -> int | None:
        """Offsets after the last stable offset that are not committed; None if they are not known.

        They are behind an open transaction. A group that reads uncommitted messages lags by `lag + held`.
        """
        if self.committed is None or self.end is None or self.is_beyond_end:
            return None
        return 0 if self.stable is None else max(0, self.end - max(self.stable, self.first_uncommitted[2]))

    @property
    def offsets_left(self) -> int | None:
        """Offsets from the committed to the last stable offset; None as `lag`."""
        committed, end = self.committed, self.stable_end
        if committed is None or end is None or self.is_beyond_end:
            return None
        return max(0, end - max(committed, self.begin or 0))

    @property
    def is_behind(self) -> bool:
        """True if there is a message to read, or may be: one offset alone can be a transaction's marker.

        The lag of a share group counts no markers. Where the broker does not return it, the messages after
        its start offset count.
        """
        if self.share_lag is not None:
            return self.share_lag > 0
        messages = self.offsets_left if self.is_shared else self.lag
        return bool(messages) and (self.has_message is True or messages != MARKER)

    @property
    def is_held_back(self) -> bool:
        """True if the group has read everything up to an open transaction, and messages follow."""
        is_there = self.committed is not None and self.stable is not None and self.committed <= self.stable
        return is_there and bool(self.held) and not self.lag

    @property
    def may_lag(self) -> bool:
        """True if the group has messages to read, or if that is not known."""
        if self.lag is None:
            return self.end is None or self.end > (self.begin or 0)
        return self.lag > 0


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group with the lag of each partition that it owns or has committed, or should read."""

    group: DescribedGroup
    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int | None:
        """Lag of all partitions whose lag is known; None if there is none."""
        return total(each.lag for each in self.partitions)

    @property
    def held(self) -> int | None:
        """Sum of `PartitionLag.held`; None if none is known."""
        return total(each.held for each in self.partitions)

    @property
    def is_beyond_end(self) -> bool:
        """True if a committed offset is beyond the end of its log."""
        return any(each.is_beyond_end for each in self.partitions)

    @property
    def is_incomplete(self) -> bool:
        """True if the offsets of a log are not known, so that sums leave its partition out."""
        return any(each.is_log_unknown for each in self.partitions)


def total(values: Iterable[int | None]) -> int | None:
    """Return the sum of the values that are known; None if there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """Offsets of logs at one moment.

    Attributes:
        begins: Beginnings of logs.
        ends: High watermarks.
        stable: Last stable offsets.
        errors: Why the offsets of a log are not known.
        topics: The topics by their names, as far as they are known.
    """

    begins: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    ends: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    stable: Mapping[TopicPartitionKey, int | None] = field(default_factory=dict)
    errors: Mapping[TopicPartitionKey, str] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)


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
    known = {id_: {*committed[id_], *owners(group)} for id_, group in groups.items()}
    subscribed = {name for group in groups.values() for name in group.topics}
    topics = cluster.topics(subscribed.union(name for keys in known.values() for name, _ in keys))
    wanted = {key for id_, group in groups.items() for key in _partitions_of(group, known[id_], topics)}
    return group_lags(groups, committed, _log_offsets(cluster, wanted, topics))


def _log_offsets(
    cluster: Cluster, partitions: Collection[TopicPartitionKey], topics: Mapping[str, TopicMetadata]
) -> LogOffsets:
    """Return the offsets of logs. A log of which one offset is not known has none: the others would mislead.

    Last stable offsets come after the ends, so that messages written meanwhile do not seem to be held.
    """
    begins, unknown_begins = cluster.offsets(partitions, EARLIEST, topics=topics)
    ends, unknown_ends = cluster.offsets(partitions, LATEST, topics=topics)
    stable, unknown_stable = cluster.offsets(partitions, LATEST, topics=topics, read_committed=True)
    errors = unknown_stable | unknown_begins | unknown_ends
    begins, ends, stable = (
        {key: offset for key, offset in each.items() if key not in errors} for each in (begins, ends, stable)
    )
    return LogOffsets(begins, ends, stable, errors, topics)


def group_lags(
    groups: Mapping[str, DescribedGroup], committed: Committed, logs: LogOffsets
) -> dict[str, GroupLag]:
    """Return the lag of groups, of whose partitions all offsets are known already.

    Args:
        groups: The groups by their names.
        committed: Their committed offsets.
        logs: Offsets of the logs.
    """
    return {
        id_: GroupLag(
            group,
            tuple(
                _partition(key, group, committed[id_].get(key), logs, owned)
                for key in sorted(_partitions_of(group, {*committed[id_], *owned}, logs.topics))
            ),
        )
        for id_, group in groups.items()
        for owned in [owners(group)]
    }


def _partition(
    key: TopicPartitionKey,
    group: DescribedGroup,
    committed: CommittedOffset | None,
    logs: LogOffsets,
    owned: Mapping[TopicPartitionKey, tuple[GroupMember, ...]],
) -> PartitionLag:
    # A share group reads uncommitted messages, unless share.isolation.level is changed (KIP-932).
    stable = None if group.type is GroupType.SHARE else logs.stable.get(key)
    end = logs.ends.get(key)
    return PartitionLag(
        *key,
        committed=None if committed is None else committed.offset,
        begin=logs.begins.get(key),
        end=end if end is None or stable is None else max(end, stable),  # which was queried later
        owners=owned.get(key, ()),
        error=logs.errors.get(key, ""),
        topic_id=logs.topics[key[0]].id if key[0] in logs.topics else "",
        stable=stable,
        is_shared=group.type is GroupType.SHARE,
        share_lag=None if committed is None else committed.lag,
    )


def _partitions_of(
    group: DescribedGroup, known: set[TopicPartitionKey], topics: Mapping[str, TopicMetadata]
) -> set[TopicPartitionKey]:
    """Return the partitions of a group: those that it owns or has committed, which are `known`, and others.

    Nobody may own some of a subscribed topic: classic clients see new partitions minutes later. A group that
    has no members, but had some, would read all of a topic again in which it has committed any.
    """
    if group.type is GroupType.SHARE or not group.protocol_type:
        return known
    names: Collection[str] = {name for name, _ in known}
    if group.members and group.is_assignment_known:
        names = group.topics
    elif group.members and group.protocol_type != "consumer":
        return known
    return known.union(
        (name, number) for name in names if name in topics for number in range(topics[name].partitions)
    )


def owners(group: DescribedGroup) -> dict[TopicPartitionKey, tuple[GroupMember, ...]]:
    """Return the members of a group by the partitions that they are assigned."""
    found: dict[TopicPartitionKey, list[GroupMember]] = {}
    for member in group.members:
        for topic, partitions in member.assigned.items():
            for partition in partitions:
                found.setdefault((topic, partition), []).append(member)
    return {key: tuple(members) for key, members in found.items()}
