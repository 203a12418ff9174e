"""The plans of `sticky` and `cooperative-sticky`: the best assignment for what members own."""

import logging

import numpy as np

from groupwright.assignors._algorithms.claims import Claims, Owners, settle_claims
from groupwright.assignors._algorithms.indexed_group import Layout
from groupwright.assignors._algorithms.partition_classes import make_rows
from groupwright.assignors._algorithms.spread import choose_partitions
from groupwright.assignors._algorithms.stickiness import best_flow
from groupwright.assignors._model.assignment import NOBODY, Assignment
from groupwright.assignors._model.columns import PartitionLists
from groupwright.assignors._model.group import Group, Member
from groupwright.assignors._wire.owned import OwnedLists, decode_owned
from groupwright.assignors._wire.user_data import decode_generation

_log = logging.getLogger("groupwright.assignors.sticky")


def plan_sticky(group: Group) -> Assignment:
    """Return what `StickyAssignor` does."""
    layout = Layout.of(group)
    if not layout.topics:
        return Assignment({}, layout.members)
    owners, _ = _best_owners(group, layout, decode_owned([m.user_data for m in _members(group, layout)]))
    return layout.given(owners)


def plan_cooperative(group: Group) -> Assignment:
    """Return what `CooperativeStickyAssignor` does: what is to move and still claimed is given to nobody."""
    layout = Layout.of(group)
    if not layout.topics:
        return Assignment({}, layout.members)
    members = _members(group, layout)
    owned = OwnedLists(
        PartitionLists.of([member.owned for member in members]),
        np.array([_generation(member) for member in members], np.int64),
    )
    owners, claims = _best_owners(group, layout, owned)
    is_withheld = claims.claimed & (owners != claims.owner)
    return layout.given(np.where(is_withheld, np.int32(NOBODY), owners))


def _members(group: Group, layout: Layout) -> list[Member]:
    by_id = {member.id: member for member in group.members}
    return [by_id[id_] for id_ in layout.members]


def _best_owners(group: Group, layout: Layout, owned: OwnedLists) -> tuple[Owners, Claims]:
    """Return who is to have each partition in the end, and the claims that this is made from."""
    claims = settle_claims(layout, owned)
    if claims.contested:
        _log.warning(
            "%d partitions are claimed by more than one member; the highest generation keeps them, and where two "
            "claim one in the same generation, nobody does",
            claims.contested,
        )
    rows, places = make_rows(group, layout, claims.owner)
    return choose_partitions(layout, rows, places, best_flow(rows)), claims


def _generation(member: Member) -> int:
    if member.generation >= 0 or not member.user_data:
        return member.generation
    return decode_generation(member.user_data)
