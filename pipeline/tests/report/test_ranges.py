"""Arguments of a report that are refused before any query. Pure."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from groupwright.assignors import InvalidInputError
from groupwright.pipeline.errors import PipelineError
from groupwright.pipeline.report import Compared, TimeRange, write_report

DEPLOY = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_that_no_row_can_have_is_refused(text: str) -> None:
    time = datetime.fromisoformat(text)
    for since, until in ((time, None), (None, time)):
        with pytest.raises(InvalidInputError, match="between the years 1970 and 9998"):
            TimeRange(since, until)


@pytest.mark.parametrize("hours", [1e12, float("inf"), float("nan"), 1e8, 0.0, -1.0])
def test_hours_around_a_deploy_that_are_no_range_are_refused(hours: float) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"{hours:g} hours")):
        Compared.around(DEPLOY, hours)


def test_a_report_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for out, message in ((tmp_path, "is a folder"), (file / "sub" / "report.html", "is not a folder")):
        with pytest.raises(PipelineError, match=message):
            write_report({}, out, made_at=DEPLOY)
