"""How fast the lag of a topic grows or shrinks. Pure: no clock, no I/O."""

from collections import deque

WINDOW_SECONDS = 300.0
_SAMPLE_SECONDS = WINDOW_SECONDS / 20
"""Shortest time between two samples, and for a velocity: three default intervals of automatic commits."""


class LagVelocity:
    """Velocity of a lag over the last minutes, as long as it is the lag of the same partitions."""

    def __init__(self) -> None:
        """Start without samples."""
        self._partitions: int | None = None
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, lag: int, partitions: int, time: float) -> float | None:
        """Take the lag at a time, which is later than all before.

        Args:
            lag: Messages.
            partitions: A hash of the partitions whose lag this is.
            time: Seconds since the epoch.

        Returns:
            Messages a second, negative if the lag shrinks; None if it has not been observed for long enough.
        """
        samples = self._samples
        if partitions != self._partitions:
            self._partitions = partitions
            samples.clear()
        while len(samples) > 1 and samples[1][0] <= time - WINDOW_SECONDS:
            samples.popleft()
        if not samples or time - samples[-1][0] >= _SAMPLE_SECONDS:
            samples.append((time, lag))
        since, before = samples[0]
        return (lag - before) / (time - since) if time - since >= _SAMPLE_SECONDS else None
