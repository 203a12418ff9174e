"""A member of plain confluent-kafka that leads a group of other clients, and has no partition of theirs."""

import sys
import threading
import time

import confluent_kafka

from benchmarks.consumer.programs.harness import GROUP_TIMEOUT, say, settings, telling_failures


def main() -> None:
    """Form the group, say so, and lead it until standard input ends."""
    given = settings()
    config = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "heartbeat.interval.ms": int(given["heartbeat.interval.ms"]),
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([given["topic"]])
    deadline = time.monotonic() + GROUP_TIMEOUT
    while not consumer.assignment():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no partitions in {GROUP_TIMEOUT} s")
        consumer.poll(0.1)
    say("ready")
    reader = threading.Thread(target=sys.stdin.read, daemon=True)
    reader.start()
    while reader.is_alive():
        consumer.poll(0.2)
    consumer.close()


if __name__ == "__main__":
    with telling_failures():
        main()
