"""What describes a metric."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A metric's type, in Prometheus' terms."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Merge(StrEnum):
    """What a gauge shows where several clients share a series, having the same group and client id."""

    SUM = "sum"
    MAX = "max"
    LAST = "last"
    """That of the client whose last rebalance ended last."""


_SUFFIXES = {Kind.COUNTER: "_total", Kind.INFO: "_info"}


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """One metric. There is one object of each, and it is the key of many tables: compared, and hashed, as itself."""

    name: str
    """As it is queried, with the suffix of its kind."""
    kind: Kind
    help: str
    labels: tuple[str, ...]
    unit: str = ""
    """The base unit that ends the name; empty for plain numbers."""
    java: str | None = None
    """What the Java client calls it or comes closest to it, among its own metrics; None if nothing does."""
    buckets: tuple[float, ...] = ()
    """A histogram's upper bounds, in its unit."""
    merge: Merge = Merge.LAST
    """A gauge's."""
    own_membership: bool = False
    """Whether only Groupwright's own membership shows it: librdkafka tells nothing of it."""

    @property
    def family(self) -> str:
        """The name without its kind's suffix, as prometheus-client wants it."""
        return self.name.removesuffix(_SUFFIXES.get(self.kind, ""))
