"""Times as numbers, so that no time zone of a process affects them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it


def micros(column: Column | str) -> Column:
    """Return a timestamp in microseconds since 1970."""
    return F.unix_micros(column)


def time_of(microseconds: int) -> datetime:
    """Return the time in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def only_row(rows: DataFrame) -> Any:
    """Return the row of an aggregation."""
    return rows.collect()[0]
