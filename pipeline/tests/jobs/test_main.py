"""The job as `spark-submit` runs it: a JVM that has started a Python."""

import os
import signal
from threading import Event
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import main as main_module
from groupwright.pipeline.main import main, stop_on_signals_to_jvm
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


def test_signals_end_a_batch_as_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a stream has an event to set."""
    to_jvm = MagicMock()
    monkeypatch.setattr(main_module, "cluster_session", MagicMock())
    monkeypatch.setattr(main_module, "stop_on_signals_to_jvm", to_jvm)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    during: list[Any] = []

    def run_batch(*_: object) -> int:
        during.extend(signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT))
        return 0

    monkeypatch.setattr(main_module, "run_batch", run_batch)
    try:
        assert main(["batch", "bootstrap_servers=localhost:9092", "tables=tables"]) == 0
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)
    assert during == before
    to_jvm.assert_not_called()
