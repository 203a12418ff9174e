"""A fleet's base tables give the derived tables that its parameters say."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.pipeline.programs.derive import derive_every_day, fleet_of, make, measure
from groupwright.pipeline import open_tables, schemas

_GROUPS, _DAYS = 20, 2


@pytest.mark.endurance
def test_a_day_of_a_fleet_has_its_rebalances_and_lag(spark: SparkSession, tmp_path: Path) -> None:
    fleet = fleet_of(_GROUPS, _DAYS)
    make(spark, fleet, tmp_path)
    found = measure(spark, fleet, tmp_path, "young")
    rows = found["rows"]
    assert rows["offset_commits"] == _GROUPS * 100 * 6
    assert rows["end_offsets"] == 3 * 100 * 6
    assert rows["lag"] == _GROUPS * 100 * 6
    assert rows["rebalances"] == rows["group_generations"] == _GROUPS * 20
    assert rows["group_states"] == 1, "every twentieth group is of KIP-848"
    assert found["bytes"]["lag"] > 0
    assert found["cpu_by_table"].keys() >= {"rebalances", "lag", "churn", "group_states"}
    tables = open_tables(spark, str(tmp_path / "young"))
    second = (fleet.start + timedelta(days=1)).date()
    rebalances = tables.read(schemas.REBALANCES, since=second)
    assert rebalances.where("cause = 'first' or previous_generation is null").isEmpty()

    every = derive_every_day(spark, fleet, tmp_path / "young")
    assert len(every["seconds_of_days"]) == _DAYS
    assert every["rows"]["rebalances"] == _GROUPS * 20 * _DAYS
    assert tables.read(schemas.LAG, since=second).count() == rows["lag"]
