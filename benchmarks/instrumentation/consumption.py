"""Consuming with instrumentation and without, by turns, so that both meet the same machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from groupwright.testing import LocalKafka

MESSAGE = b"x" * 100
_PATIENCE = 60.0


@dataclass
class Rates:
    """Messages a second, round by round."""

    without: list[float] = field(default_factory=list)
    with_it: list[float] = field(default_factory=list)
    cpu_without: list[float] = field(default_factory=list)
    """Microseconds a message, of the application's thread alone."""
    cpu_with_it: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """With over without, round by round."""
        return [b / a for a, b in zip(self.without, self.with_it, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return median(self.ratios)


def fill(kafka: LocalKafka, topic: str, partitions: int, messages: int) -> None:
    """Create a topic with so many messages, evenly."""
    kafka.create_topic(topic, partitions)
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": messages,
        }
    )
    for number in range(messages):
        producer.produce(topic, MESSAGE, partition=number % partitions)
    if left := producer.flush(_PATIENCE):
        raise TimeoutError(f"the broker did not take {left} messages in {_PATIENCE} s")


@contextmanager
def closing(consumer: Any) -> Iterator[Any]:
    """Close a consumer at the end."""
    try:
        yield consumer
    finally:
        consumer.close()


def by_poll(consumer: Consumer, messages: int) -> None:
    """Take so many messages, each with a call of its own."""
    taken = 0
    while taken < messages:
        message = consumer.poll(_PATIENCE)
        if message is None:
            raise TimeoutError(f"no message came in {_PATIENCE} s")
        if message.error() is None:
            taken += 1


def by_consume(consumer: Consumer, messages: int) -> None:
    """Take so many messages, 500 with a call."""
    taken = 0
    while taken < messages:
        taken += len(consumer.consume(min(500, messages - taken), _PATIENCE))


def rate(
    consumer: Consumer, topic: str, partitions: int, messages: int, take: Callable[[Consumer, int], None]
) -> tuple[float, float]:
    """Return how many messages a second come from the topic's beginning, and the CPU microseconds of each.

    The start is left out.
    """
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    take(consumer, messages // 10)
    counted = messages - messages // 10
    began, cpu = time.perf_counter(), time.thread_time()
    take(consumer, counted)
    seconds, cpu = time.perf_counter() - began, time.thread_time() - cpu
    consumer.unassign()
    return counted / seconds, cpu / counted * 1e6


def compare(
    without: Consumer,
    with_it: Consumer,
    topic: str,
    partitions: int,
    messages: int,
    rounds: int,
    take: Callable[[Consumer, int], None],
) -> Rates:
    """Measure both in each round; which is first alternates. A round before them warms up."""
    rates = Rates()
    for number in range(-1, rounds):
        measured = {}
        for name in ("without", "with_it") if number % 2 else ("with_it", "without"):
            consumer = without if name == "without" else with_it
            measured[name] = rate(consumer, topic, partitions, messages, take)
        if number >= 0:
            for name, (messages_a_second, cpu) in measured.items():
                getattr(rates, name).append(messages_a_second)
                getattr(rates, f"cpu_{name}").append(cpu)
    return rates
