"""Prefetched messages: positions, lag and commits count only the messages that were returned."""

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaError,
    Message,
    TopicPartition,
)

from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.prefetch import BATCH_SIZE, PrefetchBuffer
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene


class Queue:
    """librdkafka's queue of one topic's messages."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.asked: list[int] = []
        self.position: dict[int, int] = {}
        self.returned: list[Message] = []

    def consume(self, count: int, _timeout: float) -> list[Message]:
        self.asked.append(count)
        taken, self.messages = self.messages[:count], self.messages[count:]
        self.returned += taken
        for message in taken:
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                self.position[partition] = offset + 1
        return taken

    def positions(self) -> list[TopicPartition]:
        return [TopicPartition("t", partition, offset) for partition, offset in self.position.items()]


def next_of(
    buffer: PrefetchBuffer, consume: Callable[[int, float], list[Message]], now: float
) -> Message | None:
    """Return what `PrefetchBuffer.next` appends."""
    messages: list[Message] = []
    buffer.next(messages, consume, now)
    return messages[0] if messages else None


def message(offset: int, partition: int = 0) -> Message:
    return new_message(topic="t", partition=partition, offset=offset, value=b"")


def offsets(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    return [(message.partition(), message.offset()) for message in messages]


def running(buffer: PrefetchBuffer, queue: Queue) -> Message | None:
    """Take two messages as a caller that keeps up: the second is the first of a batch."""
    next_of(buffer, queue.consume, 100.0)
    return next_of(buffer, queue.consume, 100.01)


def taken(buffer: PrefetchBuffer, most: int = 10) -> list[Message]:
    """Take the prefetched messages, and none of librdkafka's."""
    buffer.gather(most, lambda *_: [], 0.0)
    messages, buffer.taken = buffer.taken, []
    return messages


def end_of(partition: int, offset: int) -> Message:
    return new_message(
        topic="t", partition=partition, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF)
    )


def test_a_caller_that_keeps_up_gets_a_batch_at_once() -> None:
    queue, buffer = Queue(*map(message, range(BATCH_SIZE + 10))), PrefetchBuffer()

    seen = [next_of(buffer, queue.consume, 100.0 + number / 1000) for number in range(BATCH_SIZE + 2)]

    assert offsets([one for one in seen if one is not None]) == [
        (0, offset) for offset in range(BATCH_SIZE + 2)
    ]
    assert queue.asked == [1, BATCH_SIZE, 1]


def test_a_caller_that_takes_its_time_gets_each_message_by_itself() -> None:
    """Otherwise a slow consumer's batch would grow old."""
    queue, buffer = Queue(*map(message, range(3))), PrefetchBuffer()

    for second in range(3):
        next_of(buffer, queue.consume, 100.0 + second)

    assert queue.asked == [1, 1, 1]


def test_without_prefetching_librdkafka_is_left_alone() -> None:
    queue, buffer = Queue(message(0)), PrefetchBuffer(0)

    assert next_of(buffer, queue.consume, 100.0) is None
    assert queue.asked == []


def test_a_position_is_that_of_the_returned_messages() -> None:
    """If the process died now, a commit of librdkafka's position would skip prefetched messages."""
    queue = Queue(message(0), message(1), message(7, partition=1), message(2), message(8, partition=1))
    buffer = PrefetchBuffer()
    running(buffer, queue)

    assert [(p.partition, p.offset) for p in queue.positions()] == [(0, 3), (1, 9)]
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 2), (1, 7)]
    assert len(taken(buffer)) == 3
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 3), (1, 9)]


def test_positions_are_read_again_if_messages_were_dropped_meanwhile() -> None:
    """As by a seek on the polling thread: without its messages, a position from before would skip them."""
    queue, buffer = Queue(*map(message, range(BATCH_SIZE))), PrefetchBuffer()
    running(buffer, queue)
    reads: list[int] = []

    def read() -> list[TopicPartition]:
        found = queue.positions() if not reads else [TopicPartition("t", 0, 5)]
        if not reads:
            buffer.drop([("t", 0)])
        reads.append(found[0].offset)
        return found

    assert [p.offset for p in buffer.positions(read)] == [5]
    assert reads == [BATCH_SIZE, 5]


def test_a_position_that_is_ahead_of_a_batch_waits_for_its_messages() -> None:
    queue, buffer = Queue(*map(message, range(10))), PrefetchBuffer()
    next_of(buffer, queue.consume, 100.0)
    is_read, found = threading.Event(), list[int]()

    def consume(count: int, timeout: float) -> list[Message]:
        messages = queue.consume(count, timeout)
        thread.start()
        assert is_read.wait(PATIENCE)
        return messages

    def read() -> list[TopicPartition]:
        positions = queue.positions()
        is_read.set()
        return positions

    thread = threading.Thread(target=lambda: found.extend(p.offset for p in buffer.positions(read)))
    assert next_of(buffer, consume, 100.01) is not None
    thread.join(PATIENCE)
    assert found in ([1], [2]), "before or after the message that was returned, and not 10"


def test_messages_that_consume_still_gathers_are_not_committed() -> None:
    """An automatic commit meanwhile committed them; a process that was killed then had lost them."""
    queue, buffer = Queue(message(0), message(1), message(7, partition=1)), PrefetchBuffer()
    buffer.taken = queue.consume(3, 0)

    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 0), (1, 7)]
    buffer.put_back(buffer.taken)
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 0), (1, 7)]
    assert len(taken(buffer)) == 3
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 2), (1, 8)]


def test_messages_of_revoked_partitions_are_not_returned() -> None:
    queue = Queue(message(0), message(1), message(7, partition=1), message(2))
    buffer = PrefetchBuffer()
    running(buffer, queue)

    buffer.drop([("t", 0)])

    assert offsets(taken(buffer)) == [(1, 7)]


def test_messages_that_consume_gathers_leave_it_if_a_callback_seeks_or_pauses() -> None:
    queue, buffer = Queue(message(0), message(7, partition=1), message(3, partition=2)), PrefetchBuffer()
    buffer.taken = gathered = queue.consume(3, 0)

    buffer.drop([("t", 0)])
    buffer.pause([("t", 1)])
    buffer.apply_pauses()
    assert offsets(gathered) == [(2, 3)]
    buffer.taken = []

    buffer.resume([("t", 1)])
    buffer.apply_pauses()
    assert offsets(taken(buffer)) == [(1, 7)]


def test_messages_of_paused_partitions_wait_and_keep_their_order() -> None:
    queue = Queue(message(0), message(1), message(2), message(7, partition=1), message(3))
    buffer = PrefetchBuffer()
    running(buffer, queue)

    buffer.pause([("t", 0)])
    assert buffer.pauses_changed
    buffer.apply_pauses()
    assert offsets(taken(buffer)) == [(1, 7)]
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 2), (1, 8)]

    buffer.resume([("t", 0)])
    buffer.apply_pauses()
    assert offsets(taken(buffer)) == [(0, 2), (0, 3)]


def test_messages_of_paused_and_revoked_partitions_do_not_come_back() -> None:
    queue = Queue(message(0), message(1), message(2))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    buffer.pause([("t", 0)])
    buffer.apply_pauses()

    buffer.drop([("t", 0)])
    buffer.resume([("t", 0)])
    buffer.apply_pauses()

    assert taken(buffer) == []


def test_an_error_says_nothing_of_a_position() -> None:
    queue = Queue(message(0), message(1), end_of(0, 1))
    buffer = PrefetchBuffer()
    running(buffer, queue)

    assert [(p.partition, p.offset) for p in buffer.positions(lambda: [TopicPartition("t", 0, 2)])] == [
        (0, 2)
    ]
    assert buffer.first_offsets() == {}


def test_an_error_of_a_partition_goes_with_it() -> None:
    """As in librdkafka: the end of a partition that was sought elsewhere since is no longer its end."""
    down = new_message(error=KafkaError(KafkaError._ALL_BROKERS_DOWN))
    queue = Queue(message(0), message(1), end_of(0, 2), end_of(1, 5), down)
    buffer = PrefetchBuffer()
    running(buffer, queue)

    buffer.drop([("t", 0)])

    assert taken(buffer) == [queue.returned[3], down]


def test_an_error_of_a_paused_partition_waits_with_it() -> None:
    queue = Queue(message(0), message(1), end_of(0, 2), end_of(1, 5))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    buffer.pause([("t", 0)])
    buffer.apply_pauses()
    assert offsets(taken(buffer)) == [(1, 5)]

    buffer.resume([("t", 0)])
    buffer.apply_pauses()

    assert offsets(taken(buffer)) == [(0, 2)]


# --- Exceptions -----------------------------------------------------------------------------------------


def test_what_is_put_back_is_what_comes_next() -> None:
    queue = Queue(*map(message, range(5)))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    messages = taken(buffer, 2)

    buffer.put_back(messages)

    assert messages == []
    assert [(p.partition, p.offset) for p in buffer.positions(queue.positions)] == [(0, 2)]
    assert offsets(taken(buffer)) == [(0, 2), (0, 3), (0, 4)]


def test_what_is_put_back_of_a_partition_that_was_paused_meanwhile_waits() -> None:
    queue = Queue(*map(message, range(3)))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    messages = taken(buffer)
    buffer.pause([("t", 0)])
    buffer.apply_pauses()

    buffer.put_back(messages)
    assert buffer.pauses_changed
    buffer.apply_pauses()

    assert taken(buffer) == []


def test_a_batch_that_a_signal_handler_made_the_native_call_discard_is_fetched_again() -> None:
    """If a handler raises, confluent-kafka frees the messages, which librdkafka counts as consumed."""
    queue = Queue(*map(message, range(4)), message(7, partition=1), message(4), message(8, partition=1))
    buffer = PrefetchBuffer()
    buffer.set_start_offsets(
        [TopicPartition("t", 0, 0), TopicPartition("t", 1, 7), TopicPartition("t", 2, 3)]
    )
    for number in range(2):
        next_of(buffer, lambda *_: queue.consume(2, 0.0), 100.0 + number / 100)
        taken(buffer)
    assert buffer.seek_targets(queue.positions()) == []

    queue.consume(3, 0.0)  # of which nothing comes back

    lost = buffer.seek_targets(queue.positions())
    assert [(p.partition, p.offset) for p in lost] == [(0, 4), (1, 7)]
    sought = [TopicPartition("t", partition, OFFSET_INVALID) for partition in (0, 1)]
    assert [p.offset for p in buffer.positions(lambda: sought)] == [4, 7]


def test_a_discarded_batch_of_a_partition_without_a_known_start_is_fetched_from_its_logical_one() -> None:
    """As by an application that assigns by hand; the end is no offset to go back to."""
    queue = Queue(*(message(5, partition) for partition in range(4)))
    buffer = PrefetchBuffer()
    logical = (OFFSET_INVALID, OFFSET_STORED, OFFSET_BEGINNING, OFFSET_END)
    buffer.set_start_offsets(TopicPartition("t", *each) for each in enumerate(logical))
    buffer.cut_short = True
    queue.consume(4, 0.0)

    assert [p.offset for p in buffer.positions(queue.positions)] == [OFFSET_INVALID] * 3 + [6]
    lost = buffer.seek_targets(queue.positions())
    assert [(p.partition, p.offset) for p in lost] == [
        (0, OFFSET_STORED),
        (1, OFFSET_STORED),
        (2, OFFSET_BEGINNING),
    ]


def test_partitions_that_are_assigned_again_after_a_discarded_batch_go_on_where_they_were() -> None:
    """Those with a message, a seek, neither of both, and nothing to know of."""
    known, sought, unset, unknown = (TopicPartition("t", number) for number in range(4))
    queue = Queue(message(3), message(4))
    buffer = PrefetchBuffer()
    buffer.set_start_offsets([known, TopicPartition("t", 1, 7), unset])
    running(buffer, queue)
    reached = [TopicPartition("t", 0, 5), sought, TopicPartition("t", 2, 9), TopicPartition("t", 3, 6)]

    starts = buffer.restarts([known, sought, unset, unknown], reached)

    assert [p.offset for p in starts] == [5, 7, OFFSET_STORED, 6]
    nowhere = [TopicPartition("t", number) for number in range(4)]
    assert [p.offset for p in buffer.positions(lambda: nowhere)] == [5, 7, OFFSET_INVALID, 6]


def test_a_message_that_an_exception_left_unrecorded_is_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal handler raised before the record; a later exception cut a native call short."""
    buffer, queue = PrefetchBuffer(), Queue(message(0))
    buffer.set_start_offsets([TopicPartition("t", 0, 0)])
    with monkeypatch.context() as patched:
        patched.setattr(buffer, "_record_reached", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            next_of(buffer, queue.consume, 100.0)
    buffer.put_back([])
    buffer.apply_pauses()
    assert offsets(taken(buffer)) == [(0, 0)]

    buffer.cut_short = True

    assert buffer.seek_targets(queue.positions()) == []


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_put_back_was_not_lost() -> None:
    queue = Queue(*map(message, range(5)))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    messages = taken(buffer, 2)
    buffer.put_back(messages)

    assert buffer.seek_targets(queue.positions()) == []


@pytest.mark.parametrize("seed", range(20))
def test_what_a_batch_of_several_partitions_reached_is_known(seed: int) -> None:
    """A handler then ends a call that had taken one more message of each partition: those are lost."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    reached = dict.fromkeys(range(4), 0)
    batch: list[Message] = []
    for _ in range(rng.randint(1, 30)):
        partition = rng.randrange(4)
        if rng.random() < 0.2:
            batch.append(end_of(partition, reached[partition]))
            continue
        for _ in range(rng.choice((1, 1, 2, 9))):
            batch.append(message(reached[partition], partition))
            reached[partition] += 1
    reached = {partition: offset for partition, offset in reached.items() if offset}
    buffer = PrefetchBuffer()
    buffer.gather(len(batch), lambda *_: batch, 0.0)
    lost = buffer.seek_targets(
        [TopicPartition("t", partition, offset + 1) for partition, offset in reached.items()]
    )
    assert {each.partition: each.offset for each in lost} == reached


def test_gaps_between_offsets_lose_nothing() -> None:
    """A batch taken for one of a single partition would leave the other positions behind: duplicates."""
    queue = Queue(
        message(0), message(5), message(7, partition=1), message(7), message(8), message(8, partition=1)
    )
    buffer = PrefetchBuffer()
    buffer.set_start_offsets([TopicPartition("t", 0, 0), TopicPartition("t", 1, 7)])
    next_of(buffer, queue.consume, 100.0)
    next_of(buffer, lambda *_: queue.consume(3, 0.0), 100.01)
    taken(buffer)

    queue.consume(2, 0.0)

    assert [(p.partition, p.offset) for p in buffer.seek_targets(queue.positions())] == [(0, 8), (1, 7)]


# --- With a real broker ---------------------------------------------------------------------------------


@pytest.mark.kafka
def test_a_seek_within_a_batch_goes_to_its_offset(scene: "Scene") -> None:
    topic = scene.topic(messages=1000)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    assert scene.take(consumer, 10) == list(range(10))

    consumer.seek(TopicPartition(topic, 0, 500))

    assert scene.take(consumer, 10) == list(range(500, 510))


@pytest.mark.kafka
def test_a_pause_within_a_batch_stops_at_once_and_loses_nothing(scene: "Scene") -> None:
    topic = scene.topic(messages=1000)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    seen = scene.take(consumer, 100)

    consumer.pause(consumer.assignment())
    assert consumer.poll(0.2) is None
    assert [p.offset for p in consumer.position(consumer.assignment())] == [100]
    consumer.resume(consumer.assignment())

    assert seen + scene.take(consumer, 900) == list(range(1000))


@pytest.mark.kafka
def test_a_commit_within_a_batch_is_of_the_returned_messages(scene: "Scene") -> None:
    topic = scene.topic(messages=1000)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.take(consumer, 100)

    committed = consumer.commit(asynchronous=False)

    assert committed is not None
    assert [p.offset for p in committed] == [100]
    consumer.close()
    successor = scene.consumer()
    successor.subscribe([topic])
    assert scene.take(successor, 1) == [100]


def test_first_offsets_include_paused_partitions() -> None:
    """A scrape reads them beside a polling thread: prefetched messages must count as lag."""
    queue = Queue(message(0), message(1), message(7, 1), message(2), message(8, 1))
    buffer = PrefetchBuffer()
    running(buffer, queue)
    assert buffer.first_offsets() == {("t", 0): 2, ("t", 1): 7}

    buffer.pause([("t", 1)])
    buffer.apply_pauses()
    assert next_of(buffer, queue.consume, 100.02) is not None
    assert buffer.first_offsets() == {("t", 1): 7}
