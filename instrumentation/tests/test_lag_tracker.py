"""Lag of partitions from successive statistics: positions, starts, pauses, and changes between statistics."""

from typing import Any

import pytest

from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics, PartitionStatistics
from groupwright.instrumentation._tracking.lag_tracker import FETCH_SETTLE, LagTracker

P = ("orders", 0)
NONE = -1001
BEGINNING, END, TAIL = -2, -1, -2005


class Statistics:
    """Statistics of one partition, each later than the one before."""

    def __init__(self, **settings: str) -> None:
        self.tracker = LagTracker(settings)
        self.now = 100.0
        self.given: dict[tuple[str, int], int] = {}
        self.paused: set[tuple[str, int]] = set()
        self.asked: list[tuple[str, int]] = []

    def take(self, after: float = FETCH_SETTLE, **fields: Any) -> int | None:
        """Return the lag at statistics that are taken `after` seconds from the last ones."""
        usual = {
            "position": NONE, "fetch_position": 20, "committed": NONE, "received": 0, "log_start": 5,
            "high_watermark": 20, "last_stable_offset": 20,
        }  # fmt: skip
        self.now += after
        partition = PartitionStatistics(**{**usual, **fields})
        statistics = ConsumerStatistics(self.now, None, None, {}, {P: partition})
        self.asked = self.tracker.update(statistics, self.now, self.given, self.paused)
        return self.tracker.lag.get(P)


def test_the_position_is_that_after_the_last_message() -> None:
    assert Statistics().take(position=8) == 12
    assert Statistics().take(position=20) == 0


@pytest.mark.parametrize(
    ("isolation", "lag"), [("read_committed", 10), ("read_uncommitted", 12), ("READ_UNCOMMITTED", 12)]
)
def test_the_end_is_that_to_which_the_consumer_reads(isolation: str, lag: int) -> None:
    statistics = Statistics(**{"isolation.level": isolation})

    assert statistics.take(position=8, last_stable_offset=18) == lag


def test_an_end_below_the_position_is_that_of_an_earlier_assignment() -> None:
    assert Statistics().take(position=21) is None


@pytest.mark.parametrize(
    ("given", "fields", "lag"),
    [
        (None, {"committed": 12}, 8),
        (None, {"committed": 20, "received": 0}, 0),
        (7, {"committed": 12}, 13),
        (7, {"committed": 12, "received": 15}, 13),
        # The offset is out of range, so `auto.offset.reset` applies.
        (3, {"received": 15}, 15),
        (None, {"committed": 21, "received": 15}, 15),
        # Nothing is committed.
        (None, {"fetch_position": 5}, 15),
        (None, {"received": 15}, 15),
        (BEGINNING, {"committed": 12, "received": 15}, 15),
        (END, {"committed": 12}, 0),
        (END, {"committed": 12, "received": 2}, None),
        (TAIL, {"fetch_position": 15}, 5),
        (TAIL, {"received": 5}, None),
    ],
)
def test_before_the_first_message_the_position_is_where_the_partition_starts(
    given: int | None, fields: dict[str, int], lag: int | None
) -> None:
    statistics = Statistics(**{"auto.offset.reset": "earliest"})
    if given is not None:
        statistics.given[P] = given

    assert statistics.take(**fields) is None, "log end and fetch position may be old"
    assert statistics.take(FETCH_SETTLE, **fields) == lag


def test_a_group_that_starts_at_the_end_has_no_known_position_once_messages_wait() -> None:
    statistics = Statistics()
    statistics.take()

    assert statistics.take(received=3, fetch_position=23, high_watermark=23, last_stable_offset=23) is None
    assert statistics.take(position=21, high_watermark=23, last_stable_offset=23) == 2


def test_a_start_is_kept_while_nothing_is_consumed() -> None:
    """An explicit commit, or prefetched messages, do not move the position."""
    statistics = Statistics()
    statistics.take(committed=12)
    statistics.take(committed=12)

    assert statistics.take(committed=15, received=9, fetch_position=21, last_stable_offset=21) == 9


def test_a_partition_that_was_regained_does_not_continue_at_its_old_start() -> None:
    """The false lag of a whole log: started at its beginning, consumed, lost, regained at its end."""
    statistics = Statistics(**{"auto.offset.reset": "earliest"})
    statistics.take(fetch_position=5)
    assert statistics.take(fetch_position=5) == 15
    assert statistics.take(position=20, received=15) == 0
    statistics.tracker.forget([P], statistics.now + 0.5)
    assert P not in statistics.tracker.lag
    statistics.given[P] = 20

    assert statistics.take(0.4, position=20) is None, "of the time before"
    assert statistics.take(0.2, received=15) is None
    assert statistics.take(received=15) == 0


def test_a_seek_moves_the_position_at_once() -> None:
    statistics = Statistics()
    assert statistics.take(position=20, received=15) == 0
    statistics.given[P] = 6
    assert statistics.take(0.2, received=15) == 14
    assert statistics.take(0.2, position=7, received=30) == 13
    statistics.given[P] = BEGINNING
    assert statistics.take(0.2, received=30) is None
    assert statistics.take(received=45) == 15


def test_a_paused_partition_lags_behind_the_end_that_was_looked_up() -> None:
    statistics = Statistics()
    assert statistics.take(position=8, received=15) == 12
    statistics.paused.add(P)
    assert statistics.take(position=8) is None or statistics.tracker.lag[P] == 12
    assert statistics.asked == [P]
    statistics.tracker.set_ends({P: 30, ("orders", 1): 9})
    assert statistics.tracker.lag == {P: 22}
    assert statistics.take(position=8) == 22
    statistics.tracker.set_ends({P: -1})
    assert statistics.take(position=8) == 22, "a failure may be over with the next look-up"
    statistics.tracker.set_ends({P: -1})
    assert statistics.take(position=8) is None, "the end could not be looked up"
    statistics.tracker.set_ends({P: -1})
    assert statistics.take(position=8) is None, "nor later"
    statistics.tracker.set_ends({P: 30})
    assert statistics.take(position=8) == 22
    statistics.tracker.set_ends({P: -1})
    assert statistics.take(position=8) == 22, "one failure after a success"

    statistics.paused.clear()
    assert statistics.take(0.2, position=8) == 22, "librdkafka may not have fetched yet"
    assert statistics.asked == []
    statistics.tracker.set_ends({P: 99})
    assert statistics.take(0.2, position=10, high_watermark=30, last_stable_offset=30) == 20


def test_a_resumed_partition_at_its_end_has_the_end_of_a_new_fetch() -> None:
    statistics = Statistics()
    statistics.paused.add(P)
    statistics.take(position=20)
    statistics.paused.clear()

    assert statistics.take(0.2, position=20) is None
    assert statistics.take(position=20, last_stable_offset=25) == 5


def test_a_partition_that_is_paused_before_it_was_fetched_lags_from_its_start() -> None:
    statistics = Statistics()
    statistics.given[P] = 4
    statistics.paused.add(P)
    assert statistics.take(log_start=NONE, high_watermark=NONE, last_stable_offset=NONE) is None
    statistics.tracker.set_ends({P: 30})

    assert statistics.tracker.lag == {P: 26}


@pytest.mark.parametrize(
    ("settings", "full", "below"),
    [
        ({}, {"queued": 50_000}, {"queued": 49_999}),
        ({"queued.min.messages": "1000"}, {"queued": 500}, {"queued": 499}),
        ({}, {"queued_bytes": 32 * 1024**2}, {"queued_bytes": 32 * 1024**2 - 1}),
        ({"queued.max.messages.kbytes": "100"}, {"queued_bytes": 51_200}, {"queued_bytes": 51_199}),
    ],
)
def test_while_the_prefetch_queue_is_full_the_lag_is_to_the_end_that_was_looked_up(
    settings: dict[str, str], full: dict[str, int], below: dict[str, int]
) -> None:
    """librdkafka does not fetch then, and the log grows faster than the application consumes."""
    statistics = Statistics(**settings)
    assert statistics.take(position=8, **below) == 12
    assert statistics.asked == []
    assert statistics.take(position=10, **full) == 10, "until the end has been looked up"
    assert statistics.asked == [P]
    statistics.tracker.set_ends({P: 60})
    assert statistics.tracker.lag == {P: 50}
    assert statistics.take(position=12, **full) == 48
    statistics.tracker.set_ends({P: 80})
    assert statistics.tracker.lag == {P: 68}
    statistics.tracker.set_ends({P: -1})
    assert statistics.tracker.lag == {P: 68}
    statistics.tracker.set_ends({P: -1})
    assert statistics.take(position=14, **full) is None, "the end could not be looked up"

    assert statistics.take(position=16, last_stable_offset=90, **below) == 74
    assert statistics.asked == []


def test_a_partition_that_is_assigned_while_the_prefetch_queue_is_full_lags_from_its_start() -> None:
    statistics = Statistics()
    unknown = {"fetch_position": 4, "log_start": NONE, "high_watermark": NONE, "last_stable_offset": NONE}
    assert statistics.take(committed=4, queued=100_000, **unknown) is None
    statistics.tracker.set_ends({P: 30})

    assert statistics.tracker.lag == {P: 26}
    assert statistics.take(0.2, committed=4, **unknown) == 26, "librdkafka may not have fetched yet"
    assert statistics.take(position=5, last_stable_offset=31) == 26
