"""Spark of the benchmark's tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from benchmarks.pipeline.programs.session import local_session


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """Spark on two cores. A session that other tests have started is used, and left running."""
    is_running = SparkSession.getActiveSession() is not None
    session = local_session(2, memory="1g", tasks=2)
    yield session
    if not is_running:
        session.stop()
