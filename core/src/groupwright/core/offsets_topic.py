"""The partition of ``__consumer_offsets`` that holds a group (``GroupCoordinatorService.partitionFor``)."""

OFFSETS_TOPIC = "__consumer_offsets"


def partition_for(group: str, partitions: int) -> int:
    """Return a group's partition among the `partitions` of ``__consumer_offsets``."""
    return _absolute(java_hash(group)) % partitions


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: a signed int32 over the UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _absolute(value: int) -> int:
    """Return Kafka's ``Utils.abs``: 0 for the smallest int32, which has no absolute value."""
    return 0 if value == -(1 << 31) else abs(value)
