"""Offsets that are to be committed."""

import operator
import threading
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, TopicPartition

from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.offset_tracker import (
    OffsetTracker,
    check_message,
    check_partitions,
    from_message,
    from_partitions,
    reported,
    to_partitions,
)
from groupwright.consumer._protocol.model import Offset
from groupwright.core import TopicPartitionKey
from integration_tests.harness.patience import PATIENCE

A, B = ("t", 0), ("t", 1)


def at(*offsets: int) -> list[TopicPartition]:
    """Positions of t-0, t-1, …"""
    return [TopicPartition("t", number, offset) for number, offset in enumerate(offsets)]


def test_what_was_consumed_and_not_committed_is_pending() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A, B], {A: Offset(5), B: Offset(-1)})
    assert tracker.pending(lambda: at(OFFSET_INVALID, OFFSET_INVALID)) == {}
    assert tracker.pending(lambda: at(5, 0)) == {B: Offset(0)}

    pending = tracker.pending(lambda: at(7, 3))
    assert pending == {A: Offset(7), B: Offset(3)}
    tracker.committed(pending)
    assert tracker.pending(lambda: at(7, 3)) == {}
    assert tracker.pending(lambda: at(7, 4)) == {B: Offset(4)}


def test_a_signal_handler_may_commit_and_store_inside_of_any_call() -> None:
    """A handler runs between two lines of the polling thread, which holds the lock already."""
    tracker = OffsetTracker(by_hand=True)
    tracker.assigned([A, B], {})

    class Interrupted(dict[TopicPartitionKey, Offset]):
        def items(self) -> Any:
            tracker.store({B: Offset(3)})
            seen.append(tracker.pending(list))
            return super().items()

    seen: list[object] = []
    calls = threading.Thread(target=lambda: tracker.store(Interrupted({A: Offset(7)})), daemon=True)
    calls.start()
    calls.join(PATIENCE)

    assert seen == [{B: Offset(3)}]
    assert tracker.pending(list) == {A: Offset(7), B: Offset(3)}


def test_going_back_is_pending_at_the_end_alone() -> None:
    """As in librdkafka, which stores the lower offset when the partition is revoked."""
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {A: Offset(5)})

    assert tracker.pending(lambda: at(2)) == {}
    assert tracker.pending(lambda: at(2), last=True) == {A: Offset(2)}
    assert tracker.pending(lambda: at(5), last=True) == {A: Offset(5)}


@pytest.mark.parametrize(("epoch", "pending"), [(3, {}), (4, {}), (5, {A: Offset(2, 5)}), (-1, {})])
def test_going_back_in_a_later_epoch_is_pending(epoch: int, pending: dict[tuple[str, int], Offset]) -> None:
    """Truncation after an unclean election."""
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {A: Offset(5, 4)})

    assert tracker.pending(lambda: [TopicPartition("t", 0, 2, leader_epoch=epoch)]) == pending


def test_a_partition_that_begins_before_its_committed_offset_is_pending() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A, B], {A: Offset(5), B: Offset(5)})
    tracker.set_start_offsets(at(2, 5))

    assert tracker.pending(lambda: at(3, 4)) == {A: Offset(3)}


def test_a_partition_that_stands_where_it_began_was_not_consumed() -> None:
    """Messages that were prefetched give it a position; nothing is committed of it before one is taken."""
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A, B], {})
    tracker.set_start_offsets([*at(5), TopicPartition("t", 1, OFFSET_BEGINNING)])
    assert tracker.pending(lambda: at(5, OFFSET_INVALID)) == {}

    assert tracker.pending(lambda: at(6, 1)) == {A: Offset(6), B: Offset(1)}


def test_consumed_before_a_seek_stays_pending_until_a_message_comes() -> None:
    """As librdkafka's stored offset, which outlives a seek."""
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {A: Offset(2)})
    tracker.seek(A, 40, TopicPartition("t", 0, 10, leader_epoch=3))
    assert tracker.pending(lambda: at(OFFSET_INVALID)) == {A: Offset(10, 3)}
    assert tracker.pending(lambda: at(40)) == {A: Offset(10, 3)}  # a message waits, prefetched

    assert tracker.pending(lambda: at(41)) == {A: Offset(41)}


def test_consumed_before_two_seeks_stays_pending() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {})
    tracker.seek(A, 40, *at(10))
    tracker.seek(A, 5, *at(OFFSET_INVALID))
    assert tracker.pending(lambda: at(OFFSET_INVALID)) == {A: Offset(10)}

    # Sought back to where it was, and consumed from there to where it was sought first.
    assert tracker.pending(lambda: at(6)) == {A: Offset(6)}
    assert tracker.pending(lambda: at(40)) == {A: Offset(40)}


def test_a_seek_before_anything_was_consumed_leaves_nothing_pending() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {})
    tracker.set_start_offsets(at(7))
    tracker.seek(A, 40, *at(7))
    assert tracker.pending(lambda: at(40)) == {}

    tracker.dropped([A])
    tracker.assigned([A], {})
    assert tracker.pending(lambda: at(40)) == {A: Offset(40)}


def test_by_hand_only_what_was_stored_is_pending() -> None:
    tracker = OffsetTracker(by_hand=True)
    tracker.assigned([A, B], {})
    assert tracker.pending(lambda: at(7, 7)) == {}

    tracker.store({A: Offset(3)})
    tracker.store({A: Offset(2)})
    assert tracker.pending(lambda: at(7, 7)) == {A: Offset(2)}


def test_an_offset_stored_under_a_former_assignment_is_never_committed() -> None:
    """librdkafka #2782."""
    tracker = OffsetTracker(by_hand=True)
    tracker.assigned([A, B], {})
    tracker.store({A: Offset(3), B: Offset(4)})
    tracker.dropped([A])
    assert tracker.pending(at) == {B: Offset(4)}

    tracker.store({A: Offset(3)})
    tracker.assigned([A, B], {A: Offset(9)})
    assert tracker.pending(at) == {}


def test_a_partition_that_comes_back_starts_afresh() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {A: Offset(5)})
    tracker.dropped([A])
    tracker.assigned([A], {A: Offset(-1)})

    assert tracker.pending(lambda: at(5)) == {A: Offset(5)}


def test_partitions_without_a_real_offset_are_left_out() -> None:
    partitions = [
        TopicPartition("t", 0, 4, metadata="mine", leader_epoch=2),
        TopicPartition("t", 1, OFFSET_BEGINNING),
        TopicPartition("t", 2),
    ]

    assert from_partitions(partitions) == {A: Offset(4, leader_epoch=2, metadata="mine")}


def test_a_message_commits_the_offset_after_it() -> None:
    assert from_message(new_message(topic="t", partition=0, offset=4, leader_epoch=2)) == {A: Offset(5, 2)}
    assert from_message(new_message(topic="t", partition=0, offset=0)) == {A: Offset(1)}


def test_a_message_that_is_an_error_commits_nothing() -> None:
    error = KafkaError(KafkaError._PARTITION_EOF)

    assert from_message(new_message(topic="t", partition=0, offset=4, error=error)) == {}
    assert from_message(new_message(error=error)) == {}


def test_offsets_are_written_as_they_were_read() -> None:
    offsets = {A: Offset(4, leader_epoch=2, metadata="mine"), B: Offset(0)}

    assert from_partitions(to_partitions(offsets)) == offsets


def test_a_report_has_the_error_of_each_partition_that_failed() -> None:
    asked = [TopicPartition("t", 1, 4, metadata="mine", leader_epoch=2), *at(3), TopicPartition("s", 0)]
    report = reported(asked, {A: 0, B: KafkaError.UNKNOWN_TOPIC_OR_PART})

    assert [(p.topic, p.partition, p.offset) for p in report] == [("s", 0, -1001), ("t", 0, 3), ("t", 1, 4)]
    assert [p.error and p.error.code() for p in report] == [None, None, KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert (report[2].metadata, report[2].leader_epoch, report[1].metadata) == ("mine", 2, None)


def test_a_partition_with_an_error_compares_like_any_other() -> None:
    """confluent-kafka's own operators raise where the classes differ."""
    plain, other = TopicPartition("t", 1, 4), TopicPartition("t", 2)
    failed = reported([plain], {B: 3})[0]

    assert failed == plain
    assert plain == failed
    assert failed != other
    assert other != failed
    assert hash(failed) == hash(plain)
    assert {plain: "found"}[failed] == "found"
    assert sorted([other, failed]) == [failed, other]
    assert (failed < other, other > failed, other < failed, failed > other) == (True, True, False, False)
    assert operator.le(failed, plain)
    assert operator.ge(failed, plain)
    assert not operator.ge(failed, other)
    assert failed != "t"
    expected = str(plain).replace("error=None", f"error={failed.error}")
    assert str(failed) == repr(failed) == expected


@pytest.mark.parametrize("wrong", [[("t", 0, 1)], "t", 5, tuple(at(1)), [*at(1), None]])
def test_what_is_no_list_of_partitions_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="TopicPartition"):
        check_partitions(wrong)


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(TypeError, match=r"confluent_kafka\.cimpl\.Message"):
        check_message("x")
