"""Join of two topics in memory: one member owns all partitions with the same keys.

    python examples/co_partitioned_join.py

An order is settled when its payment has come. Both topics are partitioned by the order's number, so the
member that owns partition 3 of orders needs partition 3 of payments. `CoPartitionedStickyAssignor` assigns
both as one bundle, and moves the fewest bundles when the second member joins. A member that is assigned a
bundle reads it from the beginning, and drops the state of a bundle that is revoked.
"""

import argparse
import contextlib
import time
import uuid
from collections import defaultdict

from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.assignors import CoPartitionedStickyAssignor
from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka

PARTITIONS = 6
KEYS = [f"order-{number}" for number in range(100)]


class Joiner:
    """A member that joins orders with payments."""

    def __init__(self, servers: str, name: str, orders: str, payments: str) -> None:
        """Join the group."""
        self.name = name
        self._topics = (orders, payments)
        self._records: dict[int, dict[bytes, dict[str, bytes]]] = defaultdict(lambda: defaultdict(dict))
        """By partition and key, the value in each topic."""
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": orders,
                "client.id": name,
                "enable.auto.commit": False,  # the state in memory is made of all records
                "heartbeat.interval.ms": 300,
                "partition.assignment.strategy": CoPartitionedStickyAssignor([[orders, payments]]),
            }
        )
        self.consumer.subscribe(
            [orders, payments], on_assign=self._assigned, on_revoke=self._dropped, on_lost=self._dropped
        )

    def poll(self) -> None:
        """Read some records."""
        for message in self.consumer.consume(500, timeout=0.05):
            topic, partition, key = message.topic(), message.partition(), message.key()
            if message.error() is None and topic and partition is not None and key:
                self._records[partition][key][topic] = message.value() or b""

    def settled(self) -> set[bytes]:
        """Return the keys that are in both topics."""
        complete = len(self._topics)
        return {
            key
            for records in self._records.values()
            for key, values in records.items()
            if len(values) == complete
        }

    def owned(self) -> dict[str, list[int]]:
        """Return the partitions of each topic."""
        partitions = self.consumer.assignment()
        return {
            topic: sorted(each.partition for each in partitions if each.topic == topic)
            for topic in self._topics
        }

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = OFFSET_BEGINNING
        consumer.incremental_assign(partitions)

    def _dropped(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._records.pop(partition.partition, None)


def all_settled(members: list[Joiner]) -> bool:
    """Tell whether each member has partitions, and all orders are settled."""
    settled = sum(len(member.settled()) for member in members)
    return settled == len(KEYS) and all(all(member.owned().values()) for member in members)


def join_all(members: list[Joiner]) -> None:
    """Poll until all orders are settled, and print the members that did it."""
    deadline = time.monotonic() + 60
    while not all_settled(members):
        if time.monotonic() > deadline:
            raise TimeoutError("not all orders are settled within 60 s")
        for member in members:
            member.poll()
    for member in members:
        orders, payments = member.owned().values()
        print(f"{member.name}: orders {orders}, payments {payments}: {len(member.settled())} settled")


def produce(servers: str, topics: list[str]) -> None:
    """Create the topics, with a record of each key."""
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics])
    producer = Producer({"bootstrap.servers": servers})
    for topic in topics:
        created[topic].result(30)
        for key in KEYS:
            producer.produce(topic, b"10 EUR", key)
    if left := producer.flush(30):
        raise TimeoutError(f"the brokers did not take {left} messages")


def run(servers: str) -> None:
    """Join with one member, then with two."""
    topics = [f"{name}-{uuid.uuid4().hex[:8]}" for name in ("orders", "payments")]
    produce(servers, topics)
    members: list[Joiner] = []
    with contextlib.ExitStack() as cleanup:
        for name in ("joiner-1", "joiner-2"):
            members.append(Joiner(servers, name, *topics))
            cleanup.enter_context(members[-1].consumer)
            join_all(members)


def main() -> None:
    """Join on the Kafka of the command line, or on one of its own."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", nargs="?", help="bootstrap.servers; by default a Kafka of its own")
    options = arguments.parse_args()
    if options.servers:
        run(options.servers)
    else:
        with LocalKafka() as kafka:
            run(kafka.bootstrap_servers)


if __name__ == "__main__":
    main()
