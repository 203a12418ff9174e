"""Work at an interval beside a streaming query."""

import logging
import threading
import time

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline._jobs.worker import Worker
from groupwright.pipeline._side_by_side import side_by_side
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until


def test_work_keeps_its_interval_while_other_work_takes_long(spark: SparkSession) -> None:
    """A derivation of hours does not stop the samples of log-end offsets."""
    finish = threading.Event()
    samples: list[int] = []

    def sample() -> bool:
        samples.append(1)
        return True

    slow = Worker(spark, "derived-tables", 0.01, lambda: finish.wait(PATIENCE))
    sampler = Worker(spark, "sampler", 0.01, sample)
    try:
        wait_until(lambda: len(samples) >= 5, "five samples are taken")
        assert not finish.is_set()
    finally:
        finish.set()
        for each in (slow, sampler):
            assert each.stop(PATIENCE)
            each.check()


def test_work_that_had_nothing_to_do_is_called_again_soon_and_an_error_is_raised_by_check(
    spark: SparkSession,
) -> None:
    calls: list[int] = []

    def work() -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("broken")
        return False

    worker = Worker(spark, "sampler", 600, work)
    wait_until(lambda: len(calls) == 2, "it is called again")
    assert worker.stop(PATIENCE)
    with pytest.raises(ValueError, match="broken"):
        worker.check()


def test_a_stop_cancels_the_spark_jobs_that_exceed_its_time_and_says_so(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """A derivation of hours: two queries, of which each task waits for 10 minutes."""
    tracker = spark.sparkContext.statusTracker()

    def query() -> int:
        return spark.range(2, numPartitions=2).rdd.map(lambda _: time.sleep(600)).count()

    def wait_long() -> bool:
        with side_by_side(spark) as start:
            start(query)
            return bool(query())

    worker = Worker(spark, "derived-tables", None, wait_long)
    wait_until(lambda: len(tracker.getActiveJobsIds()) == 2, "both jobs run")
    with caplog.at_level(logging.WARNING):
        assert not worker.stop(0.1)
    assert "derived-tables was not finished within 0 s, and was cancelled" in caplog.text
    wait_until(lambda: not tracker.getActiveJobsIds(), "both jobs have ended")
    with pytest.raises(Exception, match="cancelled"):
        worker.check()


def test_a_worker_that_waits_is_stopped_in_no_time_and_has_finished(spark: SparkSession) -> None:
    called: list[int] = []

    def work() -> bool:
        called.append(1)
        return True

    worker = Worker(spark, "sampler", 600, work)
    wait_until(lambda: bool(called), "it was called")
    assert worker.stop(0)
