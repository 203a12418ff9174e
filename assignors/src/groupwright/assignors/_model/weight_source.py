"""Interface of the sources of weights."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from groupwright.assignors._model.group import Topic, Weights
from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ByPartition = Mapping[str, "npt.NDArray[np.float64]"]
"""By topic, `(partitions,) float64`: a number for each partition, NaN where it is unknown."""


class GroupMeasurements(Protocol):
    """Measurements that a leader can make of the partitions that it assigns.

    The methods for offsets ask brokers, and may take a second. A broker that does not answer in time leaves
    its partitions unknown.
    """

    def log_ends(self) -> ByPartition:
        """Return the high watermarks."""

    def at(self, seconds_ago: float) -> ByPartition:
        """Return the offsets of the first messages that are not older; the log end where there is none."""

    def committed(self) -> ByPartition:
        """Return the committed offsets of the group; unknown where there is none."""

    def processing_times(self) -> ByPartition:
        """Return the seconds per message that members sent when they joined, times their capacities."""


class WeightSource(ABC):
    """Finds the weights of partitions. A custom source is a subclass with `weigh`.

    `LoadAwareAssignor(weights=...)` takes one. Groupwright's consumer asks it when it leads the group, on the
    thread that assigns, so that heartbeats continue meanwhile.

    Sources of the same unit can be added, and multiplied by a number:

        >>> Throughput() + 0.5 * Lag(horizon=600)
        Throughput(window=300.0) + 0.5 * Lag(horizon=600.0)

    Attributes:
        needs_processing_times: Whether members measure processing times, and send them to the leader.
    """

    needs_processing_times: bool = False

    @abstractmethod
    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:
        """Return the weights of each topic's partitions, in any unit.

        A topic may be missing, and a weight may be NaN: these are unknown. An unknown partition counts as the
        median of its topic.

        Args:
            topics: The topics that the group subscribes to.
            measured: What the leader can find out about their partitions.
        """

    def __add__(self, other: WeightSource) -> WeightSource:
        """Return a source of the sums. A weight that one of the two does not know is unknown."""
        return _Sum(self, other)

    def __mul__(self, factor: float) -> WeightSource:
        """Return a source of the products.

        Raises:
            InvalidInputError: The factor is negative or not finite.
        """
        return _Multiple(self, factor)

    __rmul__ = __mul__


class _Sum(WeightSource):
    def __init__(self, one: WeightSource, other: WeightSource) -> None:
        self._one, self._other = one, other
        self.needs_processing_times = one.needs_processing_times or other.needs_processing_times

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:
        from groupwright.assignors._model.weight_arrays import total

        return total(self._one.weigh(topics, measured), self._other.weigh(topics, measured))

    def __repr__(self) -> str:
        return f"{self._one!r} + {self._other!r}"


class _Multiple(WeightSource):
    def __init__(self, source: WeightSource, factor: float) -> None:
        if not 0 <= factor < math.inf:
            raise InvalidInputError(f"a factor of weights must be a finite number from 0, not {factor!r}")
        self._source, self._factor = source, factor
        self.needs_processing_times = source.needs_processing_times

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:
        from groupwright.assignors._model.weight_arrays import multiple

        return multiple(self._source.weigh(topics, measured), self._factor)

    def __repr__(self) -> str:
        text = f"({self._source!r})" if isinstance(self._source, _Sum) else repr(self._source)
        return f"{self._factor} * {text}"
