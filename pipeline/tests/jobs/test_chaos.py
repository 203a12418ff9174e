"""A short form of the pipeline's chaos test (integration_tests/pipeline_chaos), on a local Spark."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration_tests.pipeline_chaos.conductor import Conductor, Plan
from integration_tests.pipeline_chaos.schedule import Kind

SEED = 11


@pytest.mark.integration
@pytest.mark.kafka
def test_every_record_is_there_once_or_a_sentence_says_what_is_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    story: list[str] = []
    plan = Plan(SEED, seconds=3.5, interval=1, workers=0, derive_seconds=3600)
    kinds = {fault.kind for fault in plan.faults}
    assert kinds == {Kind.RECREATE, Kind.TRANSACTION, Kind.KILL_DRIVER}
    result = Conductor(plan, tmp_path, story.append).run(lambda: nullcontext(spark))
    assert result.findings.violations == [], "\n".join(story)
    assert result.events > 0
    assert result.commits > 0
    assert result.faults.keys() == kinds
