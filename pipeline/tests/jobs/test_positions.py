"""Snapshots of the jobs' positions, and the newest of them."""

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, open_tables
from groupwright.pipeline._jobs import ingest, positions
from groupwright.pipeline._jobs.ingest import Ingest
from groupwright.pipeline._jobs.positions import Positions, TopicPosition


class _Behind(datetime):
    """A clock that has gone back by five days."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Behind":
        return cls.fromtimestamp((datetime.now(UTC) - timedelta(days=5)).timestamp(), tz)


def test_the_newest_snapshot_is_found_although_the_clock_went_back_and_was_set_right(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were read while it was behind would be read again, under other identities."""
    tables = open_tables(spark, str(tmp_path))

    def read_to(offset: int) -> Positions:
        job = Ingest(spark, tables, MagicMock())
        after = Positions(job.positions.sequence + 1, "cluster", {"events": TopicPosition("id", {0: offset})})
        job.record_positions(after, Batch("a writer", offset))
        return positions.load(tables)

    read_to(10)
    with monkeypatch.context() as patched:
        for module in (ingest, positions):
            patched.setattr(module, "datetime", _Behind)
        assert read_to(20).offsets() == {"events": {0: 20}}
        assert read_to(30).offsets() == {"events": {0: 30}}
    assert positions.load(tables).offsets() == {"events": {0: 30}}
