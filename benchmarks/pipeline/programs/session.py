"""Local Spark session for the measuring programs."""

import os
import sys

from pyspark.sql import SparkSession

from groupwright.testing import find_java

_LOOPBACK = "127.0.0.1"


def local_session(cores: int, *, memory: str, tasks: int = 200) -> SparkSession:
    """Start Spark; only errors are logged.

    Args:
        cores: Number of cores.
        memory: The JVM's heap, such as ``1g``.
        tasks: Number of tasks after a shuffle.
    """
    os.environ["JAVA_HOME"] = str(find_java().executable.resolve().parents[1])
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(tasks),
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
