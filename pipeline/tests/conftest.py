"""What the pipeline's tests share: one small local Spark."""

import os
import sys
from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from groupwright.testing import find_java

_LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="session")
def small_spark() -> Mapping[str, str]:
    """Settings of every Spark of the tests: on a few rows, compiling a query takes longer than running it.

    The demo's test runs with Spark's own settings: compiled and adaptive queries.
    """
    return {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
        "-XX:+UseSerialGC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "2",
    }


@pytest.fixture(scope="session")
def spark(small_spark: Mapping[str, str]) -> Iterator[SparkSession]:
    """Spark in this process: two cores, bound to loopback, in UTC, without its web pages."""
    java = find_java().executable.resolve()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java.parents[1]))
        environment.setenv("SPARK_LOCAL_IP", _LOOPBACK)
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("TZ", os.environ.get("TZ", "UTC"))
        builder = (
            SparkSession.builder.appName("groupwright tests")
            .config("spark.driver.bindAddress", _LOOPBACK)
            .config("spark.driver.host", _LOOPBACK)
            .config("spark.driver.memory", "1g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", os.devnull)
        )
        for key, value in small_spark.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
