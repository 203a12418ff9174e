"""A member that is there to be killed: ``victim.py CONFIG TOPIC`` prints a line when it has partitions."""

import json
import sys
from typing import Any

from confluent_kafka import Consumer


def main(config: dict[str, Any], topic: str) -> None:
    consumer = Consumer(config)

    def report(_: object, partitions: list[Any]) -> None:
        if partitions:
            sys.stdout.write(f"{len(partitions)}\n")
            sys.stdout.flush()

    consumer.subscribe([topic], on_assign=report)
    while True:
        consumer.poll(1.0)


main(json.loads(sys.argv[1]), sys.argv[2])
