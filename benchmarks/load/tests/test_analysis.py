"""Throughput, moves and lag, computed from a few messages."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.consumer.ownership import Change
from benchmarks.load.analysis import (
    Records,
    lag_over_time,
    measure_drain,
    measure_rebalance,
    measure_window,
    once,
    read_consumed,
    read_written,
)
from benchmarks.load.results import Rebalance

SECOND = 1_000_000


def consumed(*rows: tuple[int, float, int, int]) -> Records:
    """Return messages of (member, second, partition, offset)."""
    table = [(member, round(at * SECOND), partition, offset) for member, at, partition, offset in rows]
    return np.array(table, dtype=np.int64).reshape(-1, 4)


def written(*rows: tuple[float, int, int]) -> Records:
    """Return ticks of (second, partition, messages)."""
    return np.array([(round(at * SECOND), *rest) for at, *rest in rows], dtype=np.int64).reshape(-1, 3)


def test_a_drain_takes_as_long_as_its_busiest_member() -> None:
    """Member 0 has four messages, and member 1 two; three each would be even, and are the bound."""
    rows = consumed(
        (0, 1, 0, 0), (1, 1, 2, 0), (0, 2, 0, 1), (1, 2, 2, 1), (0, 3, 1, 0), (0, 4, 1, 1), (1, 9, 2, 2)
    )

    drain = measure_drain(rows, [2, 2, 2], {0: 0, 1: 0, 2: 1}, members=2, service=1.0)

    assert (drain.messages, drain.seconds, drain.rate) == (6, 4.0, 1.5)
    # Three partitions of two messages: one of two members has four at least.
    assert (drain.ideal_seconds, drain.peak_over_bound) == (4.0, 1.0)


def test_a_backlog_of_which_messages_are_missing_is_no_drain() -> None:
    with pytest.raises(ValueError, match="1 of 2 messages of the backlog were consumed"):
        measure_drain(consumed((0, 1, 0, 0)), [2], {0: 0}, members=1, service=1.0)


def test_the_member_that_falls_behind_says_how_much_is_sustained() -> None:
    """40 messages are written in 10 s, 30 of them to member 0, which consumes 15; the rest is outside."""
    ticks = written((0, 0, 99), (10, 0, 10), (12, 1, 20), (15, 2, 10), (20, 0, 99))
    rows = [(0, 10 + number / 2, 1, number) for number in range(15)]
    rows += [(1, 10 + number, 2, number) for number in range(10)]
    rows += [(0, 9.5, 0, 0), (1, 20, 2, 99)]

    window = measure_window(
        consumed(*rows),
        ticks,
        {0: 0, 1: 0, 2: 1},
        members=2,
        service=0.5,
        between=(10 * SECOND, 20 * SECOND),
    )

    assert (window.written, window.consumed, window.sustained) == (4.0, 2.5, 2.0)
    # At best a member has 20 messages, for which 10 s suffice.
    assert (window.ideal, window.peak_over_bound) == (4.0, 1.5)


def test_who_catches_up_sustains_no_more_than_is_written() -> None:
    rows = consumed(*((0, number, 0, number) for number in range(8)))

    window = measure_window(rows, written((0, 0, 4)), {0: 0}, members=1, service=1.0, between=(0, 8 * SECOND))

    assert (window.written, window.consumed, window.sustained) == (0.5, 1.0, 0.5)


def test_moves_are_told_from_mere_revocations() -> None:
    changes = [
        Change(1, 0, gained=False, partitions=frozenset({0, 1})),
        Change(2, 0, gained=True, partitions=frozenset({0})),
        Change(2, 1, gained=True, partitions=frozenset({1})),
    ]

    found = measure_rebalance({0: 0, 1: 0, 2: 1}, {0: 0, 1: 1, 2: 1}, changes)

    assert found == Rebalance(moved=1, revoked=2)


def test_lag_is_what_was_written_and_not_consumed() -> None:
    rows = consumed((0, 9, 0, 0), (0, 10.5, 0, 1), (0, 11.5, 0, 2))
    ticks = written((10.2, 0, 3), (11.2, 0, 1))

    lag = lag_over_time(rows, ticks, 1, (10 * SECOND, 13 * SECOND), step=1.0)

    assert lag == ((0.0, 0), (1.0, 2), (2.0, 2))


def test_a_message_that_comes_twice_counts_once() -> None:
    rows = consumed((0, 1, 3, 7), (1, 2, 3, 7), (1, 3, 4, 7))

    assert once(rows).tolist() == consumed((0, 1, 3, 7), (1, 3, 4, 7)).tolist()


def test_what_the_programs_recorded_is_read_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "0.received").write_bytes(np.array([3, 0, 0, 5, 0, 1], dtype="<i8").tobytes())
    (tmp_path / "1.received").write_bytes(np.array([4, 1, 0], dtype="<i8").tobytes())
    (tmp_path / "written").write_bytes(np.array([1, 0, 9], dtype="<i8").tobytes())

    assert read_consumed(tmp_path, 2).tolist() == [[0, 3, 0, 0], [1, 4, 1, 0], [0, 5, 0, 1]]
    assert read_written(tmp_path).tolist() == [[1, 0, 9]]
