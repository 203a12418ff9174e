"""Time ranges of the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

_TIME_OF = {
    "rebalances": "completed",
    "group_epochs": "completed",
    "group_generations": "log_time",
    "group_members": "log_time",
    "client_events": "ended_at",
    "lag": "time",
    "churn": "hour",
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of time, with time zones.

    Attributes:
        since: Its start; None for the start of the tables.
        until: Its end, exclusive; None for the end of the tables.
    """

    since: datetime | None = None
    until: datetime | None = None

    def restrict(self, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Return the tables with the rows of this range; tables without a known time column as they are."""
        return {
            name: table.where(self._contains(F.col(_TIME_OF[name]))) if name in _TIME_OF else table
            for name, table in tables.items()
        }

    def _contains(self, time: Column) -> Column:
        inside = F.lit(True)  # noqa: FBT003 - a value of the query
        if self.since is not None:
            inside &= time >= F.lit(self.since)
        if self.until is not None:
            inside &= time < F.lit(self.until)
        return inside


@dataclass(frozen=True, slots=True)
class Compared:
    """Two ranges to compare.

    Attributes:
        before: The first range.
        after: The second.
        deploy: The time of the deploy between them, if there was one.
    """

    before: TimeRange
    after: TimeRange
    deploy: datetime | None = None

    @classmethod
    def around(cls, deploy: datetime, hours: float) -> "Compared":
        """Return the ranges of a number of hours before and after a deploy."""
        length = timedelta(hours=hours)
        return cls(TimeRange(deploy - length, deploy), TimeRange(deploy, deploy + length), deploy)
