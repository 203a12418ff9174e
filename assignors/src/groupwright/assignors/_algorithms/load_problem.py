"""Group as a load-balancing problem: partitions with weights, members with capacities."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groupwright.assignors._algorithms.indexed_group import IndexedGroup
from groupwright.assignors._model.arrays import BoolArray, Int64Array
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.weight_arrays import FloatArray, fill_unknown

_log = logging.getLogger("groupwright.assignors.load_aware")

UNKNOWN = np.nan
"""Weight of a partition of which nothing is known."""

MAX_WEIGHT = 1e18
"""Larger weights count as this."""

MIN_SHARE = 1e-12
"""Weights below this share of the largest weight count as 0, since rounding errors are as large."""


@dataclass(frozen=True, eq=False)
class LoadProblem:
    """A load-balancing problem: uniform machines with restricted assignment, in the terms of scheduling.

    Attributes:
        weights: `(partitions,) float64`: the weight of each partition in `unit`, not negative. The heaviest
            is from 0.5 to 1, so that rounding errors have a known size.
        set_of: `(partitions,) int64`: the subscriber set of each partition.
        subscribes: `(sets, members) bool`: the members of each subscriber set.
        capacities: `(members,) float64`: positive. The result balances load divided by capacity.
        unit: The weight that 1 stands for, a power of 2.
    """

    weights: FloatArray
    set_of: Int64Array
    subscribes: BoolArray
    capacities: FloatArray
    unit: float

    @classmethod
    def of(cls, indexed: IndexedGroup, weights: FloatArray, capacities: FloatArray) -> LoadProblem:
        """Return the problem of a group.

        Args:
            indexed: The group, with at least one partition.
            weights: `(partitions,) float64`: the weights, finite and not negative. If all are 0, all
                partitions count the same.
            capacities: `(members,) float64`: the capacities.
        """
        subscribes = np.zeros((len(indexed.subscriber_sets), len(indexed.members)), np.bool_)
        for number, subscriber_set in enumerate(indexed.subscriber_sets):
            subscribes[number, subscriber_set] = True
        if not weights.any():
            weights = np.ones_like(weights)
        heaviest, exponent = np.frexp(weights.max())
        scaled = np.ldexp(weights, -exponent)
        scaled[scaled <= heaviest * MIN_SHARE] = 0.0
        set_of = indexed.subscriber_set_of.astype(np.int64)[indexed.topic]
        return cls(scaled, set_of, subscribes, capacities, float(np.ldexp(1.0, exponent)))

    @property
    def members(self) -> int:
        """The number of members."""
        return self.capacities.size

    @cached_property
    def average(self) -> float:
        """The total weight over the total capacity."""
        return float(self.weights.sum() / self.capacities.sum())

    @cached_property
    def has_equal_capacities(self) -> bool:
        """True if all capacities are the same."""
        return bool((self.capacities == self.capacities[0]).all())

    @cached_property
    def has_equal_weights(self) -> bool:
        """True if all weights are the same."""
        return bool((self.weights == self.weights[0]).all())

    @cached_property
    def has_equal_subscriptions(self) -> bool:
        """True if all members subscribe to all topics."""
        return bool(self.subscribes.all())

    @cached_property
    def subscriber_counts(self) -> Int64Array:
        """`(sets,) int64`: the number of members of each subscriber set."""
        counts: Int64Array = np.count_nonzero(self.subscribes, axis=1).astype(np.int64)
        return counts

    @cached_property
    def least_flexible_first(self) -> Int64Array:
        """`(members,) int64`: the members, those that can take the least weight first."""
        set_weights = np.bincount(self.set_of, self.weights, self.subscribes.shape[0])
        return np.argsort(set_weights @ self.subscribes, kind="stable")


def weights_of(group: Group, indexed: IndexedGroup) -> FloatArray:
    """Return `(partitions,) float64`: the weights of the topics, `UNKNOWN` for topics without.

    Weights above `MAX_WEIGHT` count as `MAX_WEIGHT`; a warning names the topic.
    """
    weights = np.full(indexed.starts[-1], UNKNOWN)
    for number, name in enumerate(indexed.topics):
        of_topic = group.topics[name].weights
        if of_topic is not None:
            if of_topic.max() > MAX_WEIGHT:
                _log.warning("topic %r: weights above %g count as %g", name, MAX_WEIGHT, MAX_WEIGHT)
            weights[indexed.starts[number] : indexed.starts[number + 1]] = np.minimum(of_topic, MAX_WEIGHT)
    return weights


def known_weights(group: Group, indexed: IndexedGroup) -> FloatArray:
    """Return `(partitions,) float64`: the weights of the topics, with unknown ones filled in."""
    return fill_unknown(weights_of(group, indexed), indexed.starts)
