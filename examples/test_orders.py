"""Tests of a service of one's own, with a real Kafka that fails in the middle.

    pytest examples/test_orders.py

The service below adds up orders by customer. The fixtures `local_kafka` and `new_kafka_topic` come with
`pip install 'groupwright[testing]'`; the first test that asks for them starts the broker.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from groupwright.testing.groups import LoadedGroup
from groupwright.testing.pytest_plugin import NewKafkaTopic

CONFIG = {
    "partition.assignment.strategy": "cooperative-sticky",
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
}


# --- The service -------------------------------------------------------------------------------


class Totals:
    """Amounts by customer. An order that is delivered again is stored once, since its offset is its key."""

    def __init__(self, path: Path) -> None:
        """Open the database."""
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute(
            "CREATE TABLE orders (partition, offset, customer, amount, PRIMARY KEY (partition, offset))"
        )

    def add(self, partition: int, offset: int, customer: str, amount: int) -> None:
        """Store an order."""
        row = (partition, offset, customer, amount)
        self._database.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?)", row)

    def of(self, customer: str) -> int:
        """Return the sum of a customer's orders."""
        query = "SELECT coalesce(sum(amount), 0) FROM orders WHERE customer = ?"
        return int(self._database.execute(query, (customer,)).fetchone()[0])

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def serve(config: dict[str, object], topic: str, totals: Totals, stopping: threading.Event) -> None:
    """Add up orders until `stopping` is set."""
    with Consumer({**CONFIG, **config}) as consumer:
        consumer.subscribe([topic])
        while not stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                customer, amount = (message.key() or b"").decode(), int(message.value() or b"0")
                totals.add(message.partition() or 0, message.offset() or 0, customer, amount)


# --- Its tests ---------------------------------------------------------------------------------


@pytest.fixture
def totals(tmp_path: Path) -> Iterator[Totals]:
    """Empty totals."""
    with closing(Totals(tmp_path / "orders.db")) as totals:
        yield totals


@contextmanager
def running(kafka: LocalKafka, topic: str, totals: Totals) -> Iterator[None]:
    """Run the service on a thread."""
    stopping = threading.Event()
    config: dict[str, object] = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic}
    thread = threading.Thread(target=serve, args=(config, topic, totals, stopping))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(30)


def order(kafka: LocalKafka, topic: str, count: int) -> None:
    """Produce orders of 1 from ada, and of 2 from bob."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for _ in range(count):
        producer.produce(topic, b"1", b"ada")
        producer.produce(topic, b"2", b"bob")
    assert producer.flush(60) == 0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within 60 s"
        time.sleep(0.05)


def test_each_order_counts_once_although_the_broker_is_killed(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, totals: Totals
) -> None:
    topic = new_kafka_topic(partitions=3)
    order(local_kafka, topic, 100)

    with running(local_kafka, topic, totals):
        wait_until(lambda: totals.of("bob") > 0, "the first orders")
        local_kafka.kill()  # what was stored may not be committed, and is delivered again
        local_kafka.start()
        order(local_kafka, topic, 50)
        wait_until(lambda: totals.of("ada") >= 150 and totals.of("bob") >= 300, "all orders")

    assert (totals.of("ada"), totals.of("bob")) == (150, 300)


def test_no_order_is_lost_when_a_worker_is_killed(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=4)

    with LoadedGroup(local_kafka, {topic: 4}, Consumer, config=CONFIG, processes=True) as group:
        killed, *_ = group.start_members(2)
        group.wait_until_settled()
        group.wait_until_consumed()
        group.kill(killed)  # SIGKILL
        group.wait_until_settled()  # its session has ended, and the other member owns all
        report = group.finish()  # raises if a message was lost, or consumed twice without a reason

    assert report.consumed >= report.produced > 0
