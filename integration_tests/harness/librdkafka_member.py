"""A member with confluent-kafka's own consumer: says in lines of JSON what happens to it, and leaves when its input ends.

Arguments: bootstrap servers, group, client id, the assignor's name, and the topics.
"""

import json
import sys
import threading

from confluent_kafka import Consumer, KafkaException, TopicPartition


def main(servers: str, group: str, client: str, strategy: str, *topics: str) -> None:
    leaving = threading.Event()

    def read() -> None:
        sys.stdin.read()
        leaving.set()

    threading.Thread(target=read, daemon=True).start()
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": client,
            "partition.assignment.strategy": strategy,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            "fetch.wait.max.ms": 50,
        }
    )
    consumer.subscribe(
        list(topics),
        on_assign=lambda _, partitions: say_partitions("assign", partitions),
        on_revoke=lambda _, partitions: say_partitions("revoke", partitions),
        on_lost=lambda _, partitions: say_partitions("lost", partitions),
    )
    while not leaving.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if error := message.error():
            raise KafkaException(error)
        say("consumed", [(message.topic(), message.partition(), message.offset())])
    consumer.close()


def say_partitions(event: str, partitions: list[TopicPartition]) -> None:
    say(event, [(partition.topic, partition.partition) for partition in partitions])


def say(event: str, what: object) -> None:
    sys.stdout.write(json.dumps({"event": event, "what": what}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
