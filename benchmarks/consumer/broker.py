"""Broker of the benchmark, and its topics."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as documented
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.consumer.plan import INITIAL_REBALANCE_DELAY_MS, KIP_848_MINIMA, MESSAGE_BYTES
from benchmarks.consumer.processes import programs
from groupwright.testing._kafka.local_kafka import LocalKafka

_FLUSH_SECONDS = 60.0
_SETTING_SECONDS = 30.0
_QUEUE_BYTES_KB = 262_144


def new_broker() -> LocalKafka:
    """Return the broker, not yet started."""
    config = {"group.initial.rebalance.delay.ms": INITIAL_REBALANCE_DELAY_MS, **KIP_848_MINIMA}
    return LocalKafka(config=config, heap="1g")


def fill(broker: LocalKafka, topic: str, partitions: int, messages: int) -> None:
    """Create a topic, and write the same number of messages to each partition.

    Raises:
        TimeoutError: The broker did not acknowledge the messages.
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


def set_group_timings(servers: str, group: str, timings: Mapping[str, int]) -> None:
    """Set the timings of a group by KIP-848, whose members get them from the broker.

    Raises:
        KafkaException: The broker rejects them.
    """
    entries = [
        ConfigEntry(f"consumer.{name}", str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in timings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(_SETTING_SECONDS)


@contextmanager
def steady_load(
    command: Sequence[str], broker: LocalKafka, topic: str, partitions: int, interval: float
) -> Iterator[None]:
    """Create a topic, and run a producer that writes to each partition at the given interval.

    Raises:
        RunFailedError: The producer does not start.
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
