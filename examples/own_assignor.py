"""A custom assignor: partitions with the same keys go to the same member, in topics of different sizes.

    python examples/own_assignor.py localhost:9092 --group matching --topics orders payments

Start it two or three times, and stop one. With 6 partitions of orders and 12 of payments, a key in partition
p of payments is in partition p % 6 of orders: a member that owns the one owns the other, and can join them in
memory. Kafka's range promises that for topics of the same size alone.
"""

import argparse
import signal
import threading

from confluent_kafka import TopicPartition

from groupwright.assignors import Assignor, Group
from groupwright.consumer import Consumer


class SameKeySameMember(Assignor):
    """Gives all partitions in which a key can be to one member; families are assigned in turn.

    All members must subscribe to the same topics, and each count of partitions be a multiple of the smallest.
    """

    name = "same-key-same-member"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        """Assign the families to the members in turn."""
        members = sorted(member.id for member in group.members)  # the order in `group` has no meaning
        # `group` lacks topics that do not exist, and a group may be started before its topics.
        families = min((topic.partitions for topic in group.topics.values()), default=1) or 1
        plan: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        for name, topic in group.topics.items():
            for partition in range(topic.partitions):
                owner = members[partition % families % len(members)]
                plan[owner].setdefault(name, []).append(partition)
        return plan


def show(_consumer: object, partitions: list[TopicPartition]) -> None:
    """Print the partitions of this member."""
    owned = sorted((partition.topic, partition.partition) for partition in partitions)
    print("assigned", *(f"{topic}[{partition}]" for topic, partition in owned), flush=True)


def main() -> None:
    """Consume until SIGTERM or Ctrl-C."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("servers", help="bootstrap.servers")
    arguments.add_argument("--group", required=True)
    arguments.add_argument("--topics", required=True, nargs="+")
    options = arguments.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())

    config = {
        "bootstrap.servers": options.servers,
        "group.id": options.group,
        # While it is rolled out: [SameKeySameMember(), "range"], which members that lack it have too.
        "partition.assignment.strategy": SameKeySameMember(),
    }
    with Consumer(config) as consumer:
        consumer.subscribe(options.topics, on_assign=show)
        while not stopping.is_set():
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                print(message.topic(), message.partition(), message.key(), flush=True)


if __name__ == "__main__":
    main()
