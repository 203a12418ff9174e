"""Local Spark session for the measuring programs."""

from pyspark.sql import SparkSession

from groupwright.pipeline import jobs


def local_session(cores: int, *, memory: str, tasks: int = 200) -> SparkSession:
    """Start Spark; only errors are logged.

    Args:
        cores: Number of cores.
        memory: The JVM's heap, such as ``1g``.
        tasks: Number of tasks after a shuffle.
    """
    session = jobs.local_session(
        "benchmark",
        settings={
            "spark.master": f"local[{cores}]",
            "spark.driver.memory": memory,
            "spark.sql.shuffle.partitions": str(tasks),
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
