"""Age of the oldest unread record, against logs whose timestamps are known."""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import pytest

from groupwright.pipeline._jobs.backlog import unread_seconds
from groupwright.pipeline._jobs.kafka import Offsets

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
AGES = {0: [90000.0, 4000.0, 700.0, 20.0], 1: [864000.0, 50.0, 1.0]}


def offsets_at(position: str) -> Offsets:
    time = NOW + timedelta(days=1) if position == "latest" else datetime.fromisoformat(position)
    logs = {partition: [NOW - timedelta(seconds=age) for age in ages] for partition, ages in AGES.items()}
    return {"events": {partition: bisect_left(times, time) for partition, times in logs.items()}}


@pytest.mark.parametrize(
    ("positions", "age"),
    [
        ({0: 4, 1: 3}, 0),
        ({0: 4, 1: 2}, 1),
        ({0: 4, 1: 1}, 50),
        ({0: 2, 1: 2}, 700),
        ({0: 1, 1: 3}, 4000),
        ({0: 4}, 864000),
    ],
)
def test_the_age_is_that_of_the_oldest_unread_record(positions: dict[int, int], age: float) -> None:
    found = unread_seconds(offsets_at, {"events": positions}, NOW)
    assert age <= found <= age * 33 / 32 + 1
