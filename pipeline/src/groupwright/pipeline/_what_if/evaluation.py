"""Evaluation of one generation's assignments by several assignors at once, one row each."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners
from groupwright.pipeline._what_if.plan_cache import PlanCache

_Numbers = npt.NDArray[np.int64]


class Measured(NamedTuple):
    """Measures of the assignments, one element per row.

    Attributes:
        moved: Partitions taken from a member that could have kept them.
        fewest_moves: The minimum of these moves for an optimally balanced assignment.
        imbalance: Maximum minus minimum partitions per member.
        topic_spread: Maximum minus minimum partitions of a topic per subscriber, averaged over topics.
        far: Partitions whose owner is in a rack without a replica; None if racks are unknown.
    """

    moved: list[int]
    fewest_moves: list[int]
    imbalance: list[int]
    topic_spread: list[float]
    far: list[int | None]


def evaluate(plans: PlanCache, structure: GroupShape, owned: Owners, given: Owners) -> Measured:
    """Evaluate assignments.

    Args:
        plans: Cache of optimal assignments, for groups with different subscriptions or with racks.
        structure: The group.
        owned: `(rows, partitions) int32`, owners before; only members that subscribe to the topic.
        given: `(rows, partitions) int32`, owners afterwards.
    """
    rows = len(given)
    return Measured(
        moved=((owned != UNASSIGNED) & (owned != given)).sum(axis=1).tolist(),
        fewest_moves=_fewest_moves(plans, structure, owned),
        imbalance=np.ptp(_loads(structure, given), axis=1).tolist(),
        topic_spread=_topic_spread(structure, given).tolist(),
        far=[structure.far(row) for row in given] if structure.has_racks else [None] * rows,
    )


def _loads(structure: GroupShape, owners: Owners) -> _Numbers:
    """Return the number of partitions of each member, as `(rows, members)`."""
    rows, width = len(owners), structure.members + 1
    places = owners + (np.arange(1, rows * width, width))[:, np.newaxis]
    return np.bincount(places.ravel(), minlength=rows * width).reshape(rows, width)[:, 1:]


def _fewest_moves(plans: PlanCache, structure: GroupShape, owned: Owners) -> list[int]:
    if structure.is_uniform:
        even: list[int] = _fewest_moves_to_even(structure, owned).tolist()
        return even
    return [plans.fewest_moves(structure, row) for row in owned] if structure.partitions else [0] * len(owned)


def _fewest_moves_to_even(structure: GroupShape, owned: Owners) -> _Numbers:
    """Return the excess over even shares, if the members with the most partitions get the larger shares."""
    each, larger = divmod(structure.partitions, structure.members)
    shares = each + (np.arange(structure.members) < larger)
    ascending = np.sort(_loads(structure, owned), axis=1)
    above: _Numbers = np.maximum(ascending[:, ::-1] - shares, 0).sum(axis=1)
    return above


def _topic_spread(structure: GroupShape, given: Owners) -> npt.NDArray[np.float64]:
    rows, topics, width = len(given), structure.topics, structure.members + 1
    if not topics:
        return np.zeros(rows)
    cells = topics * width
    cell = structure.layout.topic * np.int64(width) + given + 1 + (np.arange(rows) * cells)[:, np.newaxis]
    counts = np.bincount(cell.ravel(), minlength=rows * cells).reshape(rows, topics, width)[:, :, 1:]
    if structure.is_uniform:
        spread: npt.NDArray[np.float64] = np.ptp(counts, axis=2).mean(axis=1)
        return spread
    subscribes = structure.subscribes
    most = np.where(subscribes, counts, 0).max(axis=2)
    fewest = np.where(subscribes, counts, counts.max(initial=0)).min(axis=2)
    mixed: npt.NDArray[np.float64] = (most - fewest).mean(axis=1)
    return mixed
