"""Time ranges of the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.assignors import InvalidInputError

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

    Raises:
        InvalidInputError: A time is before 1970 or after the year 9998.
    """

    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        """Check that both times can be those of rows."""
        for time in (self.since, self.until):
            if time and not datetime(1970, 1, 1, tzinfo=UTC) <= time < datetime(9999, 1, 1, tzinfo=UTC):
                raise InvalidInputError(
                    f"{time.isoformat()} is no time of a table: choose one between the years 1970 and 9998"
                )

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
        """Return the ranges of a number of hours before and after a deploy.

        Raises:
            InvalidInputError: The hours are not positive, or a range begins before 1970 or ends after the
                year 9998.
        """
        try:
            length = timedelta(hours=hours)
            before, after = deploy - length, deploy + length
        except (OverflowError, ValueError):
            raise InvalidInputError(
                f"{hours:g} hours around {deploy.isoformat()} are no range of time: choose fewer hours"
            ) from None
        if length <= timedelta(0):
            raise InvalidInputError(f"{hours:g} hours are no range of time: choose more than 0")
        return cls(TimeRange(before, deploy), TimeRange(deploy, after), deploy)
