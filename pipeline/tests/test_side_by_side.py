"""Spark queries at the same time."""

from threading import Barrier, Event

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline._side_by_side import side_by_side
from integration_tests.harness.patience import PATIENCE


def test_calls_run_at_the_same_time_for_the_caller_s_job_group(spark: SparkSession) -> None:
    both = Barrier(2, timeout=PATIENCE)

    def group() -> str | None:
        both.wait()
        return spark.sparkContext.getLocalProperty("spark.jobGroup.id")

    spark.sparkContext.setJobGroup("derive", "a job of the caller")
    try:
        with side_by_side(spark) as start:
            found = [start(group), start(group)]
    finally:
        spark.sparkContext.setJobGroup("", "")
    assert [each.result() for each in found] == ["derive", "derive"]


def test_the_first_error_is_raised_when_all_calls_have_ended(spark: SparkSession) -> None:
    failed, ended = Event(), Event()

    def fail() -> None:
        failed.set()
        raise ValueError("broken")

    def last() -> None:
        failed.wait(PATIENCE)
        ended.set()

    def both() -> None:
        with side_by_side(spark) as start:
            start(fail)
            start(last)

    with pytest.raises(ValueError, match="broken"):
        both()
    assert ended.is_set()


def test_what_the_caller_raises_is_raised_when_all_calls_have_ended(spark: SparkSession) -> None:
    ended, raising = Event(), Event()

    def last() -> None:
        raising.wait(PATIENCE)
        ended.set()

    def fail() -> None:
        with side_by_side(spark) as start:
            start(last)
            raising.set()
            raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        fail()
    assert ended.is_set()
