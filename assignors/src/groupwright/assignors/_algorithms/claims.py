"""Resolution of the members' claims: the current owner of each partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import BoolArray, Int32Array, Int64Array
from groupwright.assignors._model.columns import NOT_FOUND, UNASSIGNED, PartitionColumns
from groupwright.assignors._wire.owned import OwnedColumns

Owners = Int32Array
"""`(partitions,) int32`: the index of the owner of each partition, or `UNASSIGNED`."""

_UNKNOWN_TOPIC = -1


@dataclass(frozen=True, eq=False)
class Claims:
    """Resolved claims of a group's members.

    Attributes:
        owner: `(partitions,) int32`: the member whose claim holds, which subscribes to the topic, or
            `UNASSIGNED`.
        claimed: `(partitions,) bool`: whether any member claims the partition, even if no claim to it holds.
        contested: The number of partitions that more than one member claims.
    """

    owner: Owners
    claimed: BoolArray
    contested: int

    def completed_by(self, revoked: Claims) -> Claims:
        """Return these claims, and those to partitions that no member claims here.

        Args:
            revoked: Claims of eager members to partitions that they have revoked. None of them is withheld.
        """
        owner = np.where(self.claimed, self.owner, revoked.owner)
        return Claims(owner, self.claimed, self.contested + revoked.contested)

    def withhold(self, owners: Owners) -> Owners:
        """Return the owners without those of partitions that another member must revoke first (KIP-429)."""
        moves = self.claimed & (owners != self.owner)
        return np.where(moves, np.int32(UNASSIGNED), owners)


def resolve_claims(indexed: IndexedGroup, owned: OwnedColumns) -> Claims:
    """Determine which claims hold.

    A partition with one claimant belongs to it, in any generation. Of several claimants, the one with the
    highest generation owns it; if two claim it in that generation, none does. Claims to partitions that do
    not exist are ignored. A claim to a topic that the member does not subscribe to does not hold, but
    invalidates older claims.

    Args:
        indexed: The group.
        owned: The claims of the group's members, in the order of `indexed.members`.
    """
    member, partition = _claimed_partitions(indexed, owned.partitions)
    owner = np.full(indexed.starts[-1], UNASSIGNED, np.int32)
    owner[partition] = member
    claimed = owner != UNASSIGNED
    contested = 0
    if np.count_nonzero(claimed) < partition.size:
        contested = _resolve_contested(owner, member, partition, owned.generations[member])
    owned_now = np.flatnonzero(owner != UNASSIGNED)
    subscriber_index = indexed.subscriber_index(indexed.topic[owned_now], owner[owned_now])
    owner[owned_now[subscriber_index == NOT_FOUND]] = UNASSIGNED
    return Claims(owner, claimed, contested)


def _claimed_partitions(indexed: IndexedGroup, columns: PartitionColumns) -> tuple[Owners, Int64Array]:
    """Return the claims to existing partitions.

    Returns:
        `(claims,) int32`, the index of the member, and `(claims,) int64`, that of the partition.
    """
    number_of = {topic: number for number, topic in enumerate(indexed.topics)}
    numbers = np.array([number_of.get(name, _UNKNOWN_TOPIC) for name in columns.names], np.int64)
    topics = numbers[columns.run_topics]
    known = topics != _UNKNOWN_TOPIC
    first_of = np.where(known, indexed.starts[topics], 0)
    size_of = np.where(known, indexed.starts[topics + known] - indexed.starts[topics], 0)
    run_sizes = np.diff(columns.run_starts)
    member = np.repeat(np.arange(len(columns), dtype=np.int32), columns.counts)
    exists = (columns.partitions >= 0) & (columns.partitions < np.repeat(size_of, run_sizes))
    partition = np.repeat(first_of, run_sizes)
    partition += columns.partitions
    return (member, partition) if exists.all() else (member[exists], partition[exists])


def _resolve_contested(
    owner: Owners,
    member: Owners,
    partition: Int64Array,
    generation: Int64Array,
) -> int:
    """Set the owners of partitions with several claimants, and return the number of these partitions."""
    contested = np.bincount(partition, minlength=owner.size) > 1
    contesting = np.flatnonzero(contested[partition])
    contesting = contesting[np.lexsort((generation[contesting], partition[contesting]))]
    last = np.append(partition[contesting[1:]] != partition[contesting[:-1]], True)
    highest = contesting[last]
    # A contested partition has two claims or more, so the claim before its last is to the same one.
    second_highest = contesting[np.flatnonzero(last) - 1]
    is_tie = generation[second_highest] == generation[highest]
    owner[partition[highest]] = np.where(is_tie, UNASSIGNED, member[highest])
    return int(highest.size)
