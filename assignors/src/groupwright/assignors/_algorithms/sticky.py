"""Computation of `sticky` and `cooperative-sticky`: the best assignment given the owned partitions."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from groupwright.assignors._algorithms.claims import Claims, Owners, resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.columns import Assignment, PartitionColumns
from groupwright.assignors._model.group import Group, Member
from groupwright.assignors._wire.owned import OwnedColumns, decode_owned
from groupwright.assignors._wire.user_data import decode_generation

_log = logging.getLogger("groupwright.assignors.sticky")


def plan_sticky(group: Group) -> Assignment:
    """Return the assignment of `StickyAssignor`."""
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    claims = logged_claims(indexed, _owned_before(ordered_members(group, indexed)))
    return indexed.assignment_of(best_owners(group, indexed, claims.owner))


def plan_cooperative(group: Group) -> Assignment:
    """Return the assignment of `CooperativeStickyAssignor`, without claimed partitions that move."""
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    members = ordered_members(group, indexed)
    owned = OwnedColumns(
        PartitionColumns.of([member.owned for member in members]),
        np.array([_generation(member) for member in members], np.int64),
    )
    claims = logged_claims(indexed, owned)
    owners = best_owners(group, indexed, claims.owner)
    return indexed.assignment_of(claims.withhold(owners))


def best_owners(group: Group, indexed: IndexedGroup, owners: Owners) -> Owners:
    """Return the owner of each partition in the best assignment.

    Args:
        group: The group.
        indexed: The indexed form of the group, with at least one partition.
        owners: The current owners.
    """
    classes, class_index = classify_partitions(group, indexed, owners)
    return choose_partitions(indexed, classes, class_index, best_flow(classes))


def logged_claims(indexed: IndexedGroup, owned: OwnedColumns, log: logging.Logger = _log) -> Claims:
    """Determine which claims hold, and log a warning if members contradict each other."""
    claims = resolve_claims(indexed, owned)
    if claims.contested:
        log.warning(
            "%d partitions are claimed by more than one member: the highest generation owns them, or "
            "no member if two claim a partition in that generation",
            claims.contested,
        )
    return claims


def ordered_members(group: Group, indexed: IndexedGroup) -> list[Member]:
    """Return the members in the order of `indexed.members`."""
    by_id = {member.id: member for member in group.members}
    return [by_id[id_] for id_ in indexed.members]


def _owned_before(members: Sequence[Member]) -> OwnedColumns:
    """Return the claims in the user data, and in the subscriptions of members without user data.

    Members of a real group own nothing when they join eagerly: the latter is for tools that build groups.
    """
    owned = decode_owned([member.user_data for member in members])
    without_user_data = [
        number for number, member in enumerate(members) if not member.user_data and member.owned
    ]
    if not without_user_data:
        return owned
    lists, generations = owned.partitions.split(), owned.generations.copy()
    for number in without_user_data:
        lists[number], generations[number] = members[number].owned, members[number].generation
    return OwnedColumns(PartitionColumns.of(lists), generations)


def _generation(member: Member) -> int:
    if member.generation >= 0 or not member.user_data:
        return member.generation
    return decode_generation(member.user_data)
