"""Parts of a batch job, and its end. Pure."""

import re
from datetime import UTC, datetime

import pytest

from groupwright.pipeline._jobs.batch import _part, _require_existing
from groupwright.pipeline._jobs.kafka import time_of
from groupwright.pipeline.errors import PipelineError


def test_parts_of_equal_offsets_have_one_identity_only_from_the_same_positions() -> None:
    start, end = {"events": {0: 0}}, {"events": {0: 10}}
    assert _part(3, start, end, 5) == _part(3, start, end, 5)
    assert _part(3, start, end, 5).end == _part(4, start, end, 5).end
    assert _part(3, start, end, 5).batch != _part(4, start, end, 5).batch


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        (99, 5, "end names events-99, but events has 2 partitions"),
        (1, 21, "end=21 of events-1 is not in its log: write an offset from 0 to 20"),
        (0, -5, "end=-5 of events-0 is not in its log: write an offset from 0 to 10"),
    ],
)
def test_an_end_is_a_position_of_a_partition_that_exists(partition: int, offset: int, message: str) -> None:
    latest = {"events": {0: 10, 1: 20}}
    _require_existing({"events": {0: 0, 1: 20}}, latest)
    with pytest.raises(PipelineError, match=re.escape(message)):
        _require_existing({"events": {partition: offset}}, latest)


def test_a_time_without_an_offset_is_in_utc_and_one_that_no_record_can_have_is_refused() -> None:
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    assert time_of("2026-11-21") == time_of("2026-11-21T00:00:00") == midnight
    assert time_of("2026-11-21T01:00:00+01:00") == midnight
    for text in ("1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00", "9999-12-31T23:59:59-05:00"):
        with pytest.raises(PipelineError, match="between the years 1970 and 9998"):
            time_of(text)
