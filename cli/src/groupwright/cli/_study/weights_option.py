"""Sources of weights that commands offer."""

from enum import StrEnum


class WeightsOption(StrEnum):
    """Source of the weights of a live group's partitions."""

    THROUGHPUT = "throughput"
    LAG = "lag"
    PROCESSING_TIME = "processing-time"
    NONE = "none"
