"""Records behind open transactions, which `read_committed` does not return yet. Pure: no clock, no Kafka.

A partition can be read up to its last stable offset, the first offset of its oldest open transaction. Records
behind it, also those of other groups, are read once the transaction has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from groupwright.pipeline._jobs.kafka import Offsets

_WARN_SECONDS = 60.0
"""The default of `transaction.timeout.ms`, after which the coordinator aborts a transaction."""
_REPEAT_SECONDS = 600.0
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition with records behind an open transaction.

    Attributes:
        topic: The topic.
        partition: The partition.
        last_stable_offset: The first offset that cannot be read.
        records: The number of offsets from there to the end of the log.
    """

    topic: str
    partition: int
    last_stable_offset: int
    records: int


def held_partitions(stable: Offsets, ends: Offsets) -> list[HeldPartition]:
    """Return the partitions whose last stable offset is below their log-end offset.

    Args:
        stable: The last stable offsets, queried first, so that no record written meanwhile counts.
        ends: The log-end offsets.
    """
    return [
        HeldPartition(topic, partition, offset, ends[topic][partition] - offset)
        for topic, by_partition in stable.items()
        for partition, offset in by_partition.items()
        if offset < ends.get(topic, {}).get(partition, offset)
    ]


def warning(held: Sequence[HeldPartition]) -> str:
    """Return the warning for these partitions."""
    shown = ", ".join(
        f"{each.topic}-{each.partition}: {each.records} from offset {each.last_stable_offset}"
        for each in held[:_SHOWN]
    )
    more = f" and {len(held) - _SHOWN} more partitions" if len(held) > _SHOWN else ""
    total = sum(each.records for each in held)
    return (
        f"{total} records are behind open transactions, and will be read when these have ended "
        f"({shown}{more}). Find and abort one that does not end with `kafka-transactions.sh find-hanging`"
    )


class TransactionMonitor:
    """Follows the held partitions of a running stream, and warns of those that do not advance."""

    def __init__(self) -> None:
        """Start without any."""
        self._since: dict[tuple[str, int, int], float] = {}
        self._warned = float("-inf")

    def update(self, held: Sequence[HeldPartition], now: float) -> Iterator[str]:
        """Yield warnings: one after a minute without progress, and another every ten minutes.

        Args:
            held: The partitions that are held now.
            now: Monotonic time in seconds.
        """
        keys = {(each.topic, each.partition, each.last_stable_offset): each for each in held}
        self._since = {key: self._since.get(key, now) for key in keys}
        stuck = [each for key, each in keys.items() if now - self._since[key] >= _WARN_SECONDS]
        if not stuck:
            self._warned = float("-inf")
        elif now - self._warned >= _REPEAT_SECONDS:
            self._warned = now
            yield warning(stuck)
