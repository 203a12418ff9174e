"""The partition of ``__consumer_offsets`` that holds a group (``GroupCoordinatorService.partitionFor``)."""

from __future__ import annotations

from groupwright.core.hash_order import java_hash

OFFSETS_TOPIC = "__consumer_offsets"


def partition_for(group: str, partitions: int) -> int:
    """Return a group's partition among the `partitions` of ``__consumer_offsets``."""
    return _absolute(java_hash(group)) % partitions


def _absolute(value: int) -> int:
    """Return Kafka's ``Utils.abs``: 0 for the smallest int32, which has no absolute value."""
    return 0 if value == -(1 << 31) else abs(value)
