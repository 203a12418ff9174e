"""Seek, position, pause and resume."""

from confluent_kafka import TopicPartition

from parity.lab import Lab, callbacks
from parity.scenarios import scenario


@scenario()
def a_seek_back_delivers_again(lab: Lab) -> None:
    """After a seek the partition goes on at the new offset."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.seek(TopicPartition(topic, 0, 3))
    consumer.read(7)
    consumer.close()
