"""The job as `spark-submit` runs it: a JVM that has started a Python."""

import os
import signal
from threading import Event
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline.main import stop_on_signals_to_jvm
from integration_tests.harness.patience import PATIENCE


def test_a_signal_to_the_jvm_stops_the_job_and_leaves_spark_to_finish_its_batch(spark: SparkSession) -> None:
    """What ends a program of `spark-submit` knows the JVM alone.

    The JVM stopped Spark at once and ended with 143, and the job was left without it in the middle of a
    batch.
    """
    stop = Event()
    stop_on_signals_to_jvm(spark, stop)
    jvm: Any = spark.sparkContext._jvm
    os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGTERM)
    assert stop.wait(PATIENCE)
    assert spark.range(5).count() == 5
