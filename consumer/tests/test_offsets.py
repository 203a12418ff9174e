"""Which offsets there are to commit."""

from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, Message, TopicPartition

from groupwright.consumer.offsets import OffsetTracker, from_message, from_partitions, to_partitions
from groupwright.consumer.protocol import Offset

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


def test_going_back_is_pending_too() -> None:
    tracker = OffsetTracker(by_hand=False)
    tracker.assigned([A], {A: Offset(5)})

    assert tracker.pending(lambda: at(2)) == {A: Offset(2)}


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
    assert from_message(Message(topic="t", partition=0, offset=4, leader_epoch=2)) == {A: Offset(5, 2)}
    assert from_message(Message(topic="t", partition=0, offset=0)) == {A: Offset(1)}


def test_a_message_that_is_an_error_commits_nothing() -> None:
    error = KafkaError(KafkaError._PARTITION_EOF)

    assert from_message(Message(topic="t", partition=0, offset=4, error=error)) == {}
    assert from_message(Message(error=error)) == {}


def test_offsets_are_written_as_they_were_read() -> None:
    offsets = {A: Offset(4, leader_epoch=2, metadata="mine"), B: Offset(0)}

    assert from_partitions(to_partitions(offsets)) == offsets
