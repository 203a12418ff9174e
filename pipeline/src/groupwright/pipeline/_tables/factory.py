"""Factory of tables, by the name of their format."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from groupwright.pipeline._tables.java import java_class
from groupwright.pipeline._tables.lakehouse import DeltaTables, IcebergTables
from groupwright.pipeline._tables.parquet import ParquetTables
from groupwright.pipeline._tables.protocol import Tables, WriteLease
from groupwright.pipeline.errors import TablesError


@dataclass(frozen=True, slots=True)
class _Format:
    open: Callable[[SparkSession, str, WriteLease | None], Tables]
    needs: str | None = None
    """A class in the format's jars."""
    extension: str | None = None
    """The extension that `spark.sql.extensions` must contain."""
    jars: str = ""


_FORMATS = {
    "parquet": _Format(lambda spark, root, lease: ParquetTables(spark, root, lease=lease)),
    "delta": _Format(
        DeltaTables,
        "io.delta.tables.DeltaTable",
        "io.delta.sql.DeltaSparkSessionExtension",
        "io.delta:delta-spark_2.13:4.0.0",
    ),
    "iceberg": _Format(
        IcebergTables,
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    ),
}
FORMATS = tuple(_FORMATS)
"""The supported formats."""
FORMAT_JARS = {name: each.jars for name, each in _FORMATS.items() if each.jars}
"""The Maven coordinates of the formats that Spark does not contain."""


def open_tables(
    spark: SparkSession, root: str, format_: str = "parquet", *, lease: WriteLease | None = None
) -> Tables:
    """Open the tables under a root.

    Args:
        spark: A session with the format's jars and extension.
        root: Their folder, as a path or a URI; for Iceberg, `catalog.namespace`.
        format_: One of `FORMATS`.
        lease: The right to write, if a job holds one.

    Raises:
        TablesError: The format is unknown, this Spark lacks its jars or extension, or the tables are to be
            written and the file system cannot do that safely.
    """
    try:
        wanted = _FORMATS[format_]
    except KeyError:
        raise TablesError(f"unknown table format {format_!r}; known formats: {', '.join(FORMATS)}") from None
    if wanted.needs and not _has_class(spark, wanted.needs):
        raise TablesError(
            f"the format {format_} needs its jars, and this Spark has no class {wanted.needs}: start "
            "Spark with "
            f"spark.jars.packages={wanted.jars} (in the version of your Spark)"
        )
    if wanted.extension and wanted.extension not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise TablesError(
            f"the format {format_} needs an extension: start Spark with "
            f"spark.sql.extensions={wanted.extension}"
        )
    return wanted.open(spark, root, lease)


def _has_class(spark: SparkSession, name: str) -> bool:
    found = java_class(spark._jvm, name)  # noqa: SLF001 - Spark has no other way to its class path
    return type(found).__name__ == "JavaClass"
