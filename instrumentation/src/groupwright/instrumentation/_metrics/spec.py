"""The description of a client's metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from groupwright.core.metrics import MetricSpec


class Merge(StrEnum):
    """The way to combine a gauge's values of clients that share a series (same group and client id)."""

    SUM = "sum"
    MAX = "max"
    LAST = "last"
    """The value of the client whose last rebalance ended last."""


@dataclass(frozen=True, slots=True, eq=False)
class ClientSpec(MetricSpec):
    """The description of one metric of a client."""

    java: str | None = None
    """The Java client's metric of the same meaning, or the closest one; None if there is none."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, in its unit."""
    merge: Merge = Merge.LAST
    """The way to combine a gauge's values of several clients."""
    own_membership: bool = False
    """True if only Groupwright's own membership has it, since librdkafka does not report it."""
