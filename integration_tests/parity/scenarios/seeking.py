"""Seek, position, pause and resume."""

from confluent_kafka import TopicPartition

from integration_tests.parity.lab import Lab, callbacks
from integration_tests.parity.scenarios import scenario


@scenario()
def a_seek_of_what_is_not_assigned(lab: Lab) -> None:
    """A partition that was never assigned is unknown; one that no longer is, is in the wrong state."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("seek", TopicPartition(topic, 0, 3))
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(5)
    consumer.attempt("seek", TopicPartition(topic, 1, 3))
    consumer.attempt("seek", TopicPartition(topic, 7, 3))
    consumer.close()


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
