"""A history survives its writer's death, and is read while it grows."""

from pathlib import Path

import pytest

from soak import events
from soak.events import Event, HistoryReader, HistoryWriter, decode, encode


@pytest.mark.parametrize(
    "event",
    [
        events.Started(1.5, "g", "g-1", None, "range", "auto"),
        events.Assigned(1.5, (("t", 0), ("u", 3))),
        events.GivenUp(2.5, 2.25, (), lost=True),
        events.Rebalanced(1.5, 7, "the consumer subscribed", "completed"),
        events.Consumed(2.5, 2.25, ("t", 0), 17, "m17"),
        events.Committed(2.5, None, {("t", 0): 5, ("u", 1): 0}, "refused"),
        events.Reached(2.5, 2.25, ("t", 0), 17),
        events.Sought(2.5, ("t", 0), 17),
        events.Told(2.5, "UNKNOWN_TOPIC_OR_PART", None, "no such topic"),
        events.Interrupted(2.5, 2.25),
        events.Struck(1.5, "kill", "g-1", 1.75),
    ],
)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    assert decode(encode(event)) == event


def test_a_history_is_read_as_it_grows_and_a_line_that_was_cut_short_waits(tmp_path: Path) -> None:
    path = tmp_path / "history"
    reader = HistoryReader(path)
    assert list(reader.read()) == []
    first, second = events.Ended(1.0), events.Ended(2.0)

    writer = HistoryWriter(path)
    writer.write(first)
    assert list(reader.read()) == [first]
    writer.close()
    line = encode(second)
    with path.open("ab") as file:
        file.write(line[:5])
        file.flush()
        assert list(reader.read()) == []
        file.write(line[5:])

    assert list(reader.read()) == [second]
