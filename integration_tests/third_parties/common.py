"""Helpers of the checks: the consumer under test, topics, records, committed offsets."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import confluent_kafka
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

ORIGINAL = "confluent-kafka"
OURS = "groupwright"
PATIENCE = 20.0
"""Seconds that a check waits for a condition."""


def consumer_class(which: str) -> Any:
    """Return the consumer's class, imported now."""
    if which == ORIGINAL:
        return confluent_kafka.Consumer
    from groupwright.consumer import Consumer  # the order of imports is what some checks are about

    return Consumer


def new_topic(bootstrap: str, partitions: int = 2) -> str:
    """Create a topic, and return its unique name."""
    name = f"third-parties-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result(PATIENCE)
    return name


def new_group() -> str:
    """Return a group's unique name."""
    return f"third-parties-{uuid.uuid4().hex[:8]}"


def produce(bootstrap: str, topic: str, values: Iterable[bytes], partitions: int = 2) -> None:
    """Write values to a topic's partitions, in turn; the key of each is its number."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number), partition=number % partitions)
    if producer.flush(PATIENCE):
        raise TimeoutError(f"{topic}: not all messages were delivered")


def numbers(count: int) -> list[bytes]:
    """Return so many values."""
    return [str(number).encode() for number in range(count)]


def settings(bootstrap: str, group: str, **others: Any) -> dict[str, Any]:
    """Return a consumer's configuration; a keyword's underscores stand for dots."""
    config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return config | {key.replace("_", "."): value for key, value in others.items()}


def committed(bootstrap: str, group: str, topic: str, partitions: int = 2) -> list[int]:
    """Return a group's committed offsets of a topic, by partition."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [partition.offset for partition in consumer.committed(asked, timeout=PATIENCE)]
    finally:
        consumer.close()


def wait_for(condition: Callable[[], object], subject: str) -> None:
    """Return once the condition holds.

    Raises:
        TimeoutError: It did not within `PATIENCE`.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {subject}")
        time.sleep(0.02)


class Warnings(logging.Handler):
    """The levels and first words of what is logged from WARNING on, so that two runs can be compared."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(f"{record.levelname} {record.getMessage()[:200]}")
