"""What the pipeline's tests share: one small local Spark."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from groupwright.testing import find_java

_LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process: two cores, bound to loopback, in UTC, without its web pages."""
    java = find_java().executable.resolve()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java.parents[1]))
        environment.setenv("SPARK_LOCAL_IP", _LOOPBACK)
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("TZ", os.environ.get("TZ", "UTC"))
        session = (
            SparkSession.builder.master("local[2]")
            .appName("groupwright tests")
            .config("spark.driver.bindAddress", _LOOPBACK)
            .config("spark.driver.host", _LOOPBACK)
            .config("spark.driver.memory", "1g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", os.devnull)
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
