"""Remembered ends of logs, from which the arrival of a message is interpolated. Pure: no clock, no I/O."""

from array import array
from bisect import bisect_right
from collections.abc import Collection

from groupwright.core import TopicPartitionKey

SAMPLES = 60
"""Samples of a partition. Older ones are thinned, so that they reach far back, ever more coarsely."""


class EndOffsets:
    """Samples of the ends of logs, for each partition up to a number of them."""

    def __init__(self, samples: int = SAMPLES) -> None:
        """Start without samples.

        Args:
            samples: The most samples of a partition, at least 4.
        """
        self._limit = samples
        self._histories: dict[TopicPartitionKey, tuple[array[int], array[float]]] = {}

    def add(self, partition: TopicPartitionKey, end: int, time: float) -> None:
        """Remember the end of a log at a time, which is later than all before."""
        history = self._histories.get(partition)
        if history is None:
            history = self._histories[partition] = (array("q"), array("d"))
        ends, times = history
        while ends and ends[-1] > end:  # truncated, or created again: what was is of no use
            ends.pop()
            times.pop()
        if len(ends) > 1 and ends[-1] == ends[-2] == end:
            times[-1] = time  # of a log at rest, the first and the last sample suffice
            return
        ends.append(end)
        times.append(time)
        if len(ends) > self._limit:
            # Each second sample of the older half; the first stays: the memory reaches as far back as before.
            oldest = slice(1, self._limit // 2, 2)
            del ends[oldest], times[oldest]

    def since(self, partition: TopicPartitionKey) -> float | None:
        """Return the time of the first sample of a log; None if there is none."""
        history = self._histories.get(partition)
        return history[1][0] if history else None

    def arrival(self, partition: TopicPartitionKey, offset: int) -> float | None:
        """Return when the message at an offset arrived, as the pipeline's `lag_seconds` has it.

        It is interpolated linearly between the last sample at or below the offset and the next, so messages
        that arrive in a burst are dated wrongly by up to the time between these samples.

        Returns:
            Seconds since the epoch; None if the message was in the log before the first sample, or is not in
            it yet.
        """
        history = self._histories.get(partition)
        if history is None:
            return None
        ends, times = history
        above = bisect_right(ends, offset)
        if above in (0, len(ends)):
            return None
        fraction = (offset + 1 - ends[above - 1]) / (ends[above] - ends[above - 1])
        return times[above - 1] + fraction * (times[above] - times[above - 1])

    def keep(self, partitions: Collection[TopicPartitionKey]) -> None:
        """Forget all other partitions."""
        for gone in self._histories.keys() - partitions:
            del self._histories[gone]
