"""The description of a metric."""

from dataclasses import dataclass
from enum import StrEnum


class MetricType(StrEnum):
    """The type of a metric, by Prometheus's name."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Merge(StrEnum):
    """The way to combine a gauge's values of clients that share a series (same group and client id)."""

    SUM = "sum"
    MAX = "max"
    LAST = "last"
    """The value of the client whose last rebalance ended last."""


_SUFFIXES = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """The description of one metric. Each metric has one object, compared and hashed by identity."""

    name: str
    """The name in queries, with the suffix of its type (``_total``, ``_info``)."""
    type: MetricType
    help: str
    labels: tuple[str, ...]
    unit: str = ""
    """The base unit at the end of the name; empty for plain numbers."""
    java: str | None = None
    """The Java client's metric of the same meaning, or the closest one; None if there is none."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, in its unit."""
    merge: Merge = Merge.LAST
    """The way to combine a gauge's values of several clients."""
    own_membership: bool = False
    """True if only Groupwright's own membership has it, since librdkafka does not report it."""

    @property
    def family(self) -> str:
        """The name without the suffix of its type, as prometheus-client takes it."""
        return self.name.removesuffix(_SUFFIXES.get(self.type, ""))
