"""A table's rows as Arrow, which Spark reads with their types."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline.schemas import Table


def to_arrow(rows: Sequence[Mapping[str, Any]], table: Table) -> pa.Table:
    """Return rows that have exactly the table's columns.

    Raises:
        ValueError: A row lacks a column or has another one. Arrow would write null, or drop it.
    """
    names = set(table.schema.names)
    for row in rows:
        if row.keys() != names:
            raise ValueError(f"a row of {table.name} differs in the columns {sorted(row.keys() ^ names)}")
    return pa.Table.from_pylist(rows, to_arrow_schema(table.schema))


def empty_frame(spark: SparkSession, table: Table) -> DataFrame:
    """Return a DataFrame without rows.

    It is made of Arrow, so Spark knows that it is empty and leaves it out of joins and unions. An empty list
    would be read by tasks in Python.
    """
    return spark.createDataFrame(to_arrow([], table), table.schema)
