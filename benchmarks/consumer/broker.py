"""The broker that all contestants meet, and what is written to it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.consumer.plan import INITIAL_REBALANCE_DELAY_MS, MESSAGE_BYTES
from benchmarks.consumer.processes import programs
from confluent_kafka import Producer

from groupwright.testing._kafka.local_kafka import LocalKafka

_FLUSH_SECONDS = 60.0
_QUEUE_BYTES_KB = 262_144


def new_broker() -> LocalKafka:
    """Return a broker that is not started yet."""
    config = {
        "group.initial.rebalance.delay.ms": INITIAL_REBALANCE_DELAY_MS,
        # A new page of an index may take tens of milliseconds to get (ext4), and 300 partitions get theirs at once.
        "log.index.interval.bytes": 2**31 - 1,
    }
    return LocalKafka(config=config, heap="1g")


def fill(broker: LocalKafka, topic: str, partitions: int, messages: int) -> None:
    """Create a topic with messages, of which each partition gets as many.

    Raises:
        TimeoutError: The broker did not take them.
    """
    broker.create_topic(topic, partitions)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 20,
            "queue.buffering.max.messages": messages,
            "queue.buffering.max.kbytes": _QUEUE_BYTES_KB,
        }
    )
    value = b"x" * MESSAGE_BYTES
    for number in range(messages):
        producer.produce(topic, value, partition=number % partitions)
    if left := producer.flush(_FLUSH_SECONDS):
        raise TimeoutError(f"the broker did not take {left} messages in {_FLUSH_SECONDS} s")


@contextmanager
def steady_load(
    command: Sequence[str], broker: LocalKafka, topic: str, partitions: int, interval: float
) -> Iterator[None]:
    """Create a topic, and let the command write to each of its partitions every so many seconds meanwhile.

    Raises:
        TroubleError: It does not begin.
    """
    broker.create_topic(topic, partitions)
    with programs() as running:
        running.start(
            command,
            {
                "servers": broker.bootstrap_servers,
                "topic": topic,
                "partitions": partitions,
                "interval": interval,
            },
        )
        running.await_all("ready")
        yield
