"""Results of poll and consume: errors of partitions, long callbacks."""

import time

from confluent_kafka import TopicPartition

from parity.lab import Lab, callbacks
from parity.scenarios import scenario


@scenario()
def a_replay_to_the_end_reads_it_all(lab: Lab) -> None:
    """A seek discards a fetched end of the partition: the next end is that of the replay."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.seek(TopicPartition(topic, 0, 0))
    consumer.read(10)
    consumer.idle(0.5)
    consumer.close()


@scenario()
def nothing_comes_of_a_partition_that_is_paused(lab: Lab) -> None:
    """Its end neither, until it is resumed."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(4)
    consumer.until(lambda: consumer.errors, "the error about the end")
    consumer.close()


@scenario()
def nothing_comes_of_a_partition_that_was_unassigned(lab: Lab) -> None:
    """Its end neither."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(6)
    consumer.unassign()
    consumer.idle(0.5)
    consumer.close()


@scenario(seconds=90.0)
def a_callback_may_take_longer_than_the_poll_interval(lab: Lab) -> None:
    """Time inside poll, including its callbacks (such as loading state in on_assign), counts as polling."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(max_poll_interval_ms=6000, session_timeout_ms=6000)

    def on_assign(*_: object) -> None:
        time.sleep(8)

    consumer.subscribe([topic], **{**callbacks(), "on_assign": on_assign})
    consumer.read(10)
    consumer.close()
