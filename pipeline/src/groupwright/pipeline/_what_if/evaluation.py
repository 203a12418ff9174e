"""Evaluation of one generation's assignments by several assignors at once, one row each."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners

_Numbers = npt.NDArray[np.int64]


class QualityColumns(NamedTuple):
    """Quality of the assignments, one element per row: the columns of the table `what_if_generations`.

    Attributes:
        moved: Partitions taken from a member that could have kept them.
        min_moves: The minimum of these moves for an optimally balanced assignment.
        imbalance: Maximum minus minimum partitions per member.
        topic_spread: Maximum minus minimum partitions of a topic per subscriber, averaged over topics.
        rack_mismatches: Partitions whose owner is in a rack without a replica; None if racks are unknown.
    """

    moved: list[int]
    min_moves: list[int]
    imbalance: list[int]
    topic_spread: list[float]
    rack_mismatches: list[int | None]


def evaluate(cache: AssignmentCache, shape: GroupShape, owned: Owners, assigned: Owners) -> QualityColumns:
    """Evaluate assignments of one group, one per row.

    Args:
        cache: Cache of optimal assignments, for groups with different subscriptions or with racks.
        shape: The group.
        owned: `(rows, partitions) int32`, owners before; only members that subscribe to the topic.
        assigned: `(rows, partitions) int32`, owners afterwards.
    """
    rows = len(assigned)
    return QualityColumns(
        moved=((owned != UNASSIGNED) & (owned != assigned)).sum(axis=1).tolist(),
        min_moves=_min_moves(cache, shape, owned),
        imbalance=np.ptp(_loads(shape, assigned), axis=1).tolist(),
        topic_spread=_topic_spread(shape, assigned).tolist(),
        rack_mismatches=[shape.rack_mismatches(row) for row in assigned]
        if shape.has_racks
        else [None] * rows,
    )


def peak_loads(shape: GroupShape, assigned: Owners, weights: npt.NDArray[np.float64]) -> list[float | None]:
    """Return the largest load of a member divided by the mean, by row; None if a weight is unknown.

    Args:
        shape: The group.
        assigned: `(rows, partitions) int32`, the owners.
        weights: `(partitions,) float64`, the weight of each partition; NaN if unknown.
    """
    total = float(weights.sum())
    if not total > 0:  # also if it is NaN
        return [None] * len(assigned)
    loads = [np.bincount(row + 1, weights, shape.members + 1)[1:].max() for row in assigned]
    return [float(load) * shape.members / total for load in loads]


def _loads(shape: GroupShape, owners: Owners) -> _Numbers:
    """Return the number of partitions of each member, as `(rows, members)`."""
    rows, width = len(owners), shape.members + 1
    bins = owners + (np.arange(1, rows * width, width))[:, np.newaxis]
    return np.bincount(bins.ravel(), minlength=rows * width).reshape(rows, width)[:, 1:]


def _min_moves(cache: AssignmentCache, shape: GroupShape, owned: Owners) -> list[int]:
    if shape.is_uniform:
        even: list[int] = _min_moves_to_even(shape, owned).tolist()
        return even
    return [cache.min_moves(shape, row) for row in owned] if shape.partitions else [0] * len(owned)


def _min_moves_to_even(shape: GroupShape, owned: Owners) -> _Numbers:
    """Return the partitions above even shares, by row. Members that own the most get the larger shares."""
    each, larger = divmod(shape.partitions, shape.members)
    shares = each + (np.arange(shape.members) < larger)
    ascending = np.sort(_loads(shape, owned), axis=1)
    above: _Numbers = np.maximum(ascending[:, ::-1] - shares, 0).sum(axis=1)
    return above


def _topic_spread(shape: GroupShape, assigned: Owners) -> npt.NDArray[np.float64]:
    rows, topics, width = len(assigned), shape.topics, shape.members + 1
    if not topics:
        return np.zeros(rows)
    cells = topics * width
    cell = shape.indexed.topic * np.int64(width) + assigned + 1 + (np.arange(rows) * cells)[:, np.newaxis]
    counts = np.bincount(cell.ravel(), minlength=rows * cells).reshape(rows, topics, width)[:, :, 1:]
    if shape.is_uniform:
        spread: npt.NDArray[np.float64] = np.ptp(counts, axis=2).mean(axis=1)
        return spread
    subscribes = shape.subscribes
    most = np.where(subscribes, counts, 0).max(axis=2)
    fewest = np.where(subscribes, counts, counts.max(initial=0)).min(axis=2)
    mixed: npt.NDArray[np.float64] = (most - fewest).mean(axis=1)
    return mixed
