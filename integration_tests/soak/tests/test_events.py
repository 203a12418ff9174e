"""Each of the soak's own events survives a round trip through a history file."""

from pathlib import Path

import pytest

from groupwright.testing.groups import Event, HistoryReader, HistoryWriter
from integration_tests.soak import events


@pytest.mark.parametrize(
    "event",
    [
        events.Interrupted(2.5, 2.25),
        events.WakeupRaised(2.5),
        events.Closing(2.5),
        events.Busy(2.5, 2.25),
        events.Starved(2.5, 2.25),
        events.FaultInjected(1.5, "kill", "g-1", 1.75),
    ],
)
def test_an_event_is_read_as_it_was_written(event: Event, tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history")
    writer.write(event)
    writer.close()

    assert list(HistoryReader(tmp_path / "history").read()) == [event]
