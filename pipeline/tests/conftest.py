"""What the pipeline's tests share: one small local Spark."""

import logging
import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from groupwright.pipeline.jobs import FEW_ROWS, local_session


class _ContextLogger(PySparkLogger):
    """Leaves the handlers as they are.

    PySpark's own makes each write JSON, also pytest's, which is given to loggers that do not propagate: all
    later tests would have JSON in `caplog`.
    """

    def addHandler(self, handler: logging.Handler) -> None:  # noqa: N802 - logging's name
        logging.Logger.addHandler(self, handler)


def pytest_configure() -> None:
    """Make the loggers to which PySpark writes a query that fails, before it does."""
    before = logging.getLoggerClass()
    logging.setLoggerClass(_ContextLogger)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name)
    logging.setLoggerClass(before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need Spark, and keep those that share it in one worker."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if names & {"spark", "small_spark"}:
            item.add_marker("spark")
        if "spark" in names:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def small_spark() -> dict[str, str]:
    """Settings of every Spark of the tests.

    With Spark's own, which compile queries and adapt them, jobs run in `make endure`.
    """
    java_options = "spark.driver.extraJavaOptions"
    return {
        **FEW_ROWS,
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # Spark's own classes need no verification, which takes a tenth of a start.
        java_options: f"{FEW_ROWS[java_options]} "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        # Checksums and statistics of a few rows.
        "spark.databricks.delta.stats.collect": "false",
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
    }


@pytest.fixture(scope="session")
def spark(small_spark: dict[str, str]) -> Iterator[SparkSession]:
    """Spark in this process, as the command starts it."""
    with patch.dict(os.environ, {"TZ": os.environ.get("TZ", "UTC")}):  # restores what Spark's start sets
        for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
            os.environ.pop(name, None)
        with local_session(
            "tests", settings=small_spark | {"spark.sql.warehouse.dir": os.devnull}
        ) as session:
            yield session
