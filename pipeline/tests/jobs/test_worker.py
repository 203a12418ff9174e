"""Work at an interval beside a streaming query."""

import threading

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline._jobs.worker import Worker
from harness.waiting import wait_until


def test_work_keeps_its_interval_while_other_work_takes_long(spark: SparkSession) -> None:
    """A derivation of hours does not stop the samples of log-end offsets."""
    finish = threading.Event()
    samples: list[int] = []

    def sample() -> bool:
        samples.append(1)
        return True

    slow = Worker(spark, "derived-tables", 0.01, lambda: finish.wait(120))
    sampler = Worker(spark, "sampler", 0.01, sample)
    try:
        wait_until(lambda: len(samples) >= 5, "five samples are taken")
        assert not finish.is_set()
    finally:
        finish.set()
        for each in (slow, sampler):
            each.stop()
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
    worker.stop()
    with pytest.raises(ValueError, match="broken"):
        worker.check()
