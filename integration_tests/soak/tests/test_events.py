"""Each kind of event survives a round trip through a history file."""

from pathlib import Path

import pytest

from groupwright.testing.groups import HistoryReader
from soak import events
from soak.events import KINDS, Event, HistoryWriter


@pytest.mark.parametrize(
    "event",
    [
        events.Started(1.5, "g", "g-1", None, "range", "auto"),
        events.Assigned(1.5, (("t", 0), ("u", 3))),
        events.Revoked(2.5, 2.25, (), lost=True),
        events.Rebalanced(1.5, 7, "the consumer subscribed", "completed"),
        events.Consumed(2.5, 2.25, ("t", 0), 17, "m17"),
        events.Committed(2.5, None, {("t", 0): 5, ("u", 1): 0}, "refused"),
        events.EndReached(2.5, 2.25, ("t", 0), 17),
        events.Sought(2.5, ("t", 0), 17),
        events.ErrorReturned(2.5, "UNKNOWN_TOPIC_OR_PART", None, "no such topic"),
        events.Interrupted(2.5, 2.25),
        events.FaultInjected(1.5, "kill", "g-1", 1.75),
    ],
)
def test_an_event_is_read_as_it_was_written(event: Event, tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history")
    writer.write(event)
    writer.close()

    assert list(HistoryReader(tmp_path / "history", KINDS).read()) == [event]
