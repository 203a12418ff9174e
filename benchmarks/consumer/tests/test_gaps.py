"""Gaps and the time of consumption after a change of members, computed from a few messages."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.consumer.gaps import Received, judge_load_check, judge_member_change, read_received
from benchmarks.consumer.ownership import Change
from benchmarks.consumer.results import Gaps, Waits

SECOND = 1_000_000
JOINED = 100 * SECOND


def received(*rows: tuple[int, float, int, int]) -> Received:
    """Return messages of (member, second, partition, offset), each received as soon as written."""
    table = [
        (member, round(at * SECOND), partition, offset, round(at * 1000))
        for member, at, partition, offset in rows
    ]
    return np.array(sorted(table, key=lambda row: row[1]), dtype=np.int64)


def change(member: int, at: float, *partitions: int, gained: bool) -> Change:
    return Change(round(at * SECOND), member, gained, frozenset(partitions))


def test_a_kept_partition_counts_from_its_first_message_and_a_moved_one_from_its_new_owners() -> None:
    messages = received(
        (0, 99.5, 0, 1), (0, 99.6, 1, 1), (0, 100.1, 0, 2), (0, 100.2, 1, 2), (0, 101, 0, 3), (1, 103, 1, 3)
    )
    changes = [change(0, 101, 1, gained=False), change(1, 102, 1, gained=True)]

    run = judge_member_change(messages, JOINED, changes, before={0: 0, 1: 0}, after={0: 0, 1: 1})

    assert (run.settled, run.consumed) == (2, 3)
    assert run.kept == Gaps(1, 0.9, 0.9)
    assert run.moved == Gaps(1, 2.8, 2.8)
    assert (run.twice, run.missing) == (0, 0)


def test_what_an_eager_member_reads_before_it_gives_all_up_does_not_count_as_consumed_again() -> None:
    messages = received((0, 99.9, 0, 1), (0, 100.1, 0, 2), (0, 104, 0, 3))
    changes = [change(0, 101, 0, gained=False), change(0, 103, 0, gained=True)]

    run = judge_member_change(messages, JOINED, changes, before={0: 0}, after={0: 0})

    assert run.consumed == 4
    assert run.kept.longest == pytest.approx(3.9)
    assert run.moved == Gaps(0, 0.0, 0.0)


def test_a_message_that_waited_since_before_the_join_does_not_count_as_consumed_again() -> None:
    messages = received((0, 99.8, 0, 1), (0, 100.2, 0, 2), (0, 100.3, 0, 3))
    messages[1, 4] = 99_900

    run = judge_member_change(
        messages, JOINED, [change(0, 100.1, 0, gained=True)], before={0: 0}, after={0: 0}
    )

    assert run.consumed == pytest.approx(0.3)


def test_messages_that_come_twice_or_never_are_counted() -> None:
    messages = received(
        (0, 99.9, 0, 4), (0, 100.1, 0, 5), (1, 100.5, 0, 5), (1, 100.6, 0, 6), (1, 100.7, 0, 9)
    )

    run = judge_member_change(
        messages, JOINED, [change(1, 100.4, 0, gained=True)], before={0: 0}, after={0: 1}
    )

    assert (run.twice, run.missing) == (1, 2)


def test_a_message_consumed_long_before_a_kill_comes_twice_if_its_offset_was_not_committed() -> None:
    messages = received((0, 96, 0, 4), (0, 99.9, 0, 5), (1, 106, 0, 4), (1, 106.1, 0, 5), (1, 106.2, 0, 6))

    run = judge_member_change(
        messages, JOINED, [change(1, 105.9, 0, gained=True)], before={0: 0}, after={0: 1}
    )

    assert (run.twice, run.missing) == (2, 0)
    assert run.moved.longest == pytest.approx(6.1)


def test_what_came_twice_long_before_the_change_is_not_its_fault() -> None:
    messages = received((0, 96, 0, 4), (1, 97, 0, 4), (1, 99.9, 0, 5), (1, 100.1, 0, 6))

    run = judge_member_change(messages, JOINED, [change(1, 100, 0, gained=True)], before={0: 1}, after={0: 1})

    assert (run.twice, run.missing) == (0, 0)


def test_the_gaps_of_the_second_before_are_told_apart() -> None:
    messages = received((0, 99.1, 0, 1), (0, 99.3, 0, 2), (0, 99.9, 0, 3), (0, 100.1, 0, 4))

    run = judge_member_change(messages, JOINED, [change(0, 100, 0, gained=True)], before={0: 0}, after={0: 0})

    assert run.before.longest == pytest.approx(0.6)
    assert run.kept.longest == pytest.approx(0.2)


def test_an_owner_that_gets_nothing_is_named() -> None:
    with pytest.raises(ValueError, match="member 1 got nothing from partition 0 at the end"):
        judge_member_change(
            received((0, 100.1, 0, 1)),
            JOINED,
            [change(1, 100.4, 0, gained=True)],
            before={0: 0},
            after={0: 1},
        )


def test_what_members_wrote_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "0.received").write_bytes(np.array([30, 1, 7, 2, 10, 1, 6, 1], dtype="<i8").tobytes())
    (tmp_path / "1.received").write_bytes(np.array([20, 2, 8, 3], dtype="<i8").tobytes())
    (tmp_path / "2.received").write_bytes(b"")

    assert read_received(tmp_path, 3).tolist() == [[0, 10, 1, 6, 1], [1, 20, 2, 8, 3], [0, 30, 1, 7, 2]]


def test_a_group_that_did_not_consume_before_the_join_tells_nothing() -> None:
    messages = received((0, 98.5, 0, 1), (0, 100.2, 0, 2))

    with pytest.raises(ValueError, match="partition 0 was not consumed in the second before the change"):
        judge_member_change(messages, JOINED, [change(0, 100.1, 0, gained=True)], before={0: 0}, after={0: 0})


def test_messages_of_partitions_that_stay_are_told_apart_from_those_that_move() -> None:
    messages = received(
        (0, 99.5, 0, 1), (0, 99.6, 1, 1), (0, 100.1, 0, 2), (0, 100.2, 1, 2), (0, 101, 0, 3), (1, 103, 1, 3)
    )
    messages[4, 4] -= 30  # that at 101 s has waited
    changes = [change(0, 101, 1, gained=False), change(1, 102, 1, gained=True)]

    run = judge_load_check(messages, JOINED, changes, before={0: 0, 1: 0}, after={0: 0, 1: 1})

    assert (run.moved, run.twice, run.missing) == (1, 0, 0)
    assert run.before == Waits(2, 0.0, 0.0)
    assert run.kept == Waits(2, 0.015, 0.03)
