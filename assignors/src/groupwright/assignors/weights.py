"""Sources of the weights of partitions: throughput, lag, processing time, or a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from groupwright.assignors._model.group import Topic, Weights
from groupwright.assignors._model.weight_source import ByPartition, GroupMeasurements, WeightSource
from groupwright.assignors.errors import InvalidInputError


class Throughput(WeightSource):
    """Messages per second that are written to each partition.

    The leader asks brokers for two offsets of each partition, now and `window` seconds ago, so that every
    leader finds the same, whenever it has joined. Offsets that hold no message (markers of transactions, and
    what compaction has removed) count as messages.
    """

    def __init__(self, window: float = 300.0) -> None:
        """Create a source.

        Args:
            window: Seconds over which the throughput is averaged. A longer window is steadier, and follows
                changes later.

        Raises:
            InvalidInputError: The window is not positive.
        """
        self._window = _positive(window, "window")

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:  # noqa: ARG002 - part of the interface
        """Return messages per second."""
        return _rates(measured.at(self._window), measured.log_ends(), self._window)

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"Throughput(window={self._window})"


class Lag(WeightSource):
    """Messages per second that a partition's owner must consume to be without lag after `horizon` seconds.

    It says nothing about messages to come, so it is usually added to `Throughput`. A partition without a
    committed offset is unknown.
    """

    def __init__(self, horizon: float = 60.0) -> None:
        """Create a source.

        Args:
            horizon: Seconds in which the lag should be gone: the fewer, the more the lag weighs.

        Raises:
            InvalidInputError: The horizon is not positive.
        """
        self._horizon = _positive(horizon, "horizon")

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:  # noqa: ARG002 - part of the interface
        """Return messages per second."""
        return _rates(measured.committed(), measured.log_ends(), self._horizon)

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"Lag(horizon={self._horizon})"


class ProcessingTime(WeightSource):
    """Seconds of work per second: the processing time of a message, times the messages per second.

    Each member measures the processing time of its partitions' messages: from the moment that `poll` or
    `consume` has returned them until the next call. It sends them to the leader when it joins. So a partition
    weighs what it costs the application, however different its messages are, and a member whose partitions
    weigh more than its capacity cannot keep up.

    A partition of which no member sends anything, as one that is not consumed yet, has the median
    processing time of its topic. Until any member sends anything, as in a new group, each message counts as
    1 s, so partitions weigh what `rate` says. Messages that one `consume` returns share the time that they
    took together.

    The rate is that of the messages to be consumed, not of those that were: a member that cannot keep up is
    busy all the time, and its own rate does not show by how much its work exceeds its capacity.
    """

    needs_processing_times = True

    def __init__(self, rate: WeightSource | None = None) -> None:
        """Create a source.

        Args:
            rate: The messages per second to be consumed; `Throughput()` by default.
        """
        self._rate = Throughput() if rate is None else rate

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:
        """Return seconds of work per second."""
        return _work(topics, measured.processing_times(), self._rate.weigh(topics, measured))

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"ProcessingTime(rate={self._rate!r})"


class WeightFunction(WeightSource):
    """Weights that a function returns for the name of a topic and the number of a partition."""

    def __init__(self, function: Callable[[str, int], float]) -> None:
        """Create a source."""
        self._function = function

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> Weights:  # noqa: ARG002 - part of the interface
        """Return the function's results."""
        return {
            name: [self._function(name, number) for number in range(topic.partitions)]
            for name, topic in topics.items()
        }

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"WeightFunction({self._function!r})"


def _positive(seconds: float, name: str) -> float:
    if not 0 < seconds < math.inf:
        raise InvalidInputError(f"{name} must be a positive number of seconds, not {seconds!r}")
    return float(seconds)


def _rates(former: ByPartition, now: ByPartition, seconds: float) -> Weights:
    from groupwright.assignors._model.weight_arrays import rates

    return rates(former, now, seconds)


def _work(topics: Mapping[str, Topic], seconds: ByPartition, messages: Weights) -> Weights:
    from groupwright.assignors._model.weight_arrays import work

    return work(topics, seconds, messages)
