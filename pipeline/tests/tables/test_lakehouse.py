"""Delta and Iceberg keep the promises that Parquet keeps."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import Tables, TablesError
from groupwright.pipeline._tables.lakehouse import DeltaTables, IcebergTables
from groupwright.pipeline.schemas import LAG
from groupwright.testing import resolve_jars

DELTA = "io.delta:delta-spark_2.13:4.0.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
_THEIRS = ("delta-", "iceberg-")
"""What else they need is Spark's."""


class LostLease:
    number = 1

    def check(self) -> None:
        raise TablesError("the job has lost its lease")


@pytest.mark.parametrize("tables", [DeltaTables, IcebergTables])
@pytest.mark.parametrize(
    "change",
    [
        lambda tables: tables.compact(LAG, [date(2026, 11, 20)]),
        lambda tables: tables.retain(LAG, date(2026, 11, 20)),
        lambda tables: tables.vacuum(LAG),
    ],
)
def test_a_job_without_its_lease_does_not_maintain_tables(
    spark: SparkSession, tables: Callable[..., Tables], change: Callable[[Tables], None]
) -> None:
    with pytest.raises(TablesError, match="lost its lease"):
        change(tables(spark, "lake.groups", LostLease()))


@pytest.mark.kafka
@pytest.mark.slow
def test_delta_and_iceberg_add_once_and_replace_dates_whole(
    tmp_path: Path, small_spark: Mapping[str, str]
) -> None:
    """On a Spark of its own: its extensions are settled when its JVM starts."""
    jars = [jar for jar in resolve_jars(DELTA, ICEBERG) if jar.name.startswith(_THEIRS)]
    program = Path(__file__).with_name("lakehouse_program.py")
    done = subprocess.run(
        [sys.executable, program, tmp_path, ",".join(map(str, jars)), json.dumps(dict(small_spark))],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
