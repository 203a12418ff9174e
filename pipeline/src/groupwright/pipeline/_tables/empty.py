"""A table without rows."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from groupwright.pipeline.schemas import Table


def empty_frame(spark: SparkSession, table: Table) -> DataFrame:
    """Return a DataFrame without rows.

    It is made of Arrow, so Spark knows that it is empty and leaves it out of joins and unions. An empty list
    would be read by tasks in Python.
    """
    return spark.createDataFrame(to_arrow_schema(table.schema).empty_table(), table.schema)
