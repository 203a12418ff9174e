"""Old dates go, counted back from today or from the newest record of a group."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, Tables, open_tables
from groupwright.pipeline._jobs import maintenance
from groupwright.pipeline._jobs.maintenance import maintain
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._tables.arrow import to_arrow
from groupwright.pipeline.schemas import OFFSET_COMMITS

TODAY = date(2026, 11, 21)
LONG_AGO, LATELY = TODAY - timedelta(days=31), TODAY - timedelta(days=2)


def add_commits(tables: Tables, spark: SparkSession, *days: date) -> None:
    empty: dict[str, Any] = dict.fromkeys(OFFSET_COMMITS.columns)
    rows = to_arrow([{**empty, "date": day} for day in days], OFFSET_COMMITS)
    tables.add(OFFSET_COMMITS, spark.createDataFrame(rows, OFFSET_COMMITS.schema), Batch("stream", 0))


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=365)])
def test_a_clock_that_is_ahead_deletes_no_date_that_is_to_be_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    now = datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC) + ahead
    monkeypatch.setattr(maintenance, "datetime", MagicMock(**{"now.return_value": now}))
    tables = open_tables(spark, str(tmp_path))
    add_commits(tables, spark, LONG_AGO, LATELY)
    settings = Settings(bootstrap_servers="", tables=str(tmp_path), retention_days=28)
    state = MagicMock(**{"maintained.return_value": None})

    maintain(spark, tables, settings, state, now.date() - timedelta(days=1))

    assert [row.date for row in tables.read(OFFSET_COMMITS).collect()] == [LATELY]
