"""Spark of the benchmark's tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline.jobs import local_session

_SETTINGS = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """Spark on two cores. A session that other tests have started is used, and left running.

    Its JVM outlives it, and keeps its class path: other tests need Kafka's connector on it.
    """
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    with local_session("benchmark", settings=_SETTINGS) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session
