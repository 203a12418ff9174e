"""Consuming with instrumentation and without, by turns, so that both meet the same machine."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.cost.interval import Interval, interval
from groupwright.testing import LocalKafka

MESSAGE = b"x" * 100
DOCUMENT = json.dumps([{"id": number, "name": "x" * 20} for number in range(40)])
"""Takes some 20 µs to parse: the work of a service that does little for each message."""
FEWEST_ROUNDS = 12
WANTED_HALF_WIDTH = 0.01
"""Of the ratio's interval: rounds end once it is reached."""
_PATIENCE = 60.0


@dataclass(frozen=True)
class Turn:
    """One turn of a consumer.

    Attributes:
        messages: The measured messages.
        seconds: The time that they took.
        thread_cpu: Processor time of the application's thread, in seconds.
        process_cpu: Processor time of the process, in seconds.
    """

    messages: int
    seconds: float
    thread_cpu: float
    process_cpu: float


@dataclass
class Rates:
    """Measurements, round by round. In a round each consumer has two turns."""

    without: list[float] = field(default_factory=list)
    """Messages a second."""
    with_it: list[float] = field(default_factory=list)
    thread_cpu_without: list[float] = field(default_factory=list)
    """Processor time of the application's thread alone, in microseconds a message."""
    thread_cpu_with_it: list[float] = field(default_factory=list)
    process_cpu_without: list[float] = field(default_factory=list)
    """Processor time of the whole process, in microseconds a message: librdkafka's threads too."""
    process_cpu_with_it: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """With over without, round by round."""
        return [b / a for a, b in zip(self.without, self.with_it, strict=True)]

    @property
    def interval(self) -> Interval:
        """The ratio of the throughputs."""
        return interval(self.ratios)

    @property
    def is_narrow(self) -> bool:
        """True if the confidence interval is narrow enough to end the measurement."""
        return len(self.ratios) >= FEWEST_ROUNDS and self.interval.half_width <= WANTED_HALF_WIDTH

    def add(self, turns: Mapping[str, Sequence[Turn]]) -> None:
        """Add a round's turns, by `without` and `with_it`."""
        for name, of_name in turns.items():
            taken = sum(each.messages for each in of_name)
            getattr(self, name).append(taken / sum(each.seconds for each in of_name))
            for kind in ("thread_cpu", "process_cpu"):
                cpu = sum(getattr(each, kind) for each in of_name)
                getattr(self, f"{kind}_{name}").append(cpu / taken * 1e6)


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


@dataclass(frozen=True)
class Method:
    """A way to consume.

    Attributes:
        take: Takes so many messages.
        share: Messages of a turn, as a share of the benchmark's.
    """

    take: Callable[[Consumer, int], None]
    share: float = 1.0


def _by_poll(consumer: Consumer, messages: int) -> None:
    taken = 0
    while taken < messages:
        message = consumer.poll(_PATIENCE)
        if message is None:
            raise TimeoutError(f"no message came in {_PATIENCE} s")
        if message.error() is None:
            taken += 1


def _by_poll_and_work(consumer: Consumer, messages: int) -> None:
    for _ in range(messages):
        _by_poll(consumer, 1)
        json.loads(DOCUMENT)


def _by_consume(consumer: Consumer, messages: int) -> None:
    taken = 0
    while taken < messages:
        batch = consumer.consume(min(500, messages - taken), _PATIENCE)
        if not batch:
            raise TimeoutError(f"no message came in {_PATIENCE} s")
        taken += sum(message.error() is None for message in batch)


METHODS = {
    "poll": Method(_by_poll),
    "poll, and parse 2 KB of JSON": Method(_by_poll_and_work, 0.2),
    "consume": Method(_by_consume),
}
"""Ways to consume: with a call for each message, the same with some work, and 500 with a call."""


def turn(
    consumer: Consumer, topic: str, partitions: int, messages: int, take: Callable[[Consumer, int], None]
) -> Turn:
    """Measure so many messages, from the topic's beginning.

    The start is part of it: messages that are prefetched before the clock starts do not come from the broker.
    """
    began, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    take(consumer, messages)
    measured = Turn(
        messages, time.perf_counter() - began, time.thread_time() - thread, time.process_time() - process
    )
    consumer.unassign()
    return measured


def compare(
    without: Consumer,
    with_it: Consumer,
    topic: str,
    partitions: int,
    messages: int,
    seconds: float,
    take: Callable[[Consumer, int], None],
) -> Rates:
    """Measure both in turns until the interval of the ratio is narrow enough, or the time is over.

    A round is A B B A, or B A A B: so a drift of the machine's speed meets both alike, and neither is always
    the one after a pause. A round before the others warms up.

    Args:
        without: The consumer without instrumentation.
        with_it: The one with instrumentation.
        topic: A topic with at least the messages of a turn.
        partitions: Its partitions.
        messages: Messages of a turn.
        seconds: The longest time.
        take: How messages are taken.
    """
    consumers = {"without": without, "with_it": with_it}
    order = list(consumers)
    deadline = time.monotonic() + seconds

    def play() -> dict[str, list[Turn]]:
        turns: dict[str, list[Turn]] = {name: [] for name in consumers}
        for name in (*order, *reversed(order)):
            turns[name].append(turn(consumers[name], topic, partitions, messages, take))
        return turns

    play()
    rates = Rates()
    while len(rates.ratios) <= 1 or not (rates.is_narrow or time.monotonic() > deadline):
        order.reverse()
        rates.add(play())
    return rates
