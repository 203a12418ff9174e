"""The plans of `sticky` and `cooperative-sticky`: the best assignment for what members own."""

import logging

import numpy as np

from groupwright.assignors._algorithms.claims import Claims, Owners, resolve_claims
from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._algorithms.partition_classes import classify_partitions
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.assignment import UNASSIGNED, Assignment
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.group import Group, Member
from groupwright.assignors._wire.owned import OwnedColumns, decode_owned
from groupwright.assignors._wire.user_data import decode_generation

_log = logging.getLogger("groupwright.assignors.sticky")


def plan_sticky(group: Group) -> Assignment:
    """Return what `StickyAssignor` does."""
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    owners, _ = _best_owners(group, indexed, decode_owned([m.user_data for m in _members(group, indexed)]))
    return indexed.assignment_of(owners)


def plan_cooperative(group: Group) -> Assignment:
    """Return what `CooperativeStickyAssignor` does: what is to move and still claimed is given to nobody."""
    indexed = IndexedGroup.of(group)
    if not indexed.topics:
        return Assignment({}, indexed.members)
    members = _members(group, indexed)
    owned = OwnedColumns(
        PartitionColumns.of([member.owned for member in members]),
        np.array([_generation(member) for member in members], np.int64),
    )
    owners, claims = _best_owners(group, indexed, owned)
    is_withheld = claims.claimed & (owners != claims.owner)
    return indexed.assignment_of(np.where(is_withheld, np.int32(UNASSIGNED), owners))


def _members(group: Group, indexed: IndexedGroup) -> list[Member]:
    by_id = {member.id: member for member in group.members}
    return [by_id[id_] for id_ in indexed.members]


def _best_owners(group: Group, indexed: IndexedGroup, owned: OwnedColumns) -> tuple[Owners, Claims]:
    """Return who is to have each partition in the end, and the claims that this is made from."""
    claims = resolve_claims(indexed, owned)
    if claims.contested:
        _log.warning(
            "%d partitions are claimed by more than one member; the highest generation keeps them, and where two "
            "claim one in the same generation, nobody does",
            claims.contested,
        )
    classes, class_index = classify_partitions(group, indexed, claims.owner)
    return choose_partitions(indexed, classes, class_index, best_flow(classes)), claims


def _generation(member: Member) -> int:
    if member.generation >= 0 or not member.user_data:
        return member.generation
    return decode_generation(member.user_data)
