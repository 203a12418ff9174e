"""Balance by load: one hot partition among twelve, first with cooperative-sticky, then with load-aware.

    python examples/load_aware.py

Three members share a topic of which one partition gets a third of the messages. cooperative-sticky balances
numbers of partitions, so the owner of the hot one has three more beside it. Then the members restart one
after the other with `LoadAwareAssignor`: the group votes for it when all members have it.
"""

import argparse
import contextlib
import time
import uuid
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from groupwright.assignors import LoadAwareAssignor, Throughput
from groupwright.consumer import Consumer, Rebalance, RebalanceListener
from groupwright.testing import LocalKafka

MESSAGES = [600, *[100] * 11]
"""Messages of each partition."""
BY_LOAD = LoadAwareAssignor(weights=Throughput(window=3600))


class LastRebalances(RebalanceListener):
    """The last rebalance of each member."""

    def __init__(self) -> None:
        """Start with none."""
        self.of: dict[str, Rebalance] = {}

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Keep it."""
        self.of[rebalance.client_id] = rebalance


class Members:
    """Members of one group, polled in turn."""

    def __init__(self, servers: str, topic: str) -> None:
        """Start with no member."""
        self._config = {"bootstrap.servers": servers, "group.id": topic, "heartbeat.interval.ms": 300}
        self._topic = topic
        self._last = LastRebalances()
        self._consumers: dict[str, Consumer] = {}

    def start(self, name: str, strategy: Any) -> None:
        """Start a member."""
        consumer = Consumer({**self._config, "client.id": name, "partition.assignment.strategy": strategy})
        consumer.add_listener(self._last)
        consumer.subscribe([self._topic])
        self._consumers[name] = consumer

    def stop(self, name: str) -> None:
        """Stop a member; it leaves the group."""
        self._consumers.pop(name).close()
        self._last.of.pop(name, None)

    def close(self) -> None:
        """Stop all members."""
        for name in list(self._consumers):
            self.stop(name)

    def settle(self) -> dict[str, Rebalance]:
        """Poll until each partition has an owner, in one generation of all members; return its rebalance."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for consumer in self._consumers.values():
                consumer.poll(0.05)
            last = {name: self._last.of[name] for name in self._consumers if name in self._last.of}
            owned = sum(len(rebalance.partitions.get(self._topic, ())) for rebalance in last.values())
            one_generation = len({rebalance.generation for rebalance in last.values()}) == 1
            if len(last) == len(self._consumers) and one_generation and owned == len(MESSAGES):
                return last
        raise TimeoutError("the group has not settled within 60 s")

    def show(self) -> None:
        """Print each member's share of the messages."""
        rebalances = self.settle()
        for name, rebalance in sorted(rebalances.items()):
            owned = rebalance.partitions.get(self._topic, ())
            share = sum(MESSAGES[partition] for partition in owned) / sum(MESSAGES)
            print(f"{rebalance.protocol:<18}  {name}  {share:4.0%}  partitions", *owned, flush=True)


def produce(servers: str, topic: str) -> None:
    """Create the topic with its messages."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, len(MESSAGES))])[topic].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for partition, messages in enumerate(MESSAGES):
        for number in range(messages):
            producer.produce(topic, f"order {number}", partition=partition)
    if left := producer.flush(30):
        raise TimeoutError(f"the brokers did not take {left} messages")


def compare(servers: str) -> None:
    """Show a group with one assignor, then with the other."""
    topic, names = f"load-aware-{uuid.uuid4().hex[:8]}", ("billing-1", "billing-2", "billing-3")
    produce(servers, topic)
    with contextlib.closing(Members(servers, topic)) as members:
        for name in names:
            members.start(name, "cooperative-sticky")
        members.show()
        for name in names:
            members.stop(name)
            members.start(name, [BY_LOAD, "cooperative-sticky"])
            members.settle()
        members.show()


def main() -> None:
    """Compare both assignors on the Kafka of the command line, or on one of its own."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", nargs="?", help="bootstrap.servers; by default a Kafka of its own")
    options = arguments.parse_args()
    if options.servers:
        compare(options.servers)
    else:
        with LocalKafka() as kafka:
            compare(kafka.bootstrap_servers)


if __name__ == "__main__":
    main()
