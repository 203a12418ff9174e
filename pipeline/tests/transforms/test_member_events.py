"""A group's member events, found by generation and by time. Pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from groupwright.pipeline._transforms.generations import Generation, GroupMember, changes
from groupwright.pipeline._transforms.rebalances import _MemberEvents, _span

START = datetime(2026, 11, 20, tzinfo=UTC)


def event(
    seconds: float, number: int | None, client: str = "a", outcome: str = "completed"
) -> dict[str, Any]:
    time = START + timedelta(seconds=seconds)
    return {"time": time, "event": {"generation": number, "client_id": client, "outcome": outcome}}


def generation(seconds: float, number: int, *members: str) -> Generation:
    of_members = {id_: GroupMember(id_, id_.partition("_")[0]) for id_ in members}
    return Generation(number, START + timedelta(seconds=seconds), of_members)


def test_events_belong_to_the_generation_of_their_number_within_an_hour() -> None:
    rows = [event(0, 1), event(3599, 1), event(3600, 1), event(3601, 2), event(9000, 1), event(9001, None)]
    events = _MemberEvents(rows)
    assert events.of(generation(0, 1)) == [rows[0]["event"], rows[1]["event"]]
    assert events.of(generation(7200, 1)) == [rows[4]["event"]], "an hour away is too far"
    assert events.of(generation(9000, 3)) == []


def test_a_deletion_between_ends_the_match() -> None:
    """The group is deleted at 1200 s, and created again at 1800 s: both have a generation 1."""
    rows = [event(1, 1), event(1801, 1)]
    events = _MemberEvents(rows, [START + timedelta(seconds=1200)])
    assert events.of(generation(0, 1)) == [rows[0]["event"]]
    assert events.of(generation(1800, 1)) == [rows[1]["event"]]


def test_no_clock_makes_a_duration_negative() -> None:
    """The generation is written at 10 s by the broker's clock; members' clocks differ from it."""

    def span(*events: tuple[float | None, float]) -> tuple[float | None, float]:
        rows = [
            {"started_at": None if first is None else START + timedelta(seconds=first),
             "ended_at": START + timedelta(seconds=last)}
            for first, last in events
        ]  # fmt: skip
        started, ended = _span(generation(10, 1), rows)
        return None if started is None else (started - START).total_seconds(), (ended - START).total_seconds()

    assert span((8, 12), (9, 11)) == (8, 12)
    assert span((None, 11)) == (None, 11)
    assert span((5, 7)) == (5, 10), "a clock that is behind: it ends with the generation at the earliest"
    assert span((20, 25)) == (None, 25), "a clock that is ahead says nothing about the start"
    assert span((20, 25), (9, 11)) == (9, 25)
    assert span((9, 3)) == (9, 10), "a clock that was set back"
    time = START + timedelta(seconds=10)
    broker = replace(generation(10, 1), started=time + timedelta(seconds=1))
    assert _span(broker, []) == (None, time), "another broker wrote the end"


def test_a_member_that_left_expired_if_its_client_reports_a_loss_within_ten_minutes() -> None:
    history = list(changes([generation(0, 1, "a_1", "b_1"), generation(100, 2, "a_1")]))
    for seconds, client, expired in ((99, "b", False), (100, "b", True), (699, "b", True), (700, "b", False),
                                     (100, "a", False)):  # fmt: skip
        events = _MemberEvents([event(seconds, 9, client, "lost")])
        assert events.show_expiry(history[1]) is expired
        assert not events.show_expiry(history[0])
    assert not _MemberEvents([event(100, 9, "b")]).show_expiry(history[1])


def test_time_is_linear_in_the_number_of_generations() -> None:
    """Counted instead of timed: each generation compares its time with few events."""
    comparisons = 0

    class Counted(datetime):
        def __lt__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return super().__lt__(other)  # type: ignore[operator]

    size = 400
    rows = [event(30 * number, number) for number in range(size) for _ in range(5)]
    for row in rows:
        row["time"] = Counted.fromtimestamp(row["time"].timestamp(), UTC)
    events = _MemberEvents(rows)
    assert all(len(events.of(generation(30 * number, number))) == 5 for number in range(size))
    assert comparisons < 20 * size
