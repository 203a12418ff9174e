"""Messages taken ahead: what says how far the application has come says it of what it has taken."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, Message, TopicPartition

from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.prefetch import BATCH_SIZE, PrefetchBuffer

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene


class Queue:
    """librdkafka's queue of one topic's messages."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.asked: list[int] = []
        self.position: dict[int, int] = {}
        self.handed_over: list[Message] = []

    def consume(self, count: int, _timeout: float) -> list[Message]:
        self.asked.append(count)
        taken, self.messages = self.messages[:count], self.messages[count:]
        self.handed_over += taken
        for message in taken:
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                self.position[partition] = offset + 1
        return taken

    def positions(self) -> list[TopicPartition]:
        return [TopicPartition("t", partition, offset) for partition, offset in self.position.items()]


def next_of(
    ahead: PrefetchBuffer, consume: Callable[[int, float], list[Message]], now: float
) -> Message | None:
    """Return what `PrefetchBuffer.next` appends."""
    messages: list[Message] = []
    ahead.next(messages, consume, now)
    return messages[0] if messages else None


def message(offset: int, partition: int = 0) -> Message:
    return new_message(topic="t", partition=partition, offset=offset, value=b"")


def offsets(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    return [(message.partition(), message.offset()) for message in messages]


def running(ahead: PrefetchBuffer, queue: Queue) -> Message | None:
    """Take the first two messages as a caller does that keeps up: the second is the first of a handful."""
    next_of(ahead, queue.consume, 100.0)
    return next_of(ahead, queue.consume, 100.01)


def taken(ahead: PrefetchBuffer, most: int = 10) -> list[Message]:
    """Take what waits, and nothing of librdkafka."""
    messages: list[Message] = []
    ahead.gather(messages, most, lambda *_: [], 0.0)
    return messages


def end_of(partition: int, offset: int) -> Message:
    return new_message(
        topic="t", partition=partition, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF)
    )


def test_a_caller_that_keeps_up_gets_a_handful_at_once() -> None:
    queue, ahead = Queue(*map(message, range(BATCH_SIZE + 10))), PrefetchBuffer()

    seen = [next_of(ahead, queue.consume, 100.0 + number / 1000) for number in range(BATCH_SIZE + 2)]

    assert offsets([one for one in seen if one is not None]) == [
        (0, offset) for offset in range(BATCH_SIZE + 2)
    ]
    assert queue.asked == [1, BATCH_SIZE, 1]


def test_a_caller_that_takes_its_time_gets_each_message_by_itself() -> None:
    """Else a slow consumer's lag would look smaller than it is, and its handful would grow old."""
    queue, ahead = Queue(*map(message, range(3))), PrefetchBuffer()

    for second in range(3):
        next_of(ahead, queue.consume, 100.0 + second)

    assert queue.asked == [1, 1, 1]


def test_without_a_handful_librdkafka_is_left_alone() -> None:
    queue, ahead = Queue(message(0)), PrefetchBuffer(0)

    assert next_of(ahead, queue.consume, 100.0) is None
    assert queue.asked == []


def test_a_position_is_that_of_what_was_taken() -> None:
    """A commit of librdkafka's position would skip what the application has not seen, if the process died now."""
    queue = Queue(message(0), message(1), message(7, partition=1), message(2), message(8, partition=1))
    ahead = PrefetchBuffer()
    running(ahead, queue)

    assert [(p.partition, p.offset) for p in queue.positions()] == [(0, 3), (1, 9)]
    assert [(p.partition, p.offset) for p in ahead.positions(queue.positions)] == [(0, 2), (1, 7)]
    assert len(taken(ahead)) == 3
    assert [(p.partition, p.offset) for p in ahead.positions(queue.positions)] == [(0, 3), (1, 9)]


def test_what_is_given_up_is_not_returned() -> None:
    queue = Queue(message(0), message(1), message(7, partition=1), message(2))
    ahead = PrefetchBuffer()
    running(ahead, queue)

    ahead.drop([("t", 0)])

    assert offsets(taken(ahead)) == [(1, 7)]


def test_what_is_paused_waits_and_keeps_its_place() -> None:
    queue = Queue(message(0), message(1), message(2), message(7, partition=1), message(3))
    ahead = PrefetchBuffer()
    running(ahead, queue)

    ahead.pause([("t", 0)])
    assert ahead.pauses_changed
    ahead.apply_pauses()
    assert offsets(taken(ahead)) == [(1, 7)]
    assert [(p.partition, p.offset) for p in ahead.positions(queue.positions)] == [(0, 2), (1, 8)]

    ahead.resume([("t", 0)])
    ahead.apply_pauses()
    assert offsets(taken(ahead)) == [(0, 2), (0, 3)]


def test_what_is_paused_and_given_up_does_not_come_back() -> None:
    queue = Queue(message(0), message(1), message(2))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    ahead.pause([("t", 0)])
    ahead.apply_pauses()

    ahead.drop([("t", 0)])
    ahead.resume([("t", 0)])
    ahead.apply_pauses()

    assert taken(ahead) == []


def test_an_error_says_nothing_of_a_position() -> None:
    queue = Queue(message(0), message(1), end_of(0, 1))
    ahead = PrefetchBuffer()
    running(ahead, queue)

    assert [(p.partition, p.offset) for p in ahead.positions(lambda: [TopicPartition("t", 0, 2)])] == [(0, 2)]
    assert ahead.first_offsets() == {}


def test_an_error_of_a_partition_goes_with_it() -> None:
    """As in librdkafka: the end of a partition that was sought elsewhere since is no longer its end."""
    down = new_message(error=KafkaError(KafkaError._ALL_BROKERS_DOWN))
    queue = Queue(message(0), message(1), end_of(0, 2), end_of(1, 5), down)
    ahead = PrefetchBuffer()
    running(ahead, queue)

    ahead.drop([("t", 0)])

    assert taken(ahead) == [queue.handed_over[3], down]


def test_an_error_of_a_paused_partition_waits_with_it() -> None:
    queue = Queue(message(0), message(1), end_of(0, 2), end_of(1, 5))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    ahead.pause([("t", 0)])
    ahead.apply_pauses()
    assert offsets(taken(ahead)) == [(1, 5)]

    ahead.resume([("t", 0)])
    ahead.apply_pauses()

    assert offsets(taken(ahead)) == [(0, 2)]


# --- Exceptions -----------------------------------------------------------------------------------------


def test_what_is_put_back_is_what_comes_next() -> None:
    queue = Queue(*map(message, range(5)))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    messages = taken(ahead, 2)

    ahead.put_back(messages)

    assert messages == []
    assert [(p.partition, p.offset) for p in ahead.positions(queue.positions)] == [(0, 2)]
    assert offsets(taken(ahead)) == [(0, 2), (0, 3), (0, 4)]


def test_what_is_put_back_of_a_partition_that_was_paused_meanwhile_waits() -> None:
    queue = Queue(*map(message, range(3)))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    messages = taken(ahead)
    ahead.pause([("t", 0)])
    ahead.apply_pauses()

    ahead.put_back(messages)
    assert ahead.pauses_changed
    ahead.apply_pauses()

    assert taken(ahead) == []


def test_a_handful_that_a_handler_made_the_native_call_throw_away_is_fetched_again() -> None:
    """confluent-kafka frees the messages of a call in which a signal handler raises; librdkafka counts them as consumed."""
    queue = Queue(*map(message, range(4)), message(7, partition=1), message(4), message(8, partition=1))
    ahead = PrefetchBuffer()
    ahead.set_start_offsets([TopicPartition("t", 0, 0), TopicPartition("t", 1, 7), TopicPartition("t", 2, 3)])
    for number in range(2):
        next_of(ahead, lambda *_: queue.consume(2, 0.0), 100.0 + number / 100)
        taken(ahead)
    assert ahead.lost(queue.positions()) == []

    queue.consume(3, 0.0)  # of which nothing comes back

    lost = ahead.lost(queue.positions())
    assert [(p.partition, p.offset) for p in lost] == [(0, 4), (1, 7)]
    sought = [TopicPartition("t", partition, OFFSET_INVALID) for partition in (0, 1)]
    assert [p.offset for p in ahead.positions(lambda: sought)] == [4, 7]


def test_what_is_put_back_was_not_lost() -> None:
    queue = Queue(*map(message, range(5)))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    messages = taken(ahead, 2)
    ahead.put_back(messages)

    assert ahead.lost(queue.positions()) == []


def test_gaps_between_offsets_lose_nothing() -> None:
    """A handful that only seems to be of one partition leaves the others behind, which then come twice."""
    queue = Queue(
        message(0), message(5), message(7, partition=1), message(7), message(8), message(8, partition=1)
    )
    ahead = PrefetchBuffer()
    ahead.set_start_offsets([TopicPartition("t", 0, 0), TopicPartition("t", 1, 7)])
    next_of(ahead, queue.consume, 100.0)
    next_of(ahead, lambda *_: queue.consume(3, 0.0), 100.01)
    taken(ahead)

    queue.consume(2, 0.0)

    assert [(p.partition, p.offset) for p in ahead.lost(queue.positions())] == [(0, 8), (1, 7)]


# --- With a real broker ---------------------------------------------------------------------------------


@pytest.mark.kafka
def test_a_seek_amid_a_handful_goes_where_it_says(scene: "Scene") -> None:
    topic = scene.topic(messages=1000)
    consumer = scene.consumer()
    consumer.subscribe([topic])
    assert scene.take(consumer, 10) == list(range(10))

    consumer.seek(TopicPartition(topic, 0, 500))

    assert scene.take(consumer, 10) == list(range(500, 510))


@pytest.mark.kafka
def test_a_pause_amid_a_handful_stops_at_once_and_loses_nothing(scene: "Scene") -> None:
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
def test_a_commit_amid_a_handful_is_of_what_was_returned(scene: "Scene") -> None:
    topic = scene.topic(messages=1000)
    consumer = scene.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    scene.take(consumer, 100)

    committed = consumer.commit(asynchronous=False)

    assert committed is not None
    assert [p.offset for p in committed] == [100]
    consumer.close()
    heir = scene.consumer()
    heir.subscribe([topic])
    assert scene.take(heir, 1) == [100]


def test_where_each_partitions_messages_begin_is_told_paused_ones_included() -> None:
    """A scrape asks for it beside a thread that polls: lag must not count as taken what is here."""
    queue = Queue(message(0), message(1), message(7, 1), message(2), message(8, 1))
    ahead = PrefetchBuffer()
    running(ahead, queue)
    assert ahead.first_offsets() == {("t", 0): 2, ("t", 1): 7}

    ahead.pause([("t", 1)])
    ahead.apply_pauses()
    assert next_of(ahead, queue.consume, 100.02) is not None
    assert ahead.first_offsets() == {("t", 1): 7}
