"""Age of the oldest record that a starting job has not read, by a search in the logs' timestamps. Pure."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from groupwright.pipeline._jobs.kafka import Offsets

_FIRST_SECONDS = 15.0
_LONGEST_SECONDS = 400 * 86400.0
_HALVINGS = 5
"""After the doublings, so the result is at most 1/32 too large."""


def count_unread(ends: Offsets, positions: Offsets) -> int:
    """Return the number of offsets from the positions to the ends."""
    return sum(
        max(0, end - positions.get(topic, {}).get(partition, 0))
        for topic, by_partition in ends.items()
        for partition, end in by_partition.items()
    )


def unread_seconds(offsets_at: Callable[[str], Offsets], positions: Offsets, now: datetime) -> float:
    """Return the age of the oldest unread record, rounded up; 0 if all are read.

    Args:
        offsets_at: Returns the offset of each partition's first record at or after an ISO 8601 time, or
            `latest` for the end.
        positions: The next offset to read of each partition.
        now: The present time.
    """

    def is_read(seconds: float) -> bool:
        """Return whether all records older than `seconds` are read."""
        time = (now - timedelta(seconds=seconds)).astimezone(UTC)
        return not count_unread(offsets_at(time.isoformat()), positions)

    if not count_unread(offsets_at("latest"), positions):
        return 0.0
    low, high = 0.0, _FIRST_SECONDS
    while high < _LONGEST_SECONDS and not is_read(high):
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_read(middle) else (middle, high)
    return high
