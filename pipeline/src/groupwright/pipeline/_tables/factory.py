"""Factory of tables, by the name of their format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from groupwright.pipeline._tables.java import has_class
from groupwright.pipeline._tables.lakehouse import DeltaTables, IcebergTables
from groupwright.pipeline._tables.protocol import Tables, WriteLease
from groupwright.pipeline.errors import TablesError


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Attributes:
        open: Its tables.
        needs: A class in its jars.
        extension: The extension that `spark.sql.extensions` must contain.
        jars: The Maven coordinates of its jars.
        settings: Spark settings of a session with this format, unless it has others.
    """

    open: Callable[[SparkSession, str, WriteLease | None], Tables]
    needs: str
    extension: str
    jars: str
    settings: Mapping[str, str] = field(default_factory=dict)


_FORMATS = {
    "delta": Format(
        DeltaTables,
        "io.delta.tables.DeltaTable",
        "io.delta.sql.DeltaSparkSessionExtension",
        "io.delta:delta-spark_2.13:4.0.0",
        {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Delta reads a table's log by queries of 50 tasks by default; the logs of these tables are small.
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    ),
    "iceberg": Format(
        IcebergTables,
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    ),
}
FORMATS = tuple(_FORMATS)
"""The supported formats."""
FORMAT_JARS = {name: each.jars for name, each in _FORMATS.items()}
"""The Maven coordinates of the formats, which Spark does not contain."""


def table_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        TablesError: There is no such format.
    """
    try:
        return _FORMATS[name]
    except KeyError:
        raise TablesError(f"unknown table format {name!r}; known formats: {', '.join(FORMATS)}") from None


def open_tables(
    spark: SparkSession, root: str, format_: str = "delta", *, lease: WriteLease | None = None
) -> Tables:
    """Open the tables under a root.

    Args:
        spark: A session with the format's jars and extension; those of `groupwright.pipeline.jobs` have
            Delta's.
        root: Their folder, as a path or a URI; for Iceberg, `catalog.namespace`.
        format_: One of `FORMATS`.
        lease: The right to write, if a job holds one.

    Raises:
        TablesError: The format is unknown, or this Spark lacks its jars or extension.
    """
    wanted = table_format(format_)
    if not has_class(spark._jvm, wanted.needs):  # noqa: SLF001 - Spark has no other way to its class path
        raise TablesError(
            f"the format {format_} needs its jars, and this Spark has no class {wanted.needs}: start "
            "Spark with "
            f"spark.jars.packages={wanted.jars} (in the version of your Spark)"
        )
    if wanted.extension not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise TablesError(
            f"the format {format_} needs an extension: start Spark with "
            f"spark.sql.extensions={wanted.extension}"
        )
    return wanted.open(spark, root, lease)
